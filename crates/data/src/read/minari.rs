//! Minari's files: a group `episode_<number>` for each episode, whose `observations` have one
//! row more than its `actions`, the last one being where the last action led.

use std::path::Path;

use overtone_core::{Episode, Outcome};

use crate::columns::{Columns, Seen};
use crate::dataset::Acted;
use crate::error::DataError;
use crate::read::flags::{outcome, what_is_odd};
use crate::read::hdf5_file::{Hdf5File, Matrix};
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

    fn open(&self, path: &Path) -> Result<Recording, DataError> {
        read(&Hdf5File::open(&find_file(path)?)?).map(Recording::Columns)
    }
}

/// Whether a file has episodes, and not D4RL's arrays.
pub(crate) fn is_minari(file: &Hdf5File) -> bool {
    !file.has("observations") && episode_names(file).is_ok_and(|names| !names.is_empty())
}

/// Names of the episodes' groups, in the order of their numbers.
///
/// # Errors
/// When the file cannot be listed.
pub fn episode_names(file: &Hdf5File) -> Result<Vec<String>, DataError> {
    let number = |name: &str| name.strip_prefix("episode_")?.parse::<u64>().ok();
    let names = file.names()?.into_iter();
    let mut numbered: Vec<(u64, String)> =
        names.filter_map(|name| Some((number(&name)?, name))).collect();
    numbered.sort_unstable();
    Ok(numbered.into_iter().map(|(_, name)| name).collect())
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
        actions: Acted::Continuous { width: log.action_width, values: log.actions },
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
    action_width: usize,
    observations: Vec<f32>,
    actions: Vec<f32>,
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
    let actions = matrix("actions", &mut log.action_width)?;
    let mut observations = matrix("observations", &mut log.observation_width)?;
    let rewards = file.column(&named("rewards"))?;
    let terminations = file.flags(&named("terminations"))?;
    let truncations = file.flags(&named("truncations"))?;
    let length = actions.rows;
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
    log.actions.extend(actions.values);
    log.rewards.extend(rewards);
    Ok(())
}
