//! [`Reader`]: a file format; [`Recording`]: what one reads.

use std::path::{Path, PathBuf};

use crate::describe::check::hdf5::look_at;
use crate::describe::check::inspection::Inspection;
use crate::describe::check::log::LogInspection;
use crate::describe::findings::Findings;
use crate::error::DataError;
use crate::read::column::ObservationColumn;
use crate::read::columns::Columns;
use crate::read::form::TableColumns;
use crate::read::replay_log::ReplayLog;
use crate::read::spaces::Space;

/// A recording, as far as it is read when it is opened.
#[derive(Clone, Debug)]
pub enum Recording {
    /// All of it is in memory.
    Columns(Columns),
    /// Its frames are on disk, to be converted before they are trained on
    /// ([`crate::Preparation`]).
    ReplayLog(ReplayLog),
}

/// A file format of recorded episodes.
pub trait Reader: Sync {
    /// The format's name, for people.
    fn name(&self) -> &'static str;

    /// Whether the file or folder at `path`, which is there, is to be read as this format;
    /// whether it can be is not asked.
    fn reads(&self, path: &Path) -> bool;

    /// The file that is read at `path`, or the folder of the files.
    ///
    /// # Errors
    /// When there is none, or no clear one.
    fn place(&self, path: &Path) -> Result<PathBuf, DataError> {
        Ok(path.to_path_buf())
    }

    /// The same format, with numbers in place of pictures; `None` of one that has pictures alone.
    fn as_numbers(&self) -> Option<&'static dyn Reader> {
        None
    }

    /// The same format, whose columns or parts are these; `None` of one that names its own.
    fn with_columns(&self, _columns: &TableColumns) -> Option<Box<dyn Reader>> {
        None
    }

    /// The task, if file or folder names identify it.
    fn task(&self, _path: &Path) -> Option<String> {
        None
    }

    /// Whether it holds logs of frames, which are converted before they are trained on.
    fn is_log(&self) -> bool {
        false
    }

    /// The space of its actions, if it describes it.
    ///
    /// # Errors
    /// When a description is there and cannot be read.
    fn action_space(&self, _path: &Path) -> Result<Option<Space>, DataError> {
        Ok(None)
    }

    /// Reads it.
    ///
    /// # Errors
    /// Anything wrong with the file; see [`DataError`].
    fn open(&self, path: &Path) -> Result<Recording, DataError>;

    /// Reads it, and where the last action of each episode led, `[episodes]`, where the format
    /// holds that.
    ///
    /// # Errors
    /// As [`Reader::open`].
    fn open_with_last(
        &self,
        path: &Path,
    ) -> Result<(Recording, Option<ObservationColumn>), DataError> {
        Ok((self.open(path)?, None))
    }

    /// Inspects it once, for its contents and its defects. A format of arrays that can be read one
    /// by one inspects the sound ones even if another is not. A format without its own inspection
    /// is read first.
    ///
    /// # Errors
    /// Why it cannot be trained on, which is a finding as well.
    fn check(&self, path: &Path, findings: &mut Findings<'_>) -> Result<Inspection, DataError> {
        match self.open(path)? {
            Recording::Columns(columns) => {
                look_at(&columns, action_space(self, path, &columns)?.as_ref(), findings)
            }
            Recording::ReplayLog(log) => {
                Ok(Inspection::Log(Box::new(LogInspection::of(&log, false))))
            }
        }
    }
}

/// The space of the actions of a recording, if its words for them or its description show it.
///
/// # Errors
/// When a description is there and cannot be read.
pub(crate) fn action_space(
    reader: &(impl Reader + ?Sized),
    path: &Path,
    columns: &Columns,
) -> Result<Option<Space>, DataError> {
    match &columns.stored.action_names {
        Some(names) => Ok(Some(Space::Names(names.clone()))),
        None => reader.action_space(path),
    }
}
