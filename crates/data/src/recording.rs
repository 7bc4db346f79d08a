//! [`Reader`]: a file format; [`Recording`]: what one reads.

use std::path::Path;

use crate::columns::Columns;
use crate::error::DataError;
use crate::read::replay_log::ReplayLog;

/// A recording, as far as it is read when it is opened.
#[derive(Clone, Debug)]
pub enum Recording {
    /// All of it is in memory.
    Columns(Columns),
    /// Its frames are on disk, to be converted before they are trained on
    /// ([`crate::Plan`]).
    ReplayLog(ReplayLog),
}

/// A file format of recorded episodes.
pub trait Reader: Sync {
    /// The format's name, for people.
    fn name(&self) -> &'static str;

    /// Whether the file or folder at `path`, which is there, is to be read as this format;
    /// whether it can be is not asked.
    fn reads(&self, path: &Path) -> bool;

    /// Reads it.
    ///
    /// # Errors
    /// Anything wrong with the file; see [`DataError`].
    fn open(&self, path: &Path) -> Result<Recording, DataError>;
}
