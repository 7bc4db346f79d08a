//! [`Agent`]: description of a trained agent, which a checkpoint stores next to the weights.

use std::path::Path;

use burn::tensor::Device;
use overtone_core::{ActingMode, ActionSpace, Normalization, Play, Policy, Simulation, Task};
use overtone_model::{ModelError, weights::NamedTensors};
use overtone_train::{Checkpoint, TrainError, TrainingData};
use serde::{Deserialize, Serialize};

use crate::{
    acting::PolicyParts, algorithm::AlgorithmConfig, masked_actions::masked,
    scaled_actions::in_units_of, value::keys::has_rare_rewards,
};

/// Description of an agent and its task: together with the weights, everything that acting needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// The task of training.
    pub task: Task,
    /// The task's dataset of training, such as `medium`; may be empty.
    pub dataset: String,
    /// The algorithm with its options, and the model.
    pub algorithm: AlgorithmConfig,
    /// Normalization of vector observations before the agent sees them.
    pub normalization: Option<Normalization>,
    /// Divisor of returns and rewards.
    pub return_scale: f32,
    /// Whether the whole reward came with an episode's last step.
    pub delayed_reward: bool,
    /// The simulator's settings when the data was recorded, if known.
    pub recording: Option<Simulation>,
    /// Whether it was trained with masks of actions, and acts only with them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_action_mask: bool,
}

/// The quantile of predicted returns that bounds an agent's target: one in ten recorded returns
/// from such a state is higher.
pub const RETURN_QUANTILE: f32 = 0.9;

impl Agent {
    /// An agent that learns `task` from this data in so many updates, without further metadata. Options of
    /// 0 that follow from them have their values.
    pub fn new(
        task: Task,
        algorithm: AlgorithmConfig,
        data: &TrainingData,
        n_updates: u64,
    ) -> Self {
        Self {
            task,
            dataset: String::new(),
            algorithm: algorithm.for_run(has_rare_rewards(data.dataset()), n_updates, None),
            normalization: data.dataset().normalization().cloned(),
            return_scale: data.return_scale(),
            delayed_reward: false,
            recording: None,
            needs_action_mask: data.dataset().has_action_masks(),
        }
    }

    /// The agent of a checkpoint.
    ///
    /// # Errors
    /// When the checkpoint does not describe a valid agent.
    pub fn of(checkpoint: &Checkpoint) -> Result<Self, TrainError> {
        Self::from_value(&checkpoint.state.agent, &checkpoint.path)
    }

    /// The agent described by `value`, from the file or checkpoint at `path`.
    ///
    /// # Errors
    /// When it does not describe a valid agent.
    pub fn from_value(value: &serde_json::Value, path: &Path) -> Result<Self, TrainError> {
        serde_json::from_value(value.clone()).map_err(|error| TrainError::Checkpoint {
            path: path.to_owned(),
            reason: format!("not a description of an agent of this version: {error}"),
        })
    }

    /// The description as a checkpoint stores it.
    pub fn to_value(&self) -> serde_json::Value {
        // Maps have text keys, and nothing here fails to serialize.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// The protocol of its training. A return model bounds the target by its [`RETURN_QUANTILE`].
    pub fn matched(&self) -> Play {
        let return_quantile = if self.has_return_model() { RETURN_QUANTILE } else { 1.0 };
        Play {
            acting: ActingMode { return_quantile, ..ActingMode::default() },
            return_scale: self.return_scale,
            delayed_reward: self.delayed_reward,
            ..self.task.matched(self.recording.as_ref())
        }
    }

    /// Whether it has a return model.
    pub fn has_return_model(&self) -> bool {
        self.algorithm.model().is_some_and(|model| model.return_model().is_some())
    }

    /// The top percents (of the dataset by return) in its training.
    pub fn top_percents(&self) -> Vec<f32> {
        self.algorithm.model().map_or_else(Vec::new, |model| model.top_percents().to_vec())
    }

    /// Whether a temperature can be selected for it, that is, whether it samples discrete actions.
    /// Bins of continuous actions are sampled at the temperature of the protocol as well.
    pub fn has_temperature(&self) -> bool {
        let is_list = matches!(self.task.actions, ActionSpace::Discrete { .. });
        is_list && self.algorithm.has_distribution()
    }

    /// Whether its model reads the position of a context in its episode from a separate table
    /// ([`PositionsConfig::LocalAndGlobal`](overtone_model::PositionsConfig)).
    pub fn reads_global_timestep(&self) -> bool {
        self.algorithm.model().is_some_and(|model| model.reads_global_timestep())
    }

    /// A policy with these weights on `device`, under the protocol `play`, in the environment's
    /// units.
    ///
    /// # Errors
    /// When the agent cannot be trained, or the weights do not fit it.
    pub fn policy(
        &self,
        weights: &NamedTensors,
        play: &Play,
        device: &Device,
    ) -> Result<Box<dyn Policy>, ModelError> {
        let Self { task, normalization, .. } = self;
        self.algorithm.validate(&task.observations, &task.actions)?;
        let normalization = normalization.as_ref();
        let parts = PolicyParts { task, weights, normalization, play, device };
        let policy = self.algorithm.network().policy(&parts)?;
        Ok(masked(self.needs_action_mask, in_units_of(&task.actions, policy)))
    }

    /// Whether its head orders discrete actions differently from the environment.
    pub fn has_own_action_order(&self) -> bool {
        let model = self.algorithm.model();
        let order = model.and_then(|model| model.head().action_order(&self.task.actions));
        order.is_some_and(|order| !order.bin_of().is_sorted())
    }
}

/// The policy of a checkpoint's agent on `device`, under the protocol `play`.
///
/// # Errors
/// When the weights cannot be read or do not fit the agent.
pub fn policy(
    checkpoint: &Checkpoint,
    play: &Play,
    device: &Device,
) -> Result<Box<dyn Policy>, TrainError> {
    let agent = Agent::of(checkpoint)?;
    let policy = agent.policy(&checkpoint.weights()?, play, device);
    policy.map_err(|error| TrainError::Checkpoint {
        path: checkpoint.path.clone(),
        reason: format!("its state and its weights belong to different agents: {error}"),
    })
}
