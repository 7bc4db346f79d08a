//! [`Inspection`]: what a recording holds.

use std::fmt;

use serde::Serialize;

use super::columns::ColumnsInspection;
use super::log::LogInspection;
use super::spread::Returns;

/// Counts of the contents of a recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Inspection {
    /// A recording in memory.
    Columns(Box<ColumnsInspection>),
    /// A log of frames.
    Log(Box<LogInspection>),
}

impl Inspection {
    /// Finished episodes.
    pub fn episodes(&self) -> u64 {
        match self {
            Self::Columns(inspection) => inspection.episodes,
            Self::Log(inspection) => inspection.episodes,
        }
    }

    /// Returns of the finished episodes.
    pub fn returns(&self) -> &Returns {
        match self {
            Self::Columns(inspection) => &inspection.returns,
            Self::Log(inspection) => &inspection.returns,
        }
    }
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Columns(inspection) => inspection.fmt(f),
            Self::Log(inspection) => inspection.fmt(f),
        }
    }
}
