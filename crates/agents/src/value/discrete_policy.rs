//! [`DiscretePolicy`]: acts with a network that scores discrete actions.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use overtone_core::{
    Actions, Normalization, ObservationSpace, Observations, Policy, PolicyError, Turn,
    protocol::ActionChoice,
    seed::{self, Generator},
};
use overtone_model::{
    acting::turns,
    contexts::{FRAME, Observed, STACK},
    head::LogitsDecisions,
};
use rand::RngExt;

use super::Rescaling;
use crate::options::Restored;

/// A network that scores discrete actions.
pub trait DiscreteActor: Send {
    /// The scores of every observation.
    fn decide(&self, observed: &Observed) -> LogitsDecisions;
}

/// How an action is sampled.
#[derive(Clone, Copy, Debug)]
pub enum Draw {
    /// The best action, except for a fraction of random ones.
    Greedy {
        /// The fraction of random actions.
        epsilon: f64,
    },
    /// From the softmax of the scores.
    Softmax {
        /// Divisor of the scores.
        temperature: f32,
    },
}

/// A batch of agents that act by the scores of a network. They have no memory of their episodes.
pub struct DiscretePolicy<N> {
    network: N,
    device: Device,
    observations: ObservationSpace,
    normalization: Option<Normalization>,
    rescaling: Rescaling,
    draw: Draw,
    choice: ActionChoice,
    /// By agent; `None` before its first episode.
    generators: Vec<Option<Generator>>,
}

impl<N> DiscretePolicy<N> {
    /// Acts with `network`, which has no gradients and lies on the device of `of`. If the protocol
    /// samples actions, it samples them by `draw`.
    pub fn new(network: N, of: &Restored<'_>, rescaling: Rescaling, draw: Draw) -> Self {
        Self {
            network,
            device: of.device.clone(),
            observations: of.task.observations.clone(),
            normalization: of.normalization.cloned(),
            rescaling,
            draw,
            choice: of.play.action_choice,
            generators: Vec::new(),
        }
    }

    /// Observations on the device; for vectors, these are `normalized`.
    fn observed(&self, n: usize, observations: Observations<'_>, normalized: Vec<f32>) -> Observed {
        match observations {
            Observations::Pixels(pixels) => {
                let pixels = TensorData::new(pixels.to_vec(), [n, STACK, FRAME, FRAME]);
                let pixels = Tensor::<4, Int>::from_data(pixels, (&self.device, DType::U8));
                Observed::Frames(pixels)
            }
            Observations::Vectors(_) => {
                let numbers = TensorData::new(normalized, [n, 1, self.observations.size()]);
                Observed::Vectors(Tensor::from_data(numbers, &self.device))
            }
        }
    }
}

impl<N: DiscreteActor> Policy for DiscretePolicy<N> {
    fn act(
        &mut self,
        turns: &[Turn],
        observations: Observations<'_>,
    ) -> Result<Actions, PolicyError> {
        let plays = |agent: usize| self.generators.get(agent).is_some_and(Option::is_some);
        turns::check(turns, observations, &self.observations, plays)?;
        let mut normalized = turns::normalized(turns, observations, self.normalization.as_ref())?;
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
        self.rescaling.apply(&mut normalized);
        let observed = self.observed(turns.len(), observations, normalized);
        let decisions = self.network.decide(&observed);
        let mut chosen = Vec::with_capacity(turns.len());
        for (row, turn) in turns.iter().enumerate() {
            let scores = decisions.logits(row);
            if scores.iter().any(|score| !score.is_finite()) {
                let agent = turn.agent;
                return Err(format!(
                    "the scores for agent {agent} are not finite. Check the weights"
                )
                .into());
            }
            let Some(generator) = &mut self.generators[turn.agent] else { continue };
            chosen.push(match (self.choice, self.draw) {
                (ActionChoice::Mode, _) => decisions.mode(row),
                (ActionChoice::Sample, Draw::Softmax { temperature }) => {
                    decisions.draw(row, temperature, generator)
                }
                (ActionChoice::Sample, Draw::Greedy { epsilon }) => {
                    // Both numbers are drawn at every step, so that epsilon does not change later
                    // draws.
                    let explores = generator.random::<f64>() < epsilon;
                    let random = generator.random_range(0..scores.len());
                    if explores { random } else { decisions.mode(row) }
                }
            });
        }
        Ok(Actions::Discrete(chosen))
    }

    fn choose(&mut self, choice: ActionChoice) -> Result<(), PolicyError> {
        self.choice = choice;
        Ok(())
    }
}
