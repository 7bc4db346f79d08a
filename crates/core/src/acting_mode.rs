//! [`ActingMode`]: the part of a protocol that is chosen for each agent.

use serde::{Deserialize, Serialize};

/// How an agent acts, where it can act in several ways.
///
/// An agent's checkpoint stores the mode that was chosen for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActingMode {
    /// Softmax temperature of actions that are drawn from a list.
    pub temperature: f32,
    /// Of an agent with a return model: the quantile of the predicted return that bounds its
    /// return-to-go, above 0. 1: no bound.
    pub return_quantile: f32,
    /// Of an agent with top percents: it imitates this best share of the recording's episodes, in
    /// percent. 0: it is conditioned on a return.
    pub top_percent: f32,
}

impl Default for ActingMode {
    /// As trained: temperature 1, conditioned on the return that is left of its target.
    fn default() -> Self {
        Self { temperature: 1.0, return_quantile: 1.0, top_percent: 0.0 }
    }
}
