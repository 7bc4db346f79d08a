//! [`ActingMode`]: the part of a protocol that is selected for each agent.

use serde::{Deserialize, Serialize};

/// An agent's mode of action selection (for agents with several modes).
///
/// An agent's checkpoint stores the mode that was selected for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActingMode {
    /// Softmax temperature of sampled discrete actions.
    pub temperature: f32,
    /// Quantile of the predicted return that bounds the return-to-go, in (0, 1]. 1: no bound
    /// (agents with a return model only).
    pub return_quantile: f32,
    /// Top percent (of the dataset's episodes by return) that the agent imitates. 0: it is
    /// conditioned on a return (agents trained with top percents only).
    pub top_percent: f32,
}

impl Default for ActingMode {
    /// As trained: temperature 1, conditioned on the rest of the target return.
    fn default() -> Self {
        Self { temperature: 1.0, return_quantile: 1.0, top_percent: 0.0 }
    }
}
