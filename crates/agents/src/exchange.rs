//! An agent in its own directory: `model.safetensors`, and `overtone.json` with everything else
//! that acting and `import` need.

use std::{fs, path::Path};

use overtone_model::{
    device,
    weights::{self, NamedTensors},
};
use overtone_train::{TrainError, TrainState, checkpoint::sha256};
use serde::{Deserialize, Serialize};

use crate::agent::Agent;

/// The file of weights.
pub const WEIGHTS: &str = "model.safetensors";
/// The file that describes the weights.
pub const DESCRIPTION: &str = "overtone.json";
/// The layout of [`DESCRIPTION`] that this program writes.
pub const LAYOUT: u32 = 2;

/// Description of the weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Version of this layout.
    pub layout: u32,
    /// Version of the program that wrote it.
    pub overtone: String,
    /// SHA-256 of [`WEIGHTS`], if that file has an agent's weights under our own names.
    pub sha256: String,
    /// The checkpoint's state: agent, data and training.
    pub state: TrainState,
    /// The run's settings, as TOML.
    pub settings: String,
    /// The acting mode, if one was selected: the contents of the checkpoint's `acting.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<serde_json::Value>,
}

impl Description {
    /// Reads `overtone.json` in `folder`.
    ///
    /// # Errors
    /// When it is missing, damaged or has another layout.
    pub fn read(folder: &Path) -> Result<Self, TrainError> {
        #[derive(Deserialize)]
        struct Version {
            layout: u32,
        }
        let path = folder.join(DESCRIPTION);
        let text =
            fs::read(&path).map_err(|source| TrainError::Io { path: path.clone(), source })?;
        let wrong = |reason: String| TrainError::Checkpoint { path: path.clone(), reason };
        let damaged = |error: serde_json::Error| wrong(error.to_string());
        let Version { layout } = serde_json::from_slice(&text).map_err(damaged)?;
        if layout != LAYOUT {
            return Err(wrong(format!(
                "has layout {layout}, but this program reads {LAYOUT}: another version wrote it"
            )));
        }
        serde_json::from_slice(&text).map_err(damaged)
    }

    /// The agent of this description.
    ///
    /// # Errors
    /// When the agent is not valid for this program.
    pub fn agent(&self, folder: &Path) -> Result<Agent, TrainError> {
        Agent::from_value(&self.state.agent, &folder.join(DESCRIPTION))
    }
}

/// The contents of `folder`, complete and consistent.
///
/// # Errors
/// Names the file that is missing or damaged, or that does not fit the other file.
pub fn read(folder: &Path) -> Result<(Description, Agent, NamedTensors), TrainError> {
    let description = Description::read(folder)?;
    let agent = description.agent(folder)?;
    let path = folder.join(WEIGHTS);
    let wrong = |reason: String| TrainError::Checkpoint { path: path.clone(), reason };
    if sha256(&path)? != description.sha256 {
        return Err(wrong(format!("it is damaged: its SHA-256 differs from {DESCRIPTION}")));
    }
    let tensors = weights::load(&path)?;
    let device = device::choose("cpu")?.device;
    agent
        .policy(&tensors, &agent.matched(), &device)
        .map_err(|error| wrong(format!("{DESCRIPTION} describes another agent: {error}")))?;
    Ok((description, agent, tensors))
}
