//! [`Expected`]: what a recording is compared with.

use overtone_core::{ActionSpace, Task};

use crate::describe::card::DatasetCard;
use crate::read::read_frames::ReadFrames;

/// The known facts about a recording before its inspection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expected<'a> {
    /// Its description, if it has one ([`crate::description_of`] finds it).
    pub card: Option<&'a DatasetCard>,
    /// Its task, if known.
    pub task: Option<&'a Task>,
    /// Maximum number of steps of an episode, if known.
    pub horizon: Option<u64>,
    /// Whether the pictures of a log are read.
    pub frames: ReadFrames,
}

impl Expected<'_> {
    /// Number of discrete actions, if the task sets it.
    pub fn n_actions(&self) -> Option<usize> {
        match &self.task?.actions {
            ActionSpace::Discrete { names } => Some(names.len()),
            ActionSpace::Continuous { .. } => None,
        }
    }
}
