//! What a dataset of continuous control says about itself.

use overtone_core::Simulation;
use serde::{Deserialize, Serialize};

use crate::continuous::log::LogFormat;
use crate::continuous::selection::Fragment;
use crate::manifest::Kind;

/// What is known of a recording beyond its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContinuousOrigin {
    /// Where it comes from.
    pub kind: Kind,
    /// Name of the dataset's description, where there is one.
    pub dataset: Option<String>,
    /// How the robot was simulated, where it is known.
    pub recording: Option<Simulation>,
}

impl ContinuousOrigin {
    /// Nothing is known.
    pub fn other() -> Self {
        Self { kind: Kind::Other, dataset: None, recording: None }
    }
}

/// How many of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContinuousCounts {
    /// Transitions to train on.
    pub rows: usize,
    /// Episodes to train on.
    pub episodes: usize,
    /// Transitions of the file.
    pub log_rows: usize,
    /// Finished episodes of the file.
    pub log_episodes: usize,
    /// Transitions left out because their episode is not finished.
    pub fragment_rows: usize,
    /// Transitions left out because their episode's return is not among the best.
    pub filtered_rows: usize,
}

/// What a dataset says about itself, for checkpoints and reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContinuousManifest {
    /// Name of the file read, without its folder.
    pub file: String,
    /// How it is laid out.
    pub format: LogFormat,
    /// What is known of it beyond that.
    pub origin: ContinuousOrigin,
    /// Numbers of an observation.
    pub observation_width: usize,
    /// Numbers of an action.
    pub action_width: usize,
    /// What became of unfinished episodes.
    pub fragment: Fragment,
    /// Percent of the transitions that the best episodes were to make up.
    pub best_percent: f64,
    /// Whether each episode's whole return was moved to its last step.
    pub delayed_reward: bool,
    /// SHA-256 of all that training sees: equal hashes, equal training data.
    pub content_hash: String,
    /// How many of everything.
    pub counts: ContinuousCounts,
}
