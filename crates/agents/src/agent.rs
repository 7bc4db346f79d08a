//! [`Agent`]: what was learned, as a checkpoint says it beside the weights.

use std::path::Path;

use burn::tensor::Device;
use overtone_core::{ActingMode, ActionSpace, Normalization, Play, Policy, Simulation, Task};
use overtone_model::{ModelError, weights::NamedTensors};
use overtone_train::{Checkpoint, TrainError, TrainingData};
use serde::{Deserialize, Serialize};

use crate::{AlgorithmConfig, options::Restored, scaled_actions::in_units_of};

/// What an agent is and where it acts: with the weights, all that playing needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// What it learned to play.
    pub task: Task,
    /// Which of the task's datasets it learned from, such as `medium`; may be empty.
    pub dataset: String,
    /// How it learned, and what it is made of.
    pub algorithm: AlgorithmConfig,
    /// What is done to vectors before the agent sees them.
    pub normalization: Option<Normalization>,
    /// What returns and rewards are divided by.
    pub return_scale: f32,
    /// Whether all reward came with an episode's last step.
    pub delayed_reward: bool,
    /// How the data was recorded, where it is known.
    pub recording: Option<Simulation>,
}

/// The quantile of predicted returns that bounds an agent's target: one in ten recorded returns from
/// such a state is higher.
pub const RETURN_QUANTILE: f32 = 0.9;

impl Agent {
    /// An agent that learns `task` from this data, of which no more is known.
    pub fn new(task: Task, algorithm: AlgorithmConfig, data: &TrainingData) -> Self {
        Self {
            task,
            dataset: String::new(),
            algorithm,
            normalization: data.dataset().normalization().cloned(),
            return_scale: data.return_scale(),
            delayed_reward: false,
            recording: None,
        }
    }

    /// The agent of a checkpoint.
    ///
    /// # Errors
    /// When the checkpoint describes none that this program knows.
    pub fn of(checkpoint: &Checkpoint) -> Result<Self, TrainError> {
        Self::from_value(&checkpoint.state.agent, &checkpoint.path)
    }

    /// The agent that `value` in the file or checkpoint at `path` describes.
    ///
    /// # Errors
    /// When it describes none that this program knows.
    pub fn from_value(value: &serde_json::Value, path: &Path) -> Result<Self, TrainError> {
        serde_json::from_value(value.clone()).map_err(|error| TrainError::Checkpoint {
            path: path.to_owned(),
            reason: format!("it describes no agent of this version: {error}"),
        })
    }

    /// As a checkpoint stores it.
    pub fn to_value(&self) -> serde_json::Value {
        // Maps have text keys, and nothing here fails to serialize.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Playing as it was trained. A return model bounds the target by its [`RETURN_QUANTILE`].
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

    /// The top percents of episodes that it was trained with.
    pub fn top_percents(&self) -> Vec<f32> {
        self.algorithm.model().map_or_else(Vec::new, |model| model.top_percents().to_vec())
    }

    /// Whether a temperature may be chosen for it: where actions are drawn from a list. Bins of
    /// real values are drawn at the temperature of the play as well.
    pub fn has_temperature(&self) -> bool {
        let is_list = matches!(self.task.actions, ActionSpace::Discrete { .. });
        is_list && self.algorithm.has_distribution()
    }

    /// Whether its model reads where in an episode a context is, by a table of its own
    /// ([`PositionsConfig::LocalAndGlobal`](overtone_model::PositionsConfig)).
    pub fn reads_global_timestep(&self) -> bool {
        self.algorithm.model().is_some_and(|model| model.reads_global_timestep())
    }

    /// It with these weights, played so on `device`, in the units of the environment.
    ///
    /// # Errors
    /// When it is one that cannot be trained, or the weights are another's.
    pub fn policy(
        &self,
        weights: &NamedTensors,
        play: &Play,
        device: &Device,
    ) -> Result<Box<dyn Policy>, ModelError> {
        let Self { task, normalization, .. } = self;
        self.algorithm.validate(&task.observations, &task.actions)?;
        let normalization = normalization.as_ref();
        let policy =
            self.algorithm.policy(&Restored { task, weights, normalization, play, device })?;
        Ok(in_units_of(&task.actions, policy))
    }

    /// Whether its head orders a list of actions otherwise than the environment numbers them.
    pub fn has_own_action_order(&self) -> bool {
        let model = self.algorithm.model();
        let order = model.and_then(|model| model.head().action_order(&self.task.actions));
        order.is_some_and(|order| !order.bin_of().is_sorted())
    }
}

/// The policy of a checkpoint's agent on `device`, played so.
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
        reason: format!("its state describes another agent than its weights are: {error}"),
    })
}
