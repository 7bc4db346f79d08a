//! The directory of a study. Training results are in the run directories. The study's directory
//! holds the study itself, errors of cells, and submitted Slurm jobs.
//!
//! ```text
//! runs/studies/<name>/
//!   study.toml          the study, including the words of its command
//!   cells/<cell>.log    output of the cell's last process; <cell>.2-of-4.log for parallel parts
//!   cells/<cell>.failed the cell's error, until the cell is started again
//!   job.sh, report.sh   Slurm: scripts for a node, which you can edit
//!   cells-1.txt, …      Slurm: the cells of each job array, one on each line
//!   jobs                Slurm: the id of each job array and its list of cells
//!   report.html, …      the page
//! ```

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use crate::{error::StudyError, grid::Study};

/// The directory of studies inside the directory of runs.
const STUDIES: &str = "studies";
const DOCUMENT: &str = "study.toml";
/// The setting of the directory of runs.
const RUNS: &str = "runs";

/// The directory of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudyFolder(PathBuf);

impl StudyFolder {
    /// The directory of the study `name`.
    pub fn of(runs: &Path, name: &str) -> Self {
        Self(runs.join(STUDIES).join(name))
    }

    /// Finds a started study by its name or its directory. An empty name finds the newest study.
    ///
    /// # Errors
    /// When there is no such study.
    pub fn find(runs: &Path, name: &str) -> Result<Self, StudyError> {
        let all = runs.join(STUDIES);
        let no_study = || StudyError::NoStudy { name: name.to_owned(), folder: all.clone() };
        if name.is_empty() {
            let none = || StudyError::None { folder: all.clone() };
            let entries = fs::read_dir(&all).map_err(|_| none())?;
            let written = |path: PathBuf| {
                Some((fs::metadata(path.join(DOCUMENT)).ok()?.modified().ok()?, path))
            };
            let newest = entries.flatten().filter_map(|entry| written(entry.path())).max();
            return newest.map(|(_, path)| Self(path)).ok_or_else(none);
        }
        let places = [all.join(name), PathBuf::from(name)];
        let place = places.into_iter().find(|place| place.join(DOCUMENT).is_file());
        place.map(Self).ok_or_else(no_study)
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Reads the study. Its directory of runs is the current location of this directory, even if it
    /// was moved.
    ///
    /// # Errors
    /// When the study cannot be read.
    pub fn study(&self) -> Result<Study, StudyError> {
        let mut study = Study::read(&self.0.join(DOCUMENT))?;
        if let Some(runs) = self.runs() {
            study.settings.insert(RUNS.into(), runs.display().to_string().into());
        }
        Ok(study)
    }

    /// The directory of runs that contains the directory of studies.
    fn runs(&self) -> Option<PathBuf> {
        // The parents of `.`, `..` and a bare name are unknown without `canonicalize`.
        let is_plain =
            |part: Component<'_>| !matches!(part, Component::CurDir | Component::ParentDir);
        let place = if self.0.components().all(is_plain) && self.0.components().count() > 1 {
            self.0.clone()
        } else {
            self.0.canonicalize().ok()?
        };
        let runs = place.parent()?.parent()?;
        Some(if runs == Path::new("") { PathBuf::from(".") } else { runs.to_owned() })
    }

    /// Creates the directory and writes the study into it.
    ///
    /// # Errors
    /// When the directory or a file cannot be written.
    pub fn write(&self, study: &Study) -> Result<(), StudyError> {
        let cells = self.0.join("cells");
        fs::create_dir_all(&cells).map_err(StudyError::file(&cells))?;
        self.write_file(DOCUMENT, &study.to_toml()?).map(drop)
    }

    /// Writes a file into the directory atomically.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_file(&self, name: &str, text: &str) -> Result<PathBuf, StudyError> {
        let path = self.0.join(name);
        overtone_files::replace(&path, text.as_bytes()).map_err(StudyError::file(&path))?;
        Ok(path)
    }

    /// Log file of a cell's process.
    pub fn log(&self, cell: &str) -> PathBuf {
        self.file(cell, "log")
    }

    /// The error of a cell's last process; `None` if it did not fail.
    pub fn failure(&self, cell: &str) -> Option<String> {
        let text = fs::read_to_string(self.file(cell, "failed")).ok()?;
        Some(text.trim().to_owned())
    }

    /// Stores the error of a process, or removes it for `None`. Errors of writing are ignored, such
    /// as a full disk: the parent process also reports the failure.
    pub fn note_failure(&self, cell: &str, why: Option<&str>) {
        let path = self.file(cell, "failed");
        let _ = match why {
            Some(why) => overtone_files::replace(&path, format!("{why}\n").as_bytes()),
            None => fs::remove_file(&path),
        };
    }

    /// Locks a cell against other processes while the returned file lives.
    ///
    /// # Errors
    /// When another process holds the lock, or the file system does not support locks.
    pub fn lock(&self, cell: &str) -> Result<fs::File, StudyError> {
        let locked = locked(&self.file(cell, "lock"))?;
        locked.ok_or_else(|| StudyError::Locked { cell: cell.to_owned() })
    }

    /// Checks that cells can be locked, before the first one starts.
    ///
    /// # Errors
    /// When the file system does not support locks, or the directory is not writable.
    pub fn check_locks(&self) -> Result<(), StudyError> {
        let path = self.0.join("cells").join(".lock");
        locked(&path)?;
        // Another process can have removed the file during its own check.
        let _ = fs::remove_file(&path);
        Ok(())
    }

    /// Whether a process is working on this cell. Without locks this is unknown, and `false`.
    pub fn is_in_use(&self, cell: &str) -> bool {
        overtone_files::is_locked(&self.file(cell, "lock"))
    }

    fn file(&self, cell: &str, ending: &str) -> PathBuf {
        self.0.join("cells").join(format!("{cell}.{ending}"))
    }

    /// Writes the list of cells of a job array and returns its file name.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn list(&self, cells: &[&str]) -> Result<String, StudyError> {
        let mut n = 1;
        while self.0.join(format!("cells-{n}.txt")).exists() {
            n += 1;
        }
        let name = format!("cells-{n}.txt");
        let lines: String = cells.iter().map(|cell| format!("{cell}\n")).collect();
        self.write_file(&name, &lines)?;
        Ok(name)
    }

    /// Records that the cells in `list` were submitted to Slurm as the array `job`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn add_job(&self, job: u64, list: &str) -> Result<(), StudyError> {
        let path = self.0.join("jobs");
        let before = fs::read_to_string(&path).unwrap_or_default();
        self.write_file("jobs", &format!("{before}{job} {list}\n")).map(drop)
    }

    /// The submitted job arrays, each with the cell ids of its tasks.
    pub fn jobs(&self) -> Vec<(u64, Vec<String>)> {
        let text = fs::read_to_string(self.0.join("jobs")).unwrap_or_default();
        let array = |line: &str| {
            let (job, list) = line.split_once(' ')?;
            let cells = fs::read_to_string(self.0.join(list)).ok()?;
            Some((job.parse().ok()?, cells.lines().map(str::to_owned).collect()))
        };
        text.lines().filter_map(array).collect()
    }
}

/// Creates a file and locks it; `None` if another process holds the lock.
fn locked(path: &Path) -> Result<Option<fs::File>, StudyError> {
    let file = fs::File::create(path).map_err(StudyError::file(path))?;
    match overtone_files::lock(&file) {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(source)) => {
            Err(StudyError::NoLocks { path: path.to_path_buf(), source })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overtone_testkit::check_error;

    #[test]
    fn a_study_is_found_by_name_by_directory_and_as_the_newest() {
        let runs = tempfile::tempdir().unwrap();
        let study: Study =
            toml::from_str("name = \"a\"\nseeds = [1]\n[settings]\nx = 1\n").unwrap();
        let folder = StudyFolder::of(runs.path(), "a");
        assert!(StudyFolder::find(runs.path(), "").is_err());
        folder.write(&study).unwrap();
        // The directory of runs is where the study was found.
        let mut study = study;
        study.settings.insert("runs".into(), runs.path().display().to_string().into());
        for name in ["", "a", &folder.path().display().to_string()] {
            let located = StudyFolder::find(runs.path(), name).unwrap();
            assert_eq!((located.study().unwrap(), located.path()), (study.clone(), folder.path()));
        }
        for name in ["b", "b.toml"] {
            let error = StudyFolder::find(runs.path(), name).unwrap_err();
            check_error!(error, StudyError::NoStudy { .. });
        }
    }

    #[test]
    fn failures_and_jobs_are_stored() {
        let runs = tempfile::tempdir().unwrap();
        let study: Study =
            toml::from_str("name = \"a\"\nseeds = [1, 2]\n[settings]\nx = 1\n").unwrap();
        let folder = StudyFolder::of(runs.path(), "a");
        folder.write(&study).unwrap();
        let [first, second] = ["all_s1", "all_s2"];
        folder.note_failure(first, Some("no data"));
        assert_eq!(folder.failure(first).as_deref(), Some("no data"));
        assert_eq!(folder.failure(second), None);
        let held = folder.lock(first).unwrap();
        check_error!(folder.lock(first).unwrap_err(), StudyError::Locked { cell } if cell == first);
        assert!(folder.is_in_use(first));
        assert!(!folder.is_in_use(second));
        // A lock waits for a short shared lock, which a status check takes.
        let checked = fs::File::create(folder.file(second, "lock")).unwrap();
        checked.try_lock_shared().unwrap();
        let checking = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            drop(checked);
        });
        folder.lock(second).unwrap();
        checking.join().unwrap();
        drop(held);
        folder.lock(first).unwrap();
        folder.note_failure(first, None);
        assert_eq!(folder.failure(first), None);
        for (job, list) in [(7, &["all_s2"][..]), (8, &["all_s1", "all_s2"])] {
            let name = folder.list(list).unwrap();
            folder.add_job(job, &name).unwrap();
        }
        let ids = |list: &[&str]| list.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        assert_eq!(folder.jobs(), [(7, ids(&["all_s2"])), (8, ids(&["all_s1", "all_s2"]))]);
    }
}
