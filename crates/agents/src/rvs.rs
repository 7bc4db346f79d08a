//! RvS-R (Emmons et al. 2022): logged actions are learned by a perceptron from the observation and
//! the average return to go, `R̂ₜ / (H − t)`, in the units that [`perceptron`] explains.
//!
//! There is no attention and no history: what a sequence model must beat to be worth its cost.
//!
//! Differs from the published implementation: observations are normalized; the quick profile
//! takes batches of 256 steps, theirs have 16,384; and any head that fits the actions may be
//! used.
//!
//! [`perceptron`]: overtone_model::perceptron

use burn::tensor::Device;
use overtone_core::{Normalization, Play, Policy, Task};
use overtone_model::{
    ModelConfig, ModelError, PerceptronConfig, error::config_error, weights::NamedTensors,
};
use overtone_train::{Checkpoint, Job, TrainError, Training};
use serde::{Deserialize, Serialize};

use crate::{
    algorithm::AlgorithmOptions,
    sequence_model::{has_distribution, policy, trainer},
};

/// Options of RvS-R: its perceptron, which is told the average return to go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RvsConfig(pub PerceptronConfig);

impl RvsConfig {
    fn model(&self) -> ModelConfig {
        ModelConfig::Perceptron(self.0.clone())
    }
}

impl AlgorithmOptions for RvsConfig {
    fn validate(&self, task: &Task) -> Result<(), ModelError> {
        if self.0.average_return.is_none() {
            let expected = "RvS is told returns; behaviour cloning is not";
            return Err(config_error("average_return", "none", expected));
        }
        self.0.validate(&task.observations, &task.actions)
    }

    fn describe(&self) -> String {
        let PerceptronConfig { n_layers, width, head, .. } = &self.0;
        format!("RvS-R, {n_layers} layers of {width}, {}", head.describe())
    }

    fn model(&self) -> Option<ModelConfig> {
        Some(self.model())
    }

    fn reads_returns(&self) -> bool {
        true
    }

    fn has_distribution(&self) -> bool {
        has_distribution(&self.0.head)
    }

    fn trainer(
        &self,
        task: &Task,
        job: Job,
        resume: Option<&Checkpoint>,
    ) -> Result<Box<dyn Training>, TrainError> {
        trainer(self.model(), task, job, resume)
    }

    fn policy(
        &self,
        task: &Task,
        weights: &NamedTensors,
        normalization: Option<&Normalization>,
        play: &Play,
        device: &Device,
    ) -> Result<Box<dyn Policy>, ModelError> {
        policy(&self.model(), task, weights, (normalization, play), device)
    }
}
