//! The folder of one run of a DQN-replay log: where its files are and which there are.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{DataError, Fault};

/// The default run in a game's folder with several.
pub const FIRST_RUN: &str = "1";
/// A run or a game that no folder's name identifies.
pub(crate) const UNKNOWN: &str = "unknown";

/// A stored column of a replay log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// `u8 [slots, 84, 84]`
    Observation,
    /// `i32 [slots]`
    Action,
    /// `f32 [slots]`, clipped to [-1, 1]
    Reward,
    /// `u8 [slots]`, 1 at an episode's last step
    Terminal,
}

impl Column {
    /// All four.
    pub const ALL: [Self; 4] = [Self::Observation, Self::Action, Self::Reward, Self::Terminal];

    fn name(self) -> &'static str {
        match self {
            Self::Observation => "observation",
            Self::Action => "action",
            Self::Reward => "reward",
            Self::Terminal => "terminal",
        }
    }
}

/// The files `$store$_observation_ckpt.<number>.gz` and so on of one run.
#[derive(Clone, Debug)]
pub struct RunFolder {
    /// The folder that holds the files themselves.
    pub folder: PathBuf,
    /// The game, as the folders above are named; `unknown` where they do not say.
    pub game: String,
    /// The run, as the folder above is named; `unknown` where it does not say.
    pub run: String,
    /// The files' numbers, ascending.
    pub numbers: Vec<u32>,
}

impl RunFolder {
    /// Finds a run's files below `path`, which is a game's folder (`Seaquest`, whose run `1`
    /// is taken), a run's folder (`Seaquest/1`), or the folder of the files themselves
    /// (`Seaquest/1/replay_logs`).
    ///
    /// # Errors
    /// When `path` does not exist, or holds no run or no clear one.
    pub fn find(path: &Path) -> Result<Self, DataError> {
        if !path.exists() {
            return Err(DataError::missing(
                path,
                "give the folder of a game (…/Seaquest), of a run (…/Seaquest/1), or its \
                       replay_logs",
            ));
        }
        let absolute = path.canonicalize().map_err(DataError::io(path, "open"))?;
        if let Some(found) = Self::in_files_folder(&absolute)? {
            return Ok(found);
        }
        if let Some(found) = Self::in_files_folder(&absolute.join("replay_logs"))? {
            return Ok(found);
        }
        let mut runs = Vec::new();
        for entry in fs::read_dir(&absolute).map_err(DataError::io(path, "list"))? {
            let entry = entry.map_err(DataError::io(path, "list"))?;
            if let Some(found) = Self::in_files_folder(&entry.path().join("replay_logs"))? {
                runs.push(found);
            }
        }
        runs.sort_by(|a, b| a.run.cmp(&b.run));
        match runs.len() {
            0 => Err(Fault::NoLog(
                "no DQN-replay files here; expected <run>/replay_logs/$store$_action_ckpt.0.gz \
                         and its fellows"
                    .into(),
            )
            .at(path)),
            1 => Ok(runs.remove(0)),
            n => {
                let first = runs.iter().position(|found| found.run == FIRST_RUN);
                first.map(|first| runs.swap_remove(first)).ok_or_else(|| {
                    Fault::NoLog(format!(
                        "{n} runs here and none is called 1; name the run's folder"
                    ))
                    .at(path)
                })
            }
        }
    }

    /// The run whose files lie directly in `folder`, if there are any.
    fn in_files_folder(folder: &Path) -> Result<Option<Self>, DataError> {
        if !folder.is_dir() {
            return Ok(None);
        }
        let mut numbers = BTreeSet::new();
        for entry in fs::read_dir(folder).map_err(DataError::io(folder, "list"))? {
            let name = entry.map_err(DataError::io(folder, "list"))?.file_name();
            numbers.extend(name.to_str().and_then(number_of));
        }
        if numbers.is_empty() {
            return Ok(None);
        }
        let named = |path: Option<&Path>| {
            path.and_then(Path::file_name)
                .map_or_else(|| UNKNOWN.to_owned(), |name| name.to_string_lossy().into_owned())
        };
        let (run, game) = if folder.ends_with("replay_logs") {
            (folder.parent(), folder.parent().and_then(Path::parent))
        } else {
            (None, Some(folder))
        };
        Ok(Some(Self {
            folder: folder.to_path_buf(),
            game: named(game),
            run: named(run),
            numbers: numbers.into_iter().collect(),
        }))
    }

    /// Path of a column's file.
    pub fn column(&self, column: Column, number: u32) -> PathBuf {
        self.folder.join(format!("$store$_{}_ckpt.{number}.gz", column.name()))
    }

    /// Path of the file with the count of all slots ever written.
    pub fn add_count(&self, number: u32) -> PathBuf {
        self.folder.join(format!("add_count_ckpt.{number}.gz"))
    }

    /// Path of the file with the slots that Dopamine would not sample. It is not read: in the order
    /// of the adds, these slots are ordinary steps.
    pub fn invalid_range(&self, number: u32) -> PathBuf {
        self.folder.join(format!("invalid_range_ckpt.{number}.gz"))
    }
}

/// The number in a stored column's file name.
fn number_of(name: &str) -> Option<u32> {
    let (column, number) = name.strip_prefix("$store$_")?.split_once("_ckpt.")?;
    Column::ALL.iter().find(|known| known.name() == column)?;
    number.strip_suffix(".gz")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_run_from_each_of_its_folders() {
        let dir = tempfile::tempdir().unwrap();
        let logs = dir.path().join("Pong/2/replay_logs");
        fs::create_dir_all(&logs).unwrap();
        for number in [10, 9] {
            fs::write(logs.join(format!("$store$_action_ckpt.{number}.gz")), b"").unwrap();
        }
        fs::write(logs.join("$store$_other_ckpt.3.gz"), b"").unwrap();
        for path in ["Pong", "Pong/2", "Pong/2/replay_logs"] {
            let found = RunFolder::find(&dir.path().join(path)).unwrap();
            assert_eq!((found.game.as_str(), found.run.as_str()), ("Pong", "2"), "{path}");
            assert_eq!(found.numbers, [9, 10]);
        }
    }

    #[test]
    fn takes_run_1_of_several_and_refuses_to_guess() {
        let dir = tempfile::tempdir().unwrap();
        let add = |run: &str| {
            let logs = dir.path().join(run).join("replay_logs");
            fs::create_dir_all(&logs).unwrap();
            fs::write(logs.join("$store$_reward_ckpt.0.gz"), b"").unwrap();
        };
        assert!(matches!(
            RunFolder::find(dir.path()),
            Err(DataError::At { fault: Fault::NoLog { .. }, .. })
        ));
        add("3");
        add("2");
        assert!(matches!(
            RunFolder::find(dir.path()),
            Err(DataError::At { fault: Fault::NoLog { .. }, .. })
        ));
        add("1");
        assert_eq!(RunFolder::find(dir.path()).unwrap().run, "1");
        let missing = RunFolder::find(&dir.path().join("nowhere"));
        assert!(matches!(missing, Err(DataError::Missing { .. })));
    }
}
