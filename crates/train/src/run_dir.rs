//! A run's directory with all files of one training run.
//!
//! ```text
//! runs/<model>-s<seed>-<task>-<dataset>/
//!   config.toml            the resolved configuration
//!   provenance.jsonl       one line per process that worked on it: machine and first step
//!   init/                  the checkpoint of its initial weights (if it has one)
//!   metrics.csv            one row per logged step
//!   held_out.csv           the loss on held-out episodes, one row per planned checkpoint
//!   checkpoints.csv        evaluations of checkpoints during training, one row per figure
//!   events.out.tfevents.*  the same three for TensorBoard
//!   not-finite-step-*.json the batch at which the loss became non-finite
//!   checkpoints/step-…/    model, optimizer and state
//!   finished               exists when all updates are done
//!   .lock                  held by the process that trains or evaluates here
//!   evaluation.json        the newest evaluation, under the training protocol
//!   evaluation-STEP.json   the same for several checkpoints in one evaluation
//!   evaluation-released.json, -v5, -sample, -t0.5, …  under another protocol
//! ```

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::error::TrainError;

/// Name of the resolved configuration in a run's directory.
pub const CONFIG: &str = "config.toml";

/// A run's directory.
#[derive(Clone, Debug)]
pub struct RunDir(PathBuf);

/// Lock of the one process that trains in a run's directory; the system releases it when the
/// process ends, for whatever reason.
#[derive(Debug)]
pub struct RunLock(#[expect(dead_code, reason = "held, not read")] fs::File);

impl RunDir {
    /// Creates `root/name`, or `root/name-2`, `-3`, … if it exists already.
    ///
    /// # Errors
    /// When the directory cannot be created.
    pub fn create(root: &Path, name: &str) -> Result<Self, TrainError> {
        fs::create_dir_all(root).map_err(TrainError::io(root))?;
        let mut attempt = 1;
        loop {
            let path = match attempt {
                1 => root.join(name),
                n => root.join(format!("{name}-{n}")),
            };
            match fs::create_dir(&path) {
                Ok(()) => {
                    let checkpoints = path.join("checkpoints");
                    fs::create_dir(&checkpoints).map_err(TrainError::io(checkpoints))?;
                    return Ok(Self(path));
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => attempt += 1,
                Err(error) => return Err(TrainError::Io { path, source: error }),
            }
        }
    }

    /// Opens an existing run: `run` is its directory, or its name under `root`.
    ///
    /// # Errors
    /// When the run does not exist.
    pub fn open(root: &Path, run: &str) -> Result<Self, TrainError> {
        let places = [PathBuf::from(run), root.join(run)];
        if let Some(path) = places.iter().find(|path| path.join(CONFIG).is_file()) {
            return Ok(Self(path.clone()));
        }
        let what = match places.iter().find(|path| path.is_dir()) {
            Some(path) => format!("{} is not a run: it does not have a {CONFIG}", path.display()),
            None => {
                format!("run `{run}` does not exist in this directory or in {}", root.display())
            }
        };
        Err(TrainError::NoRun { what })
    }

    /// The run with the newest configuration file.
    ///
    /// # Errors
    /// When `root` does not contain a run.
    pub fn newest(root: &Path) -> Result<Self, TrainError> {
        let newest = Self::all(root).into_iter().next();
        newest.ok_or_else(|| TrainError::NoRun {
            what: format!("{} does not contain a run", root.display()),
        })
    }

    /// Every run in `root`, sorted by the time of its configuration file, newest first.
    pub fn all(root: &Path) -> Vec<Self> {
        let entries = fs::read_dir(root).map(|entries| entries.flatten().collect::<Vec<_>>());
        let mut runs: Vec<_> = entries
            .unwrap_or_default()
            .into_iter()
            .filter_map(|entry| {
                let written = fs::metadata(entry.path().join(CONFIG)).ok()?.modified().ok()?;
                Some((written, entry.path()))
            })
            .collect();
        runs.sort();
        runs.into_iter().rev().map(|(_, path)| Self(path)).collect()
    }

    /// Keeps other processes from training here, as long as the result lives.
    ///
    /// # Errors
    /// When another process holds the lock.
    pub fn lock(&self) -> Result<RunLock, TrainError> {
        let path = self.0.join(".lock");
        let file = fs::File::create(&path).map_err(TrainError::io(&path))?;
        match overtone_files::lock(&file) {
            Ok(()) => Ok(RunLock(file)),
            Err(fs::TryLockError::WouldBlock) => Err(TrainError::Locked { run: self.0.clone() }),
            Err(fs::TryLockError::Error(source)) => {
                Err(TrainError::NoLocks { run: self.0.clone(), source })
            }
        }
    }

    /// Whether a process trains or evaluates here. If the file system has no locks, or the lock
    /// file cannot be opened, no process can, so the result is `false`.
    pub fn is_in_use(&self) -> bool {
        overtone_files::is_locked(&self.0.join(".lock"))
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The directory of its checkpoints.
    pub fn checkpoints(&self) -> PathBuf {
        self.0.join("checkpoints")
    }

    /// Writes a file of the run atomically.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, contents: &[u8]) -> Result<PathBuf, TrainError> {
        let path = self.0.join(name);
        overtone_files::replace(&path, contents).map_err(TrainError::io(&path))?;
        Ok(path)
    }
}

/// Writes a file and waits until it is on disk.
pub(crate) fn write_synced(path: &Path, contents: &[u8]) -> Result<(), TrainError> {
    let mut file = fs::File::create(path).map_err(TrainError::io(path))?;
    std::io::Write::write_all(&mut file, contents).map_err(TrainError::io(path))?;
    file.sync_all().map_err(TrainError::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use overtone_testkit::check_error;

    #[test]
    fn one_process_trains_in_a_run() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDir::create(root.path(), "a").unwrap();
        assert!(!run.is_in_use(), "there is no lock yet");
        let held = run.lock().unwrap();
        assert!(run.is_in_use());
        check_error!(run.lock().unwrap_err(), TrainError::Locked { .. });
        drop(held);
        assert!(!run.is_in_use());
        run.lock().unwrap();
    }

    #[test]
    fn runs_never_share_a_folder_and_the_newest_is_found() {
        let root = tempfile::tempdir().unwrap();
        assert!(RunDir::newest(root.path()).is_err());
        let first = RunDir::create(root.path(), "a").unwrap();
        let second = RunDir::create(root.path(), "a").unwrap();
        assert_ne!(first.path(), second.path());
        first.write(CONFIG, b"x = 1\n").unwrap();
        assert_eq!(RunDir::newest(root.path()).unwrap().path(), first.path());
        std::thread::sleep(std::time::Duration::from_millis(20));
        second.write(CONFIG, b"x = 1\n").unwrap();
        assert_eq!(RunDir::newest(root.path()).unwrap().path(), second.path());
        assert_eq!(RunDir::open(root.path(), "a-2").unwrap().path(), second.path());
        check_error!(RunDir::open(root.path(), "b").unwrap_err(), TrainError::NoRun { .. });
    }
}
