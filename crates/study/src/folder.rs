//! A study's own folder. What its runs learned is in the runs' folders; here is what no run can
//! hold: the study itself, why a cell failed, what was handed to Slurm.
//!
//! ```text
//! runs/studies/<name>/
//!   study.toml          the study, with the words it was started with
//!   cells/<cell>.log    what the cell's last process printed; <cell>.2-of-4.log where several play
//!   cells/<cell>.failed why it failed, until it is started again
//!   job.sh, report.sh   Slurm: what a node runs; yours to edit
//!   cells-1.txt, …      Slurm: the cells of each array of jobs, a line each
//!   jobs                Slurm: the number of each array, and its list
//!   report.html, …      the page
//! ```

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use crate::{error::StudyError, grid::Study};

/// The folder of studies, beside the runs.
const STUDIES: &str = "studies";
const DOCUMENT: &str = "study.toml";
/// The setting that says where runs lie.
const RUNS: &str = "runs";

/// A study's own folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudyFolder(PathBuf);

impl StudyFolder {
    /// Where a study of this name has its folder.
    pub fn of(runs: &Path, name: &str) -> Self {
        Self(runs.join(STUDIES).join(name))
    }

    /// The study that was started under a name or in a folder; the newest where the name is empty.
    ///
    /// # Errors
    /// When there is none.
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
        let found = places.into_iter().find(|place| place.join(DOCUMENT).is_file());
        found.map(Self).ok_or_else(no_study)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The study in it, whose runs lie beside its folder, wherever that is now.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn study(&self) -> Result<Study, StudyError> {
        let mut study = Study::read(&self.0.join(DOCUMENT))?;
        if let Some(runs) = self.runs() {
            study.settings.insert(RUNS.into(), runs.display().to_string().into());
        }
        Ok(study)
    }

    /// The folder of the runs, in which the folder of studies is.
    fn runs(&self) -> Option<PathBuf> {
        // `.`, `..` and a bare name do not say what they are in.
        let is_plain =
            |part: Component<'_>| !matches!(part, Component::CurDir | Component::ParentDir);
        let place = match self.0.components().all(is_plain) && self.0.components().count() > 1 {
            true => self.0.clone(),
            false => self.0.canonicalize().ok()?,
        };
        let runs = place.parent()?.parent()?;
        Some(if runs == Path::new("") { PathBuf::from(".") } else { runs.to_owned() })
    }

    /// Makes the folder and writes the study into it.
    ///
    /// # Errors
    /// When that fails.
    pub fn write(&self, study: &Study) -> Result<(), StudyError> {
        let cells = self.0.join("cells");
        fs::create_dir_all(&cells).map_err(StudyError::file(&cells))?;
        self.write_file(DOCUMENT, &study.to_toml()?).map(drop)
    }

    /// Writes a file of the folder, as a whole or not at all.
    ///
    /// # Errors
    /// When that fails.
    pub fn write_file(&self, name: &str, text: &str) -> Result<PathBuf, StudyError> {
        let path = self.0.join(name);
        overtone_files::replace(&path, text.as_bytes()).map_err(StudyError::file(&path))?;
        Ok(path)
    }

    /// The file that a cell's process prints into.
    pub fn log(&self, cell: &str) -> PathBuf {
        self.file(cell, "log")
    }

    /// Why a cell failed when it was last started; none if it did not.
    pub fn failure(&self, cell: &str) -> Option<String> {
        let text = fs::read_to_string(self.file(cell, "failed")).ok()?;
        Some(text.trim().to_owned())
    }

    /// Notes why a process failed, or that it did not. A disk that is full takes no note: whoever
    /// watches the process says it too.
    pub fn note_failure(&self, cell: &str, why: Option<&str>) {
        let path = self.file(cell, "failed");
        let _ = match why {
            Some(why) => overtone_files::replace(&path, format!("{why}\n").as_bytes()),
            None => fs::remove_file(&path),
        };
    }

    /// Keeps other processes off the same cell, as long as the answer lives.
    ///
    /// # Errors
    /// When another process does it, or the file system has no locks.
    pub fn lock(&self, cell: &str) -> Result<fs::File, StudyError> {
        let locked = locked(&self.file(cell, "lock"))?;
        locked.ok_or_else(|| StudyError::Locked { cell: cell.to_owned() })
    }

    /// Whether cells can be kept apart here: known before the first of them begins.
    ///
    /// # Errors
    /// When the file system has no locks, or nothing can be written.
    pub fn check_locks(&self) -> Result<(), StudyError> {
        let path = self.0.join("cells").join(".lock");
        locked(&path)?;
        // Another process may have asked at the same time, and removed it.
        let _ = fs::remove_file(&path);
        Ok(())
    }

    /// Whether a process does this cell. Without locks, none is known of.
    pub fn is_worked_on(&self, cell: &str) -> bool {
        overtone_files::is_locked(&self.file(cell, "lock"))
    }

    fn file(&self, cell: &str, ending: &str) -> PathBuf {
        self.0.join("cells").join(format!("{cell}.{ending}"))
    }

    /// Writes the list of what an array of jobs does: its name.
    ///
    /// # Errors
    /// When that fails.
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

    /// Notes that what is in a list was handed to Slurm as the array `job`.
    ///
    /// # Errors
    /// When that fails.
    pub fn add_job(&self, job: u64, list: &str) -> Result<(), StudyError> {
        let path = self.0.join("jobs");
        let before = fs::read_to_string(&path).unwrap_or_default();
        self.write_file("jobs", &format!("{before}{job} {list}\n")).map(drop)
    }

    /// The arrays of jobs that were handed to Slurm, each with the ids of its tasks' cells.
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

/// Makes a file and locks it; none where another process has it locked.
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
    use overtone_testkit::sentences;

    #[test]
    fn a_study_is_found_by_name_by_folder_and_as_the_newest() {
        let runs = tempfile::tempdir().unwrap();
        let study: Study =
            toml::from_str("name = \"a\"\nseeds = [1]\n[settings]\nx = 1\n").unwrap();
        let folder = StudyFolder::of(runs.path(), "a");
        assert!(StudyFolder::find(runs.path(), "").is_err());
        folder.write(&study).unwrap();
        // Its runs are where it is found.
        let mut study = study;
        study.settings.insert("runs".into(), runs.path().display().to_string().into());
        for name in ["", "a", &folder.path().display().to_string()] {
            let found = StudyFolder::find(runs.path(), name).unwrap();
            assert_eq!((found.study().unwrap(), found.path()), (study.clone(), folder.path()));
        }
        let error = StudyFolder::find(runs.path(), "b").unwrap_err().to_string();
        sentences::check(&error);
        let error = StudyFolder::find(runs.path(), "b.toml").unwrap_err().to_string();
        sentences::check(&error);
    }

    #[test]
    fn failures_and_jobs_are_kept() {
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
        sentences::check(&folder.lock(first).unwrap_err().to_string());
        assert!(folder.is_worked_on(first));
        assert!(!folder.is_worked_on(second));
        // Who only looks is waited for.
        let looked_at = fs::File::create(folder.file(second, "lock")).unwrap();
        looked_at.try_lock_shared().unwrap();
        let looking = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            drop(looked_at);
        });
        folder.lock(second).unwrap();
        looking.join().unwrap();
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
