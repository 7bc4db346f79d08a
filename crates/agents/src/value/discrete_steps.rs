//! [`DiscreteSteps`]: a batch of single steps with discrete actions on the device.

use burn::tensor::{Device, Int, Tensor};
use overtone_data::Batch;
use overtone_model::contexts::{Acted, Observed};
use overtone_train::{TrainingData, TransitionTensors};

/// Steps of vectors or frames. A step has weight 0 if the data ends after it although the task has
/// not ended: it has no target.
pub struct DiscreteSteps {
    /// The observations.
    pub observations: Observed,
    /// `[rows]`: the recorded actions.
    pub actions: Tensor<1, Int>,
    /// `[rows, actions]`: as [`Contexts::penalties`](overtone_model::Contexts::penalties).
    pub penalties: Option<Tensor<2>>,
    /// Rewards and next observations, without gradients.
    pub next: TransitionTensors,
}

impl DiscreteSteps {
    /// The steps of all contexts of a batch, whose memory may be taken; `None` if no step has a
    /// target and a weight above 0.
    ///
    /// # Panics
    /// When the batch has no transitions, or not discrete actions: a caller's bug.
    pub fn of(batch: &mut Batch, data: &TrainingData, device: &Device) -> Option<Self> {
        let Some(next) = &batch.transitions else { panic!("the batches have no transitions") };
        let counts = |row: usize| batch.step_weights.get(row).is_none_or(|&weight| weight > 0.0);
        let has_target =
            |row: usize| counts(row) && (next.terminated[row] || next.next_is_known[row]);
        if !(0..next.terminated.len()).any(has_target) {
            return None;
        }
        // The rest is a target, so it has no gradient.
        let next = data.transitions(batch, &device.clone().inner())?;
        let contexts = data.contexts(batch, device);
        let Acted::Discrete(taken) = &contexts.actions else {
            panic!("discrete actions: checked when the agent was created")
        };
        let [rows, time] = taken.dims();
        let actions = taken.clone().reshape([rows * time]);
        let penalties = contexts.penalties.map(|penalties| penalties.flatten(0, 1));
        Some(Self { observations: contexts.observations, actions, penalties, next })
    }

    /// The same steps with multiplied rewards.
    #[must_use]
    pub fn with_rewards_times(self, factor: f32) -> Self {
        let rewards = self.next.rewards * factor;
        Self { next: TransitionTensors { rewards, ..self.next }, ..self }
    }

    /// The weight of each row in the loss, `[rows]`: its factor, divided by the number of rows with a
    /// target and a factor above 0; 0 for the others.
    pub fn weights(&self) -> Tensor<1> {
        let TransitionTensors { terminated, next_is_known, step_weights, .. } = &self.next;
        let [rows, time] = terminated.dims();
        let mut counts = (terminated.clone() + next_is_known.clone()).clamp_max(1.0);
        let mut factors = counts.clone();
        if let Some(weights) = step_weights {
            factors = factors * weights.clone();
            counts = counts * weights.clone().greater_elem(0.0).float().cast(weights.dtype());
        }
        factors.reshape([rows * time]) / counts.sum().clamp_min(1.0)
    }

    /// `R + γ^m (1 − done) v`, from the values `v` of the next observations.
    ///
    /// # Shapes
    /// - `next_values` and result: `[rows, n]`
    pub fn returns(&self, next_values: Tensor<2>, gamma: f64) -> Tensor<2> {
        let [rows, time] = self.next.rewards.dims();
        let column = |tensor: Tensor<2>| tensor.reshape([rows * time, 1]);
        let continues = column(self.next.continues.clone());
        column(self.next.rewards.clone()) + next_values * continues * gamma
    }
}
