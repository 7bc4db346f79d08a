//! [`ActorPolicy`]: plays what an actor says.

use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};
use overtone_core::{
    ActionSpace, Actions, Normalization, ObservationSpace, Observations, Policy, PolicyError, Turn,
};
use overtone_model::{
    ModelError,
    init::Init,
    turns,
    weights::{self, NamedTensors},
};

use super::{
    network::{self, Hidden, Mlp},
    steps::Rescaling,
};

/// A batch of agents that take the one action that an actor gives for each observation. They
/// draw nothing and remember nothing of their episodes.
pub struct ActorPolicy {
    actor: Mlp,
    device: Device,
    observations: ObservationSpace,
    n_actions: usize,
    normalization: Option<Normalization>,
    rescaling: Rescaling,
    /// Agents that have begun an episode.
    plays: Vec<bool>,
}

/// What an actor is and how it sees.
#[derive(Clone, Copy, Debug)]
pub struct ActorOf<'a> {
    /// The algorithm's name, for messages.
    pub algorithm: &'a str,
    /// Its hidden layers.
    pub hidden: Hidden,
    /// What it sees.
    pub observations: &'a ObservationSpace,
    /// What it does.
    pub actions: &'a ActionSpace,
    /// Of the training data.
    pub normalization: Option<&'a Normalization>,
    /// Whether it sees observations normalized.
    pub is_normalized: bool,
}

impl ActorPolicy {
    /// The actor with these weights.
    ///
    /// # Errors
    /// When the weights are another actor's.
    pub fn of_weights(
        of: ActorOf<'_>,
        weights: &NamedTensors,
        device: &Device,
    ) -> Result<Self, ModelError> {
        let widths = network::widths(of.algorithm, of.observations, of.actions)?;
        let described = Mlp::init(widths, of.hidden, &mut Init::shapes(device));
        let actor = weights::restore(described, weights)?.valid();
        Ok(Self {
            actor,
            device: device.clone(),
            observations: of.observations.clone(),
            n_actions: widths[1],
            normalization: of.normalization.cloned(),
            rescaling: Rescaling::new(of.normalization, of.is_normalized),
            plays: Vec::new(),
        })
    }
}

impl Policy for ActorPolicy {
    fn act(
        &mut self,
        turns: &[Turn],
        observations: Observations<'_>,
    ) -> Result<Actions, PolicyError> {
        let plays = |agent: usize| self.plays.get(agent).is_some_and(|plays| *plays);
        turns::check(turns, observations, &self.observations, plays)?;
        let mut seen = turns::normalized(turns, observations, self.normalization.as_ref())?;
        self.rescaling.apply(&mut seen);
        let width = self.n_actions;
        if turns.is_empty() {
            return Ok(Actions::Continuous { width, values: Vec::new() });
        }
        for turn in turns {
            if self.plays.len() <= turn.agent {
                self.plays.resize(turn.agent + 1, false);
            }
            self.plays[turn.agent] = true;
        }
        let seen = TensorData::new(seen, [turns.len(), self.observations.size()]);
        let actions = self.actor.act(Tensor::from_data(seen, &self.device));
        let values: Vec<f32> = actions.into_data().iter::<f32>().collect();
        for (turn, action) in turns.iter().zip(values.chunks_exact(width)) {
            if action.iter().any(|number| !number.is_finite()) {
                let agent = turn.agent;
                return Err(
                    format!("the action of agent {agent} is not finite: are the weights?").into()
                );
            }
        }
        Ok(Actions::Continuous { width, values })
    }
}
