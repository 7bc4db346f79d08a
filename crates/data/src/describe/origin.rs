//! [`Origin`]: what is known of a recording beyond its files.

use std::fmt;

use overtone_core::Simulation;
use serde::{Deserialize, Serialize};

/// The origin of data; scores on one kind say nothing about another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A dataset as published.
    Published,
    /// A small recording that comes with the project.
    Starter,
    /// Anything else, in the same format.
    Other,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Published => "published",
            Self::Starter => "starter",
            Self::Other => "other",
        })
    }
}

/// The known facts about a recording beyond its files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The origin.
    pub kind: Kind,
    /// Name of the dataset's description, if any.
    pub dataset: Option<String>,
    /// How the simulator was run, if known.
    pub recording: Option<Simulation>,
    /// Number of discrete actions, if known.
    pub n_actions: Option<usize>,
}

impl Origin {
    /// Nothing is known.
    pub fn other() -> Self {
        Self { kind: Kind::Other, dataset: None, recording: None, n_actions: None }
    }
}
