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

impl ActingMode {
    /// As [`label`](Self::label); `own mode` for an agent that is not conditioned on a return.
    pub fn label_of(&self, is_conditioned: bool) -> String {
        match is_conditioned {
            true => self.label(),
            false => self.label().replace("target return", "own mode"),
        }
    }

    /// The mode in a few words, such as `top 10 %` or `quantile 0.9, temperature 0.5`. Settings
    /// without an effect are left out.
    pub fn label(&self) -> String {
        let of_return = match (self.top_percent, self.return_quantile) {
            (0.0, 1.0) => "target return".to_owned(),
            (0.0, quantile) => format!("quantile {quantile}"),
            (percent, _) => format!("top {percent} %"),
        };
        match self.temperature {
            1.0 => of_return,
            temperature => format!("{of_return}, temperature {temperature}"),
        }
    }
}

impl Default for ActingMode {
    /// As trained: temperature 1, conditioned on the rest of the target return.
    fn default() -> Self {
        Self { temperature: 1.0, return_quantile: 1.0, top_percent: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels() {
        let label = |temperature, return_quantile, top_percent| {
            ActingMode { temperature, return_quantile, top_percent }.label()
        };
        assert_eq!(label(1.0, 1.0, 0.0), "target return");
        assert_eq!(label(1.0, 0.9, 10.0), "top 10 %");
        assert_eq!(label(0.5, 0.75, 0.0), "quantile 0.75, temperature 0.5");
    }
}
