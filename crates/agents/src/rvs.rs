//! RvS-R (Emmons et al. 2022): logged actions are learned by a perceptron from the observation and
//! the average return to go, `R̂ₜ / (H − t)`, in the units that [`perceptron`] explains.
//!
//! There is no attention and no history: what a sequence model must beat to be worth its cost. With
//! `model.top_percents` it may also act as the [top percent](overtone_model::conditioning::top_percent)
//! of episodes did.
//!
//! Differs from the published implementation: observations are normalized; the quick profile
//! is a smaller perceptron with shares, and takes batches of 256 steps, theirs have 16,384; any head
//! that fits the actions may be used; and while it acts, its average follows the rewards so far, without
//! bounds, where theirs stays the target.
//!
//! [`perceptron`]: overtone_model::perceptron

use overtone_model::{ModelConfig, ModelError, PerceptronConfig, error::config_error};
use serde::{Deserialize, Serialize};

use crate::sequence_model::LearnsActions;

/// Options of RvS-R: its perceptron, which is conditioned on the average return to go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RvsConfig(pub PerceptronConfig);

impl LearnsActions for RvsConfig {
    fn learned(&self) -> ModelConfig {
        ModelConfig::Perceptron(self.0.clone())
    }

    fn is_conditioned(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        let PerceptronConfig { n_layers, width, head, conditioning, .. } = &self.0;
        let has_top = conditioning.as_ref().is_some_and(|config| !config.top_percents.is_empty());
        let top = if has_top { ", or told shares of the best" } else { "" };
        format!("RvS-R{top}, {n_layers} layers of {width}, {}", head.describe())
    }

    fn check_conditioning(&self) -> Result<(), ModelError> {
        if self.0.conditioning.as_ref().is_none_or(|config| config.average_return.is_none()) {
            let expected = "given: RvS is conditioned on the average return to go";
            return Err(config_error("average_return", "none", expected));
        }
        Ok(())
    }
}
