//! Minari's files: a group `episode_<number>` for each episode, whose `observations` have one
//! row more than its `actions`, the last one being where the last action led.
//!
//! `infos/action_log_probs` of an episode is read if it has one number for each step. Minari's own
//! `infos` have one row more, and are not read.

use std::path::{Path, PathBuf};

use crate::describe::check::hdf5;
use crate::describe::check::inspection::Inspection;
use crate::describe::findings::Findings;
use crate::error::DataError;
use crate::read::column::ObservationColumn;
use crate::read::hdf5_arrays::{Arrays, columns};
use crate::read::hdf5_file::Hdf5File;
use crate::read::hdf5_layout::{Hdf5Layout, check_total, episode_names, is_minari};
use crate::read::hdf5_paths::find_file;
use crate::read::minari_spaces::{MinariSpaces, other_form, refuse_other_form};
use crate::read::recording::{Reader, Recording};
use crate::read::spaces::Space;

/// The Farama Foundation's format.
pub(crate) struct Minari {
    /// Whether bytes with rows and columns are numbers, and not pictures.
    pub numbers: bool,
}

impl Reader for Minari {
    fn name(&self) -> &'static str {
        Hdf5Layout::Minari.name()
    }

    fn reads(&self, path: &Path) -> bool {
        other_form(path).is_some()
            || find_file(path)
                .and_then(|file| Hdf5File::open(&file))
                .is_ok_and(|file| is_minari(&file))
    }

    fn as_numbers(&self) -> Option<&'static dyn Reader> {
        Some(&Self { numbers: true })
    }

    fn place(&self, path: &Path) -> Result<PathBuf, DataError> {
        if let Some((description, form)) = other_form(path) {
            refuse_other_form(&description, Some(&form))?;
        }
        find_file(path)
    }

    fn action_space(&self, path: &Path) -> Result<Option<Space>, DataError> {
        let file = Hdf5File::open(&self.place(path)?)?;
        Ok(MinariSpaces::of(&file)?.actions)
    }

    fn open(&self, path: &Path) -> Result<Recording, DataError> {
        Ok(self.open_with_last(path)?.0)
    }

    fn open_with_last(
        &self,
        path: &Path,
    ) -> Result<(Recording, Option<ObservationColumn>), DataError> {
        let file = Hdf5File::open(&self.place(path)?)?.showing_numbers(self.numbers);
        let names = episode_names(&file);
        let spaces = MinariSpaces::of(&file)?;
        check_total(&file, "episode", spaces.total_episodes, names.len())?;
        let parts =
            names.iter().map(|name| Arrays::read(&file, Hdf5Layout::Minari, Some(name), &spaces));
        let (columns, last) = columns(&file, Hdf5Layout::Minari, parts)?;
        Ok((Recording::Columns(columns), last))
    }

    fn check(&self, path: &Path, findings: &mut Findings<'_>) -> Result<Inspection, DataError> {
        let file = Hdf5File::open(path)?.showing_numbers(self.numbers);
        hdf5::check_minari(&file, findings)
    }
}
