//! Minari's files: a group `episode_<number>` for each episode, whose `observations` have one
//! row more than its `actions`, the last one being where the last action led.

use overtone_core::{Episode, Outcome};

use crate::continuous::log::{ContinuousLog, LogFormat, outcome};
use crate::error::DataError;
use crate::hdf5_file::{Hdf5File, Matrix};

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

/// Name of the first episode's group.
///
/// # Errors
/// When there is none.
pub fn first_episode(file: &Hdf5File) -> Result<String, DataError> {
    episode_names(file)?.into_iter().next().ok_or_else(|| DataError::MissingDataset {
        path: file.path().to_path_buf(),
        dataset: "episode_0".into(),
        hint: file.what_it_has(),
    })
}

/// Reads a file's episodes, one after the other.
///
/// # Errors
/// When an array is missing, of another shape or length, or holds an impossible value, or
/// when episodes are missing.
pub fn read(file: &Hdf5File) -> Result<ContinuousLog, DataError> {
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
    let mut log = ContinuousLog {
        path: file.path().to_path_buf(),
        format: LogFormat::Minari,
        observation_width: 0,
        action_width: 0,
        observations: Vec::new(),
        actions: Vec::new(),
        rewards: Vec::new(),
        episodes: Vec::new(),
        finished: Vec::new(),
        odd: Vec::new(),
    };
    let mut strange = Strange::default();
    for name in &names {
        add_episode(file, name, &mut log, &mut strange)?;
    }
    for (n, what) in [
        (strange.empty, "episodes without a step, left out"),
        (strange.early, "episodes flagged as ended before their last step, taken as whole"),
    ] {
        if n > 0 {
            log.odd.push(format!("{what}: {n}"));
        }
    }
    Ok(log.checked(strange.both))
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
    log: &mut ContinuousLog,
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
