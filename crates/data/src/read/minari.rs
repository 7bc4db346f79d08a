//! Minari's files: a group `episode_<number>` for each episode, whose `observations` have one
//! row more than its `actions`, the last one being where the last action led.

use std::path::{Path, PathBuf};

use overtone_core::{Episode, Outcome};

use crate::columns::{Columns, Seen};
use crate::dataset::Acted;
use crate::error::DataError;
use crate::expected::Expected;
use crate::findings::Findings;
use crate::lint::hdf5;
use crate::read::flags::{outcome, what_is_odd};
use crate::read::hdf5_file::{Hdf5File, Matrix};
use crate::read::hdf5_layout::{episode_names, is_minari};
use crate::read::hdf5_paths::find_file;
use crate::recording::{Reader, Recording};

/// The Farama Foundation's format.
pub(crate) struct Minari;

impl Reader for Minari {
    fn name(&self) -> &'static str {
        "Minari"
    }

    fn reads(&self, path: &Path) -> bool {
        find_file(path).and_then(|file| Hdf5File::open(&file)).is_ok_and(|file| is_minari(&file))
    }

    fn place(&self, path: &Path) -> Result<PathBuf, DataError> {
        find_file(path)
    }

    fn open(&self, path: &Path) -> Result<Recording, DataError> {
        read(&Hdf5File::open(&self.place(path)?)?).map(Recording::Columns)
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

/// Reads a file's episodes, one after the other.
///
/// # Errors
/// When an array is missing, of another shape or length, or holds an impossible value, or
/// when episodes are missing.
fn read(file: &Hdf5File) -> Result<Columns, DataError> {
    let names = episode_names(file)?;
    if let Some(total) = file.attribute("total_episodes")
        && usize::try_from(total) != Ok(names.len())
    {
        return Err(DataError::Inconsistent {
            path: file.path().to_path_buf(),
            reason: format!(
                "it says total_episodes is {total}, and has {}; fetch or copy it again",
                names.len()
            ),
        });
    }
    let mut log = Rows::default();
    let mut strange = Strange::default();
    for name in &names {
        add_episode(file, name, &mut log, &mut strange)?;
    }
    let mut columns = Columns {
        path: file.path().to_path_buf(),
        format: Minari.name(),
        observations: Seen::Vectors { width: log.observation_width, values: log.observations },
        actions: log.actions.unwrap_or(Acted::Continuous { width: 0, values: Vec::new() }),
        rewards: log.rewards,
        episodes: log.episodes,
        finished: log.finished,
        odd: Vec::new(),
    };
    for (n, what) in [
        (strange.empty, "episodes without a step, left out"),
        (strange.early, "episodes flagged as ended before their last step, taken as whole"),
    ] {
        if n > 0 {
            columns.odd.push(format!("{what}: {n}"));
        }
    }
    columns.odd.extend(what_is_odd(&columns, strange.both));
    Ok(columns)
}

/// What was read so far.
#[derive(Default)]
struct Rows {
    observation_width: usize,
    observations: Vec<f32>,
    actions: Option<Acted>,
    rewards: Vec<f32>,
    episodes: Vec<Episode>,
    finished: Vec<bool>,
}

/// Counts of what should not be.
#[derive(Default)]
struct Strange {
    empty: usize,
    early: usize,
    both: usize,
}

fn add_episode(
    file: &Hdf5File,
    episode: &str,
    log: &mut Rows,
    strange: &mut Strange,
) -> Result<(), DataError> {
    let named = |array: &str| format!("{episode}/{array}");
    let matrix = |array: &str, width: &mut usize| -> Result<Matrix, DataError> {
        let matrix = file.matrix(&named(array))?;
        // The first episode says how wide all are.
        if *width == 0 {
            *width = matrix.width;
        }
        if matrix.width != *width {
            let (got, expected) = ([matrix.rows, matrix.width], format!("[rows, {width}]"));
            return Err(file.wrong_shape(&named(array), &got, &expected));
        }
        Ok(matrix)
    };
    let actions = file.actions(&named("actions"))?;
    let mut observations = matrix("observations", &mut log.observation_width)?;
    let rewards = file.column(&named("rewards"))?;
    let terminations = file.flags(&named("terminations"))?;
    let truncations = file.flags(&named("truncations"))?;
    let length = actions.rows();
    for (array, got, expected) in [
        ("observations", observations.rows, length + 1),
        ("rewards", rewards.len(), length),
        ("terminations", terminations.len(), length),
        ("truncations", truncations.len(), length),
    ] {
        if got != expected {
            return Err(file.wrong_length(&named(array), got, expected, &named("actions")));
        }
    }
    let Some(last) = length.checked_sub(1) else {
        strange.empty += 1;
        return Ok(());
    };
    let flags = || terminations.iter().zip(&truncations);
    strange.early += usize::from(flags().take(last).any(|(&ended, &cut)| ended || cut));
    strange.both += flags().filter(|&(&ended, &cut)| ended && cut).count();
    let ending = outcome(terminations[last], truncations[last]);
    log.episodes.push(Episode {
        start: log.rewards.len(),
        length,
        outcome: ending.unwrap_or(Outcome::Truncated),
    });
    log.finished.push(ending.is_some());
    observations.values.truncate(length * observations.width);
    log.observations.extend(observations.values);
    add_actions(file, &named("actions"), &mut log.actions, actions)?;
    log.rewards.extend(rewards);
    Ok(())
}

/// Adds an episode's actions, which are of one form in all episodes.
fn add_actions(
    file: &Hdf5File,
    array: &str,
    all: &mut Option<Acted>,
    actions: Acted,
) -> Result<(), DataError> {
    match (all, actions) {
        (all @ None, actions) => *all = Some(actions),
        (
            Some(Acted::Discrete { n_actions, values }),
            Acted::Discrete { n_actions: n_here, values: here },
        ) => {
            *n_actions = n_here.max(*n_actions);
            values.extend(here);
        }
        (
            Some(Acted::Continuous { width, values }),
            Acted::Continuous { width: here, values: numbers },
        ) if *width == here => values.extend(numbers),
        (Some(first), actions) => {
            let expected = match first {
                Acted::Discrete { .. } => "[rows]".to_owned(),
                Acted::Continuous { width, .. } => format!("[rows, {width}]"),
            };
            let got = match actions {
                Acted::Discrete { values, .. } => vec![values.len()],
                Acted::Continuous { width, values } => vec![values.len() / width.max(1), width],
            };
            return Err(file.wrong_shape(array, &got, &expected));
        }
    }
    Ok(())
}
