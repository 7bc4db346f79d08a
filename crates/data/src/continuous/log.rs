//! [`ContinuousLog`]: a recording of continuous control as its file holds it.

use std::fmt;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use overtone_core::{Episode, Outcome};
use serde::{Deserialize, Serialize};

use crate::continuous::{d4rl, minari};
use crate::error::DataError;
use crate::hdf5_file::Hdf5File;

/// What each number of an action may be.
pub const ACTION_RANGE: RangeInclusive<f32> = -1.0..=1.0;
/// Where Minari keeps a dataset's file.
const MINARI_FILES: [&str; 2] = ["main_data.hdf5", "data/main_data.hdf5"];

/// How a file is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// All steps in arrays of one file, with flags where episodes end (Fu et al. 2020; v2).
    D4rl,
    /// A group of arrays for each episode (the Farama Foundation's format).
    Minari,
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::D4rl => "D4RL",
            Self::Minari => "Minari",
        })
    }
}

/// All steps of a recording, in the file's order and units.
#[derive(Clone, Debug, PartialEq)]
pub struct ContinuousLog {
    /// The file.
    pub path: PathBuf,
    /// How it is laid out.
    pub format: LogFormat,
    /// Numbers of an observation.
    pub observation_width: usize,
    /// Numbers of an action.
    pub action_width: usize,
    /// `[steps, observation_width]`, what each action was chosen on.
    pub observations: Vec<f32>,
    /// `[steps, action_width]`
    pub actions: Vec<f32>,
    /// `[steps]`, raw.
    pub rewards: Vec<f32>,
    /// Episodes, which cover all steps in order; none is empty. One that is not finished has
    /// the outcome `Truncated`: the end of the recording cut it.
    pub episodes: Vec<Episode>,
    /// `[episodes]`, whether the task or its step limit ended it. In a D4RL file all are but
    /// perhaps the last.
    pub finished: Vec<bool>,
    /// Anything that is not as the format has it.
    pub odd: Vec<String>,
}

impl ContinuousLog {
    /// Reads a D4RL or Minari file, whichever it is; `path` may be the folder of one (see
    /// [`find_file`]).
    ///
    /// # Errors
    /// When it is neither, or anything in it is not as the format has it; see [`DataError`].
    pub fn open(path: &Path) -> Result<Self, DataError> {
        let file = Hdf5File::open(&find_file(path)?)?;
        match format_of(&file)? {
            LogFormat::D4rl => d4rl::read(&file),
            LogFormat::Minari => minari::read(&file),
        }
    }

    /// Numbers of an observation and of an action in the file at `path`, of which little is
    /// read.
    ///
    /// # Errors
    /// When the file is of neither format or has no such arrays.
    pub fn widths(path: &Path) -> Result<(usize, usize), DataError> {
        let file = Hdf5File::open(&find_file(path)?)?;
        let prefix = match format_of(&file)? {
            LogFormat::D4rl => String::new(),
            LogFormat::Minari => format!("{}/", minari::first_episode(&file)?),
        };
        let width = |name: &str| {
            let name = format!("{prefix}{name}");
            let shape = file.shape(&name)?;
            match shape.as_slice() {
                &[_, width] => Ok(width),
                _ => Err(file.wrong_shape(&name, &shape, "[rows, width]")),
            }
        };
        Ok((width("observations")?, width("actions")?))
    }

    /// Number of steps.
    pub fn n_transitions(&self) -> usize {
        self.rewards.len()
    }

    /// The episodes that the task or its step limit ended.
    pub fn finished_episodes(&self) -> impl Iterator<Item = &Episode> {
        self.episodes.iter().zip(&self.finished).filter(|(_, finished)| **finished).map(|(e, _)| e)
    }

    /// Undiscounted sum of an episode's rewards.
    pub fn episode_return(&self, episode: &Episode) -> f64 {
        self.rewards[episode.range()].iter().map(|&reward| f64::from(reward)).sum()
    }

    /// Steps with a number of their action outside [`ACTION_RANGE`].
    pub fn actions_outside(&self) -> usize {
        let outside = |action: &&[f32]| action.iter().any(|number| !ACTION_RANGE.contains(number));
        self.actions.chunks_exact(self.action_width).filter(outside).count()
    }

    /// Adds to [`ContinuousLog::odd`] what both formats may have.
    pub(super) fn checked(mut self, both_flags: usize) -> Self {
        if both_flags > 0 {
            self.odd.push(format!(
                "steps flagged as the task's end and as a limit's, taken as the task's: {both_flags}"
            ));
        }
        let outside = self.actions_outside();
        if outside > 0 {
            self.odd.push(format!("actions outside [-1, 1]: {outside}"));
        }
        self
    }
}

/// How an episode's last step ends it: `None` where neither flag is set.
pub(super) fn outcome(terminated: bool, truncated: bool) -> Option<Outcome> {
    match (terminated, truncated) {
        (true, _) => Some(Outcome::Terminated),
        (false, true) => Some(Outcome::Truncated),
        (false, false) => None,
    }
}

/// The HDF5 file at `path`: itself, or where it is a folder, Minari's `data/main_data.hdf5`
/// there or the only HDF5 file in it.
///
/// # Errors
/// When nothing is at `path`, or no one file.
pub fn find_file(path: &Path) -> Result<PathBuf, DataError> {
    if !path.is_dir() {
        return Ok(path.to_path_buf());
    }
    let mut files = hdf5_files(path)?;
    match files.len() {
        0 => Err(DataError::NoLog {
            path: path.to_path_buf(),
            reason: "no HDF5 file here; D4RL's and Minari's names end in .hdf5".into(),
        }),
        1 => Ok(files.remove(0)),
        n => Err(DataError::NoLog {
            path: path.to_path_buf(),
            reason: format!("{n} HDF5 files here; name one of them"),
        }),
    }
}

/// HDF5 files in a folder, sorted; only Minari's where it is there.
pub(crate) fn hdf5_files(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let minari = MINARI_FILES.iter().map(|name| folder.join(name)).find(|path| path.is_file());
    if let Some(file) = minari {
        return Ok(vec![file]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(DataError::io(folder, "list"))? {
        let path = entry.map_err(DataError::io(folder, "list"))?.path();
        if path.extension().is_some_and(|extension| extension == "hdf5" || extension == "h5") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// How a file is laid out.
///
/// # Errors
/// [`DataError::MissingDataset`] when it is neither D4RL's nor Minari's.
pub(crate) fn format_of(file: &Hdf5File) -> Result<LogFormat, DataError> {
    if file.has("observations") {
        return Ok(LogFormat::D4rl);
    }
    if !minari::episode_names(file)?.is_empty() {
        return Ok(LogFormat::Minari);
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
