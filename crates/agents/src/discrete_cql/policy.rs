//! [`GreedyPolicy`]: plays the action of highest value.

use burn::{
    module::Module,
    tensor::{DType, Device, Int, Tensor, TensorData},
};
use overtone_core::{
    Actions, Normalization, ObservationSpace, Observations, Policy, PolicyError, Turn,
    protocol::ActionChoice,
    seed::{self, Generator},
};
use overtone_model::{
    acting::turns,
    contexts::{FRAME, Frames, Observed, STACK},
    head::categorical::most_probable,
};
use rand::RngExt;

use super::QNetwork;

/// A batch of agents that play the action of highest value, and now and then another. They
/// remember nothing of their episodes.
pub struct GreedyPolicy {
    network: QNetwork,
    device: Device,
    observations: ObservationSpace,
    normalization: Option<Normalization>,
    /// The share of random actions where actions are drawn.
    epsilon: f64,
    choice: ActionChoice,
    /// By agent; `None` before its first episode.
    generators: Vec<Option<Generator>>,
}

impl GreedyPolicy {
    /// Plays `network`, with a share of `epsilon` random actions where `choice` draws them.
    /// `normalization` is that of the training data, `None` where observations are seen as they
    /// come.
    pub fn new(
        network: &QNetwork,
        observations: &ObservationSpace,
        normalization: Option<&Normalization>,
        epsilon: f64,
        choice: ActionChoice,
    ) -> Self {
        let network = network.valid();
        Self {
            device: network.out.bias.val().device(),
            network,
            observations: observations.clone(),
            normalization: normalization.cloned(),
            epsilon,
            choice,
            generators: Vec::new(),
        }
    }

    /// Observations on the device; of vectors, those that are `normalized`.
    fn observed(&self, n: usize, observations: Observations<'_>, normalized: Vec<f32>) -> Observed {
        match observations {
            Observations::Pixels(pixels) => {
                let pixels = TensorData::new(pixels.to_vec(), [n, STACK, FRAME, FRAME]);
                let pixels = Tensor::<4, Int>::from_data(pixels, (&self.device, DType::U8));
                Observed::Frames(Frames::Stacks(pixels))
            }
            Observations::Vectors(_) => {
                let numbers = TensorData::new(normalized, [n, 1, self.observations.size()]);
                Observed::Vectors(Tensor::from_data(numbers, &self.device))
            }
        }
    }
}

impl Policy for GreedyPolicy {
    fn act(
        &mut self,
        turns: &[Turn],
        observations: Observations<'_>,
    ) -> Result<Actions, PolicyError> {
        let plays = |agent: usize| self.generators.get(agent).is_some_and(Option::is_some);
        turns::check(turns, observations, &self.observations, plays)?;
        let normalized = turns::normalized(turns, observations, self.normalization.as_ref())?;
        if turns.is_empty() {
            return Ok(Actions::Discrete(Vec::new()));
        }
        for turn in turns {
            if self.generators.len() <= turn.agent {
                self.generators.resize_with(turn.agent + 1, || None);
            }
            if let Some(start) = turn.start {
                self.generators[turn.agent] = Some(seed::generator(start.seed, "policy"));
            }
        }
        let observed = self.observed(turns.len(), observations, normalized);
        let values = self.network.values(&observed);
        let [_, n_actions] = values.dims();
        let values: Vec<f32> = values.into_data().iter::<f32>().collect();
        // A draw is the best action but for the share of random ones.
        let epsilon = match self.choice {
            ActionChoice::Sample => self.epsilon,
            ActionChoice::Mode => 0.0,
        };
        let mut chosen = Vec::with_capacity(turns.len());
        for (turn, values) in turns.iter().zip(values.chunks_exact(n_actions)) {
            if values.iter().any(|value| !value.is_finite()) {
                let agent = turn.agent;
                return Err(
                    format!("values for agent {agent} are not finite: are the weights?").into()
                );
            }
            let Some(generator) = &mut self.generators[turn.agent] else { continue };
            // Both are drawn at every step, so that epsilon moves no later draw.
            let (explores, random) =
                (generator.random::<f64>(), generator.random_range(0..n_actions));
            chosen.push(if explores < epsilon { random } else { most_probable(values) });
        }
        Ok(Actions::Discrete(chosen))
    }

    fn choose(&mut self, choice: ActionChoice) -> Result<(), PolicyError> {
        self.choice = choice;
        Ok(())
    }
}
