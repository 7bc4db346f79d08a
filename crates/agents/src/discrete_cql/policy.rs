//! [`GreedyPolicy`]: plays the action of highest value.

use burn::{
    module::Module,
    tensor::{DType, Device, Int, Tensor, TensorData},
};
use overtone_core::{
    Actions, Normalization, ObservationSpace, Observations, Policy, PolicyError, Turn,
    seed::{self, Generator},
};
use overtone_model::contexts::{Frames, Observed};
use rand::RngExt;

use super::QNetwork;

/// A batch of agents that play the action of highest value, and now and then another. They
/// remember nothing of their episodes.
pub struct GreedyPolicy {
    network: QNetwork,
    device: Device,
    observations: ObservationSpace,
    normalization: Option<Normalization>,
    epsilon: f64,
    /// By agent; `None` before its first episode.
    generators: Vec<Option<Generator>>,
}

impl GreedyPolicy {
    /// Plays `network`, with a share of `epsilon` random actions. `normalization` is that of the
    /// training data, `None` where observations are seen as they come.
    pub fn new(
        network: &QNetwork,
        observations: &ObservationSpace,
        normalization: Option<&Normalization>,
        epsilon: f64,
    ) -> Self {
        let network = network.valid();
        Self {
            device: network.out.bias.val().device(),
            network,
            observations: observations.clone(),
            normalization: normalization.cloned(),
            epsilon,
            generators: Vec::new(),
        }
    }

    /// Observations on the device, after they have been checked.
    fn observed(
        &self,
        turns: &[Turn],
        observations: Observations<'_>,
    ) -> Result<Observed, PolicyError> {
        let n = turns.len();
        match (&self.observations, observations) {
            (ObservationSpace::Pixels { shape }, Observations::Pixels(pixels))
                if pixels.len() == n * self.observations.size() && shape.len() == 3 =>
            {
                let shape = [n, shape[0], shape[1], shape[2]];
                let pixels = TensorData::new(pixels.to_vec(), shape);
                let pixels = Tensor::<4, Int>::from_data(pixels, (&self.device, DType::U8));
                Ok(Observed::Frames(Frames::Stacks(pixels)))
            }
            (ObservationSpace::Vectors { width }, Observations::Vectors(numbers))
                if numbers.len() == n * width =>
            {
                let mut numbers = numbers.to_vec();
                if let Some(normalization) = &self.normalization {
                    normalization.apply(&mut numbers);
                }
                if let Some(at) = numbers.iter().position(|number| !number.is_finite()) {
                    let agent = turns[at / width].agent;
                    return Err(format!("an observation of agent {agent} is not finite").into());
                }
                let numbers = TensorData::new(numbers, [n, 1, *width]);
                Ok(Observed::Vectors(Tensor::from_data(numbers, &self.device)))
            }
            (space, _) => {
                Err(format!("observations are not {n} of {} numbers each", space.size()).into())
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
        if turns.is_empty() {
            return Ok(Actions::Discrete(Vec::new()));
        }
        let observed = self.observed(turns, observations)?;
        for turn in turns {
            if self.generators.len() <= turn.agent {
                self.generators.resize_with(turn.agent + 1, || None);
            }
            if let Some(start) = turn.start {
                self.generators[turn.agent] = Some(seed::generator(start.seed, "policy"));
            }
        }
        let values = self.network.values(&observed);
        let [_, n_actions] = values.dims();
        let values: Vec<f32> = values.into_data().iter::<f32>().collect();
        let mut chosen = Vec::with_capacity(turns.len());
        for (turn, values) in turns.iter().zip(values.chunks_exact(n_actions)) {
            if values.iter().any(|value| !value.is_finite()) {
                let agent = turn.agent;
                return Err(
                    format!("values for agent {agent} are not finite: are the weights?").into()
                );
            }
            let Some(generator) = &mut self.generators[turn.agent] else {
                return Err(
                    format!("agent {} is in mid-episode, and began none", turn.agent).into()
                );
            };
            // Both are drawn at every step, so that epsilon moves no later draw.
            let (explores, random) =
                (generator.random::<f64>(), generator.random_range(0..n_actions));
            chosen.push(if explores < self.epsilon { random } else { best(values) });
        }
        Ok(Actions::Discrete(chosen))
    }
}

/// The place of the largest value, of equals the first.
fn best(values: &[f32]) -> usize {
    let mut best = 0;
    for (place, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = place;
        }
    }
    best
}
