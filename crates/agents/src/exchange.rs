//! An agent in a folder of its own: `model.safetensors`, and `overtone.json` with all that
//! playing and `import` need besides.

use std::{fs, path::Path};

use overtone_model::{
    device,
    weights::{self, NamedTensors},
};
use overtone_train::{TrainError, TrainState, checkpoint::sha256};
use serde::{Deserialize, Serialize};

use crate::Agent;

/// The file of weights.
pub const WEIGHTS: &str = "model.safetensors";
/// The file that says what they are.
pub const DESCRIPTION: &str = "overtone.json";
/// The layout of [`DESCRIPTION`] that this program writes.
pub const LAYOUT: u32 = 2;

/// What the weights are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Version of this layout.
    pub layout: u32,
    /// Version of the program that wrote it.
    pub overtone: String,
    /// SHA-256 of [`WEIGHTS`], where it holds an agent's weights in our own names.
    pub sha256: String,
    /// What the checkpoint says of agent, data and training.
    pub state: TrainState,
    /// The run's settings, as TOML.
    pub settings: String,
    /// How the agent is played, where that was chosen: what the checkpoint's `acting.json` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<serde_json::Value>,
}

impl Description {
    /// Reads `overtone.json` in `folder`.
    ///
    /// # Errors
    /// When it is missing, damaged or of another layout.
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
                "layout {layout}, and this program reads {LAYOUT}: another version wrote it"
            )));
        }
        serde_json::from_slice(&text).map_err(damaged)
    }

    /// The agent that it describes.
    ///
    /// # Errors
    /// When it is none that this program knows.
    pub fn agent(&self, folder: &Path) -> Result<Agent, TrainError> {
        Agent::from_value(&self.state.agent, &folder.join(DESCRIPTION))
    }
}

/// What `folder` holds, whole and fitting together.
///
/// # Errors
/// Names the file that is missing or damaged, or that does not fit the other.
pub fn read(folder: &Path) -> Result<(Description, Agent, NamedTensors), TrainError> {
    let description = Description::read(folder)?;
    let agent = description.agent(folder)?;
    let path = folder.join(WEIGHTS);
    let wrong = |reason: String| TrainError::Checkpoint { path: path.clone(), reason };
    if sha256(&path)? != description.sha256 {
        return Err(wrong(format!("it is damaged: its SHA-256 is not the one in {DESCRIPTION}")));
    }
    let tensors = weights::load(&path)?;
    let device = device::choose("cpu")?.device;
    agent
        .policy(&tensors, &agent.matched(), &device)
        .map_err(|error| wrong(format!("{DESCRIPTION} describes another agent: {error}")))?;
    Ok((description, agent, tensors))
}
