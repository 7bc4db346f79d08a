//! [`DiscreteSteps`]: a batch of single steps with discrete actions on the device.

use burn::tensor::{Device, Int, Tensor};
use overtone_data::Batch;
use overtone_model::{
    Contexts, Inputs, Sections,
    contexts::{Acted, Observed},
};
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
        if !Self::any_counts(batch) {
            return None;
        }
        // The rest is a target, so it has no gradient.
        let next = data.transitions(batch, &device.clone().inner())?;
        Some(Self::with(data.contexts(batch, device), next))
    }

    /// Sends the steps of a batch for [`received`](Self::received). Returns `false` if no step has a
    /// target and a weight above 0, or the data has no recorded form.
    ///
    /// # Panics
    /// As [`of`](Self::of).
    pub fn send(batch: &Batch, data: &TrainingData, to: &mut Sections) -> bool {
        Self::any_counts(batch) && data.send(batch, to)
    }

    /// Steps that were [sent](Self::send).
    ///
    /// # Panics
    /// When they were not sent.
    pub fn received(inputs: &Inputs, data: &TrainingData) -> Self {
        Self::with(data.received(inputs), data.received_transitions(inputs))
    }

    fn any_counts(batch: &Batch) -> bool {
        let Some(next) = &batch.transitions else { panic!("the batches have no transitions") };
        let counts = |row: usize| batch.step_weights.get(row).is_none_or(|&weight| weight > 0.0);
        let has_target =
            |row: usize| counts(row) && (next.terminated[row] || next.next_is_known[row]);
        (0..next.terminated.len()).any(has_target)
    }

    fn with(contexts: Contexts, next: TransitionTensors) -> Self {
        let Acted::Discrete(taken) = &contexts.actions else {
            panic!("discrete actions: checked when the agent was created")
        };
        let [rows, time] = taken.dims();
        let actions = taken.clone().reshape([rows * time]);
        let penalties = contexts.penalties.map(|penalties| penalties.flatten(0, 1));
        Self { observations: contexts.observations, actions, penalties, next }
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
