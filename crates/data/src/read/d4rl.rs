//! D4RL's files, version 2 (Fu et al. 2020): all steps one after the other, with a flag where
//! the task ended and one where the step limit did.
//!
//! Actions of a list are whole numbers in one dimension. `next_observations`, `infos` and `metadata` may be there and are not read.

use std::path::{Path, PathBuf};

use crate::columns::{Columns, Seen};
use crate::error::DataError;
use crate::expected::Expected;
use crate::findings::Findings;
use crate::lint::hdf5;
use crate::read::flags::what_is_odd;
use crate::read::hdf5_file::Hdf5File;
use crate::read::hdf5_layout::{check_d4rl, cut};
use crate::read::hdf5_paths::{find_file, hdf5_files};
use crate::recording::{Reader, Recording};

/// D4RL's format.
pub(crate) struct D4rl;

impl Reader for D4rl {
    fn name(&self) -> &'static str {
        "D4RL"
    }

    /// Any file, or a folder with an HDF5 file.
    fn reads(&self, path: &Path) -> bool {
        !path.is_dir() || hdf5_files(path).is_ok_and(|files| !files.is_empty())
    }

    fn place(&self, path: &Path) -> Result<PathBuf, DataError> {
        find_file(path)
    }

    fn open(&self, path: &Path) -> Result<Recording, DataError> {
        let file = Hdf5File::open(&self.place(path)?)?;
        check_d4rl(&file)?;
        read(&file).map(Recording::Columns)
    }

    fn lint(
        &self,
        path: &Path,
        expected: &Expected<'_>,
        findings: &mut Findings,
    ) -> Result<(), DataError> {
        hdf5::lint(path, expected, findings)
    }
}

/// Reads a file and cuts it into episodes at its flags.
fn read(file: &Hdf5File) -> Result<Columns, DataError> {
    // Before the long arrays are read.
    if !file.has("timeouts") {
        return Err(DataError::MissingDataset {
            path: file.path().to_path_buf(),
            dataset: "timeouts".into(),
            hint: "without it the episodes that a step limit ended cannot be told apart; D4RL's \
                   files have it from version 2 on (…-v2.hdf5)"
                .into(),
        });
    }
    let terminals = file.flags("terminals")?;
    let timeouts = file.flags("timeouts")?;
    let observations = file.matrix("observations")?;
    let actions = file.actions("actions")?;
    let rewards = file.column("rewards")?;
    let lengths = [
        ("actions", actions.rows()),
        ("rewards", rewards.len()),
        ("terminals", terminals.len()),
        ("timeouts", timeouts.len()),
    ];
    for (name, length) in lengths {
        if length != observations.rows {
            return Err(file.wrong_length(name, length, observations.rows, "observations"));
        }
    }
    let (episodes, finished) = cut(&terminals, &timeouts);
    let both = terminals.iter().zip(&timeouts).filter(|&(&terminal, &timeout)| terminal && timeout);
    let both = both.count();
    let mut columns = Columns {
        path: file.path().to_path_buf(),
        format: D4rl.name(),
        observations: Seen::Vectors { width: observations.width, values: observations.values },
        actions,
        rewards,
        episodes,
        finished,
        odd: Vec::new(),
    };
    columns.odd.extend(what_is_odd(&columns, both));
    Ok(columns)
}
