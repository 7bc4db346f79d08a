//! What a written recording is about, and what was written.

use std::path::PathBuf;

use overtone_core::{Simulation, Task};

/// The task and settings of a recording.
#[derive(Clone, Debug)]
pub struct About<'a> {
    /// The task.
    pub task: &'a Task,
    /// How it was simulated, if known.
    pub simulation: Option<&'a Simulation>,
    /// Gymnasium's `EnvSpec` as JSON, if any.
    pub env_spec: Option<String>,
    /// The actor, in a few words.
    pub algorithm: String,
    /// A description in a sentence or two.
    pub description: String,
}

/// The finished recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The folder, or the file.
    pub path: PathBuf,
    /// Steps.
    pub transitions: u64,
    /// Episodes.
    pub episodes: u64,
    /// SHA-256 of the contents, in hexadecimal.
    pub content_hash: String,
}
