//! [`ActorPolicy`]: acts with an actor network.

use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};
use overtone_core::{
    Actions, Normalization, ObservationSpace, Observations, Policy, PolicyError, Task, Turn,
    protocol::ActionChoice,
};
use overtone_model::{ModelError, acting::turns, init::Init, weights};

use crate::options::Restored;

use super::{
    network::{self, Hidden, Mlp},
    steps::Rescaling,
};

/// A batch of agents that take the actor's one action for each observation. They draw no random
/// numbers and have no memory of their episodes.
pub struct ActorPolicy {
    actor: Mlp,
    device: Device,
    observations: ObservationSpace,
    n_actions: usize,
    normalization: Option<Normalization>,
    rescaling: Rescaling,
    /// Agents with an active episode.
    plays: Vec<bool>,
}

/// Description of an actor and its observations.
#[derive(Clone, Copy, Debug)]
pub struct ActorOf {
    /// The algorithm's name, for messages.
    pub algorithm: &'static str,
    /// Its hidden layers.
    pub hidden: Hidden,
    /// Whether its observations are normalized.
    pub is_normalized: bool,
}

impl ActorPolicy {
    /// The actor with these weights.
    ///
    /// # Errors
    /// When the weights do not fit the actor.
    pub fn restore(actor: ActorOf, of: &Restored<'_>) -> Result<Self, ModelError> {
        let Task { observations, actions, .. } = of.task;
        let widths = network::widths(actor.algorithm, observations, actions)?;
        let described = Mlp::init(widths, actor.hidden, &mut Init::shapes(of.device));
        Ok(Self {
            actor: weights::restore(described, of.weights)?.valid(),
            device: of.device.clone(),
            observations: observations.clone(),
            n_actions: widths[1],
            normalization: of.normalization.cloned(),
            rescaling: Rescaling::new(of.normalization, actor.is_normalized),
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
                return Err(format!(
                    "the action of agent {agent} is not finite. Check the weights"
                )
                .into());
            }
        }
        Ok(Actions::Continuous { width, values })
    }

    fn choose(&mut self, choice: ActionChoice) -> Result<(), PolicyError> {
        match choice {
            ActionChoice::Mode => Ok(()),
            ActionChoice::Sample => {
                Err("this agent has one action for each observation and cannot sample. \
                                         Set deterministic to True"
                    .into())
            }
        }
    }
}
