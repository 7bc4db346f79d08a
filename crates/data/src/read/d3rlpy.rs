//! d3rlpy's files. Its `dump` writes, from version 2.1 on, arrays `observations_0`, `actions_0`,
//! `rewards_0` and one flag `terminated_0` for each episode; before, all steps one after the other,
//! with `terminals` where the task ended and `episode_terminals` where an episode did. An episode
//! that the task did not end was cut by a limit.

use std::path::{Path, PathBuf};

use overtone_core::{Episode, Outcome};

use crate::error::{DataError, Fault};
use crate::read::acted::acted;
use crate::read::column::{ActionColumn, ObservationColumn};
use crate::read::columns::{Columns, Mixture};
use crate::read::hdf5_file::Hdf5File;
use crate::read::hdf5_layout::{check_total, cut};
use crate::read::hdf5_paths::find_file;
use crate::read::observed::observed;
use crate::read::recording::{Reader, Recording};
use crate::read::source::{
    Source, column, flags, same_rows, unread, unread_arrays, wrong_shape, wrong_type,
};

/// Flags of a file of a version before 2.1, where an episode ends for whichever reason.
const EPISODE_ENDS: &str = "episode_terminals";
/// Whether actions are discrete, in such a file.
const IS_LIST: &str = "discrete_action";

/// Arrays about the file itself.
const ABOUT: [&str; 4] = ["columns", "version", "num_episodes", "create_mask"];

/// d3rlpy's format.
pub(crate) struct D3rlpy {
    /// Whether bytes with rows and columns are numbers, and not pictures.
    pub numbers: bool,
}

impl Reader for D3rlpy {
    fn name(&self) -> &'static str {
        "d3rlpy"
    }

    fn reads(&self, path: &Path) -> bool {
        find_file(path).and_then(|file| Hdf5File::open(&file)).is_ok_and(|file| is_d3rlpy(&file))
    }

    fn as_numbers(&self) -> Option<&'static dyn Reader> {
        Some(&Self { numbers: true })
    }

    fn place(&self, path: &Path) -> Result<PathBuf, DataError> {
        find_file(path)
    }

    fn open(&self, path: &Path) -> Result<Recording, DataError> {
        let file = Hdf5File::open(&self.place(path)?)?.showing_numbers(self.numbers);
        ABOUT.iter().for_each(|name| file.claims().note_read(name));
        if is_first_form(&file) {
            return self.first_form(&file).map(Recording::Columns);
        }
        if file.has("observations_0_0") {
            let what = "`observations_0_0`, observations of several parts,".into();
            return Err(unread(&file, what, "save them as one array".into()));
        }
        let mut columns = Columns {
            path: file.path().to_path_buf(),
            format: self.name(),
            ..Columns::new(
                ObservationColumn::Vectors { width: 0, values: Vec::new() },
                ActionColumn::Continuous { width: 0, values: Vec::new() },
                Vec::new(),
                Vec::new(),
            )
        };
        let mut number = 0;
        while file.has(&format!("observations_{number}")) {
            add(&file, number, &mut columns)?;
            number += 1;
        }
        if file.has("num_episodes") {
            check_total(
                &file,
                "observations",
                file.wholes("num_episodes")?.first().copied(),
                number,
            )?;
        }
        columns.check()?;
        columns.odd = file.claims().rounding.sentences();
        columns.stored.unread = unread_arrays(&file, "");
        Ok(Recording::Columns(columns))
    }
}

fn is_d3rlpy(file: &Hdf5File) -> bool {
    is_first_form(file) || ["observations_0", "observations_0_0"].iter().any(|name| file.has(name))
}

fn is_first_form(file: &Hdf5File) -> bool {
    file.has("observations") && file.has(EPISODE_ENDS)
}

impl D3rlpy {
    /// Reads a file of a version before 2.1.
    fn first_form(&self, file: &Hdf5File) -> Result<Columns, DataError> {
        let rewards = column(file, "rewards")?;
        let (terminals, ends) = (flags(file, "terminals")?, flags(file, EPISODE_ENDS)?);
        let (seen, done) = (observed(file, "observations", None)?, acted(file, "actions", None)?);
        let lengths = [
            ("rewards", rewards.len()),
            ("observations", seen.rows()),
            ("actions", done.rows()),
            ("terminals", terminals.len()),
            (EPISODE_ENDS, ends.len()),
        ];
        same_rows(file, &lengths)?;
        let says_list =
            file.has(IS_LIST) && file.wholes(IS_LIST)?.iter().any(|&is_list| is_list != 0);
        if says_list && !matches!(done, ActionColumn::Discrete { .. }) {
            let expected = "whole numbers, because of `discrete_action`";
            return Err(wrong_type(file, "actions", "real numbers", expected));
        }
        let (episodes, finished) = cut(&terminals, &ends);
        let stored = seen.stored(file, "observations", None, true);
        let mut columns = Columns {
            path: file.path().to_path_buf(),
            format: self.name(),
            finished,
            mixture: Mixture::default(),
            stored,
            ..Columns::new(seen.seen(), done, rewards, episodes)
        };
        columns.check()?;
        columns.odd = file.claims().rounding.sentences();
        columns.stored.unread = unread_arrays(file, "");
        Ok(columns)
    }
}

/// Adds episode `number` of the file.
fn add(file: &Hdf5File, number: usize, columns: &mut Columns) -> Result<(), DataError> {
    let named = |name: &str| format!("{name}_{number}");
    let [observations, actions, reward] = ["observations", "actions", "rewards"].map(named);
    let rewards = column(file, &reward)?;
    let steps = rewards.len();
    let seen = observed(file, &observations, None)?;
    let stored = seen.stored(file, &observations, None, false);
    columns.stored = std::mem::take(&mut columns.stored).and(stored);
    let done = acted(file, &actions, None)?;
    same_rows(file, &[(&reward, steps), (&observations, seen.rows()), (&actions, done.rows())])?;
    let ended = file.wholes(&named("terminated"))?;
    let outcome = match ended.as_slice() {
        [0] => Outcome::Truncated,
        [1] => Outcome::Terminated,
        _ => {
            let got = file.shape(&named("terminated"))?;
            return Err(wrong_shape(file, &named("terminated"), &got, "one flag, 0 or 1"));
        }
    };
    let first = columns.episodes.is_empty();
    let other = |name: &str| {
        Fault::Inconsistent(format!("`{}` is of another form than `{name}_0`", named(name)))
            .at(file.path())
    };
    if first {
        (columns.observations, columns.actions) = (seen.seen(), done);
    } else if !columns.observations.extend(seen.seen()) {
        return Err(other("observations"));
    } else if !columns.actions.extend(done) {
        return Err(other("actions"));
    }
    if steps > 0 {
        columns.episodes.push(Episode { start: columns.rewards.len(), length: steps, outcome });
        columns.finished.push(true);
    }
    columns.rewards.extend(rewards);
    Ok(())
}
