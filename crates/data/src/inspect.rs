//! What a recording holds, counted.

mod columns;
mod log;
pub mod spread;

use std::fmt;
use std::path::Path;

use serde::Serialize;

pub use columns::{ColumnsInspection, Range};
pub use log::LogInspection;

use crate::error::DataError;
use crate::read::{self, read_frames::ReadFrames};
use crate::recording::Recording;
use spread::Returns;

/// What a recording holds.
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

/// Inspects the recording at `path`, of any format; of a log, frames are read where that is
/// quick.
///
/// # Errors
/// Anything wrong with the files; see [`DataError`].
pub fn inspect(path: &Path) -> Result<Inspection, DataError> {
    inspect_with(path, ReadFrames::IfSmall)
}

/// As [`inspect`], saying which frames of a log to read.
///
/// # Errors
/// As [`inspect`].
pub fn inspect_with(path: &Path, frames: ReadFrames) -> Result<Inspection, DataError> {
    Ok(match read::open(path)? {
        Recording::Columns(columns) => {
            Inspection::Columns(Box::new(ColumnsInspection::of(&columns)))
        }
        Recording::ReplayLog(log) => Inspection::Log(Box::new(LogInspection::of(&log, frames)?)),
    })
}
