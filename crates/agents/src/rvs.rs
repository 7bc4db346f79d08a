//! RvS-R (Emmons et al. 2022): logged actions are learned by a perceptron from the observation and
//! the average return to go, `R̂ₜ / (H − t)`, in the units that [`perceptron`] explains.
//!
//! There is no attention and no history: what a sequence model must beat to be worth its cost. With
//! `model.best_percents` it may also act as [the best episodes](overtone_model::best_shares) did.
//!
//! Differs from the published implementation: observations are normalized; the quick profile
//! is a smaller perceptron with shares, and takes batches of 256 steps, theirs have 16,384; any head
//! that fits the actions may be used; and while it plays, what it is told follows what it has earned,
//! without bounds, where theirs stays what was asked for at the start.
//!
//! [`perceptron`]: overtone_model::perceptron

use overtone_model::{ModelConfig, ModelError, PerceptronConfig, error::config_error};
use serde::{Deserialize, Serialize};

use crate::sequence_model::LearnsActions;

/// Options of RvS-R: its perceptron, which is told the average return to go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RvsConfig(pub PerceptronConfig);

impl LearnsActions for RvsConfig {
    fn learned(&self) -> ModelConfig {
        ModelConfig::Perceptron(self.0.clone())
    }

    fn is_told_returns(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        let PerceptronConfig { n_layers, width, head, best_percents, .. } = &self.0;
        let told = if best_percents.is_empty() { "" } else { ", or told shares of the best" };
        format!("RvS-R{told}, {n_layers} layers of {width}, {}", head.describe())
    }

    fn check_told(&self) -> Result<(), ModelError> {
        if self.0.average_return.is_none() {
            let expected = "RvS is told returns; behaviour cloning is not";
            return Err(config_error("average_return", "none", expected));
        }
        Ok(())
    }
}
