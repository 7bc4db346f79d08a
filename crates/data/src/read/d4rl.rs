//! D4RL's files, version 2 (Fu et al. 2020): all steps one after the other, with a flag where
//! the task ended and one where the step limit did.
//!
//! `next_observations`, `infos` and `metadata` may be there and are not read.

use std::path::Path;

use overtone_core::{Episode, Outcome};

use crate::columns::{Columns, Seen};
use crate::dataset::Acted;
use crate::error::DataError;
use crate::read::flags::{outcome, what_is_odd};
use crate::read::hdf5_file::Hdf5File;
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

    fn open(&self, path: &Path) -> Result<Recording, DataError> {
        let file = Hdf5File::open(&find_file(path)?)?;
        check(&file)?;
        read(&file).map(Recording::Columns)
    }
}

/// Refuses a file that is not D4RL's.
///
/// # Errors
/// [`DataError::MissingDataset`], which says what there is instead.
pub(crate) fn check(file: &Hdf5File) -> Result<(), DataError> {
    if file.has("observations") {
        return Ok(());
    }
    Err(DataError::MissingDataset {
        path: file.path().to_path_buf(),
        dataset: "observations".into(),
        hint: format!(
            "{}, neither D4RL's arrays nor Minari's episodes (episode_0, …)",
            file.what_it_has()
        ),
    })
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
    let actions = file.matrix("actions")?;
    let rewards = file.column("rewards")?;
    let lengths = [
        ("actions", actions.rows),
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
        actions: Acted::Continuous { width: actions.width, values: actions.values },
        rewards,
        episodes,
        finished,
        odd: Vec::new(),
    };
    columns.odd.extend(what_is_odd(&columns, both));
    Ok(columns)
}

/// The episodes that end where a flag is set, and which of them are finished: what follows
/// the last flag is not.
pub fn cut(terminals: &[bool], timeouts: &[bool]) -> (Vec<Episode>, Vec<bool>) {
    let (mut episodes, mut finished, mut start) = (Vec::new(), Vec::new(), 0);
    for (row, (&terminal, &timeout)) in terminals.iter().zip(timeouts).enumerate() {
        if let Some(outcome) = outcome(terminal, timeout) {
            episodes.push(Episode { start, length: row + 1 - start, outcome });
            finished.push(true);
            start = row + 1;
        }
    }
    if start < terminals.len() {
        let length = terminals.len() - start;
        episodes.push(Episode { start, length, outcome: Outcome::Truncated });
        finished.push(false);
    }
    (episodes, finished)
}

#[cfg(test)]
mod tests {
    use overtone_core::{Episode, Outcome};

    use super::cut;

    #[track_caller]
    fn check(flags: &str, expected: &[(usize, usize, Outcome, bool)]) {
        let set = |flag: char| flags.chars().map(|c| c == flag || c == 'b').collect::<Vec<_>>();
        let (episodes, finished) = cut(&set('t'), &set('l'));
        let expected: (Vec<_>, Vec<_>) = expected
            .iter()
            .map(|&(start, length, outcome, done)| (Episode { start, length, outcome }, done))
            .unzip();
        assert_eq!((episodes, finished), expected, "{flags}");
    }

    #[test]
    fn episodes_end_at_flags() {
        use Outcome::{Terminated, Truncated};
        // `t` the task's end, `l` the limit's, `b` both.
        check("", &[]);
        check("...", &[(0, 3, Truncated, false)]);
        check("..t", &[(0, 3, Terminated, true)]);
        check(
            "t.l.",
            &[(0, 1, Terminated, true), (1, 2, Truncated, true), (3, 1, Truncated, false)],
        );
        check(".b", &[(0, 2, Terminated, true)]);
    }
}
