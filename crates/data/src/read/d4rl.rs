//! D4RL's files, version 2 (Fu et al. 2020): all steps one after the other, with a flag where
//! the task ended and one where the step limit did.
//!
//! Discrete actions are one whole number a row. `infos/action_log_probs` may have the
//! log-probability of each. `next_observations` may exist: where it differs from the next row, a warning
//! says so. Other `infos` and `metadata` may exist: an inspection looks for numbers there that are not
//! finite, but training does not read them.

use std::path::{Path, PathBuf};

use crate::describe::check::hdf5;
use crate::describe::check::inspection::Inspection;
use crate::describe::findings::Findings;
use crate::error::DataError;
use crate::read::foreign;
use crate::read::hdf5_arrays::{Arrays, columns};
use crate::read::hdf5_file::Hdf5File;
use crate::read::hdf5_layout::Hdf5Layout;
use crate::read::hdf5_paths::{find_file, hdf5_files};
use crate::read::minari_spaces::MinariSpaces;
use crate::read::recording::{Reader, Recording};
use crate::read::source::{Source, missing};

/// D4RL's format.
pub(crate) struct D4rl {
    /// Whether bytes with rows and columns are numbers, and not pictures.
    pub numbers: bool,
}

impl Reader for D4rl {
    fn name(&self) -> &'static str {
        Hdf5Layout::D4rl.name()
    }

    /// Any file, or a folder with an HDF5 file.
    fn reads(&self, path: &Path) -> bool {
        !path.is_dir() || hdf5_files(path).is_ok_and(|files| !files.is_empty())
    }

    fn as_numbers(&self) -> Option<&'static dyn Reader> {
        Some(&Self { numbers: true })
    }

    fn place(&self, path: &Path) -> Result<PathBuf, DataError> {
        find_file(path)
    }

    fn open(&self, path: &Path) -> Result<Recording, DataError> {
        let file = Hdf5File::open(&self.place(path)?)?.showing_numbers(self.numbers);
        check_d4rl(&file)?;
        let spaces = MinariSpaces::default();
        let parts = std::iter::once_with(|| Arrays::read(&file, Hdf5Layout::D4rl, None, &spaces));
        let (columns, _) = columns(&file, Hdf5Layout::D4rl, parts)?;
        Ok(Recording::Columns(columns))
    }

    fn check(&self, path: &Path, findings: &mut Findings<'_>) -> Result<Inspection, DataError> {
        let file = Hdf5File::open(path)?.showing_numbers(self.numbers);
        check_d4rl(&file)?;
        hdf5::check_d4rl(&file, findings)
    }
}

/// Refuses a file that is not D4RL's.
///
/// # Errors
/// `Fault::Unread` for another library's file, or `Fault::MissingDataset`, which says
/// what there is instead.
fn check_d4rl(file: &Hdf5File) -> Result<(), DataError> {
    if let Some(error) = foreign::by_names(file) {
        return Err(error);
    }
    // D4RL describes the recording in it.
    file.claims().note_read("metadata");
    if file.has("observations") {
        return Ok(());
    }
    Err(missing(
        file,
        "observations",
        "D4RL's arrays (observations, actions, rewards, terminals, timeouts) or Minari's \
         episodes (episode_0, …)",
    ))
}
