//! RvS-R (Emmons et al. 2022): a perceptron learns recorded actions from the observation and the
//! average return-to-go, `R̂ₜ / (H − t)`, in the units that [`perceptron`] explains.
//!
//! It has no attention and no history: it is the baseline that a sequence model must beat to be
//! worth its cost. With `model.top_percents` it can also be conditioned on the [top
//! percent](overtone_model::conditioning::top_percent) of episodes.
//!
//! Differs from the published implementation:
//!
//! - Observations are normalized.
//! - The quick profile is a smaller perceptron with top percents, and has batches of 256 steps
//!   (theirs have 16,384).
//! - Any head that fits the actions can be used.
//! - While it acts, its average return-to-go follows the rewards so far, without bounds. Theirs
//!   stays at the target.
//!
//! [`perceptron`]: overtone_model::perceptron

use overtone_model::{ModelConfig, ModelError, PerceptronConfig, error::config_error};
use serde::{Deserialize, Serialize};

use crate::sequence_model::LearnsActions;

/// Options of RvS-R: its perceptron, which is conditioned on the average return-to-go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RvsConfig(pub PerceptronConfig);

impl LearnsActions for RvsConfig {
    fn learned(&self) -> ModelConfig {
        ModelConfig::Perceptron(self.0.clone())
    }

    fn describe(&self) -> String {
        let PerceptronConfig { n_layers, width, head, conditioning, .. } = &self.0;
        let has_top = conditioning.as_ref().is_some_and(|config| !config.top_percents.is_empty());
        let top = if has_top { " with top percents" } else { "" };
        format!("RvS-R{top}, {n_layers} layers of {width}, {}", head.describe())
    }

    fn check_conditioning(&self) -> Result<(), ModelError> {
        if self.0.conditioning.as_ref().is_none_or(|config| config.average_return.is_none()) {
            let expected = "must be set: RvS is conditioned on the average return-to-go";
            return Err(config_error("average_return", "none", expected));
        }
        Ok(())
    }
}
