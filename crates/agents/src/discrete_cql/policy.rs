//! [`GreedyPolicy`]: takes the action with the highest value.

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

/// A batch of agents that take the action with the highest value, and sometimes a random one. They
/// have no memory of their episodes.
pub struct GreedyPolicy {
    network: QNetwork,
    device: Device,
    observations: ObservationSpace,
    normalization: Option<Normalization>,
    /// The fraction of random actions when actions are sampled.
    epsilon: f64,
    choice: ActionChoice,
    /// By agent; `None` before its first episode.
    generators: Vec<Option<Generator>>,
}

impl GreedyPolicy {
    /// Acts with `network`, and with a fraction `epsilon` of random actions if `choice` samples
    /// them. `normalization`: statistics of the training data; `None` if observations are not
    /// normalized.
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

    /// Observations on the device; for vectors, these are `normalized`.
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
        // A sampled action is the best one, except for a fraction of random ones.
        let epsilon = match self.choice {
            ActionChoice::Sample => self.epsilon,
            ActionChoice::Mode => 0.0,
        };
        let mut chosen = Vec::with_capacity(turns.len());
        for (turn, values) in turns.iter().zip(values.chunks_exact(n_actions)) {
            if values.iter().any(|value| !value.is_finite()) {
                let agent = turn.agent;
                return Err(format!(
                    "the values for agent {agent} are not finite. Check the weights"
                )
                .into());
            }
            let Some(generator) = &mut self.generators[turn.agent] else { continue };
            // Both numbers are drawn at every step, so that epsilon does not change later draws.
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
