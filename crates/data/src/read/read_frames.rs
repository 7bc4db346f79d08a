//! [`ReadFrames`]: the frames of a log that are read only for an inspection.

use std::fs;

use crate::read::replay_log::ReplayLog;
use crate::read::run_folder::Column;

/// Compressed bytes of frames up to which they are read through: a second or two of work.
const READ_FRAMES_UP_TO: u64 = 256_000_000;

/// Which frames an inspection reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadFrames {
    /// All of them in logs of up to 256 MB, else none.
    #[default]
    IfSmall,
    /// All: a published run takes minutes.
    Always,
    /// None: truncation and pictures in padding slots go unnoticed.
    Never,
}

impl ReadFrames {
    /// Whether the frames of `log` are read.
    pub(crate) fn of(self, log: &ReplayLog) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::IfSmall => frame_bytes(log) <= READ_FRAMES_UP_TO,
        }
    }
}

fn frame_bytes(log: &ReplayLog) -> u64 {
    log.files
        .iter()
        .map(|file| log.folder.column(Column::Observation, file.number))
        .map(|path| fs::metadata(path).map_or(0, |data| data.len()))
        .sum()
}
