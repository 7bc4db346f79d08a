//! Dataset descriptions: one TOML file per dataset in `datasets/`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use overtone_core::names::{self, plain};
use overtone_core::{Simulation, Task};
use serde::{Deserialize, Serialize};

use crate::describe::origin::{Kind, Origin};
use crate::error::{DataError, Fault};
use crate::plain_path::is_plain;

/// A dataset's description: its origin and its recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetCard {
    /// The dataset's name, equal to the file's without `.toml`.
    pub name: String,
    /// The suite of its tasks, such as `ale`.
    pub suite: String,
    /// One sentence.
    pub title: String,
    /// A short text that names the data in the program's output; with `{task}` and `{dataset}`.
    pub label: String,
    /// The kind of data.
    pub kind: Kind,
    /// Name of its files' format, such as `D4RL`.
    pub format: String,
    /// The file or folder of each recording, relative to `datasets/`, with `{task}` and
    /// `{dataset}` for a name of each list below.
    pub path: String,
    /// Its tasks, by the names of its files; empty for every task of the suite, by its title.
    pub tasks: Vec<String>,
    /// Its recordings of each task: named for the recorded policy, or numbered.
    pub datasets: Vec<String>,
    /// A hint: how to get it.
    pub source: String,
    /// The license terms.
    pub licence: String,
    /// The method of recording.
    pub made: String,
    /// File with the SHA-256 sums of its files, relative to `datasets/`.
    pub checksums: Option<String>,
    /// Counts, if known: of the recording `<task>_<dataset>`, or of `each`.
    #[serde(default)]
    pub counts: BTreeMap<String, CardCounts>,
    /// The simulator's settings in the recording.
    pub recording: Simulation,
    /// Addresses of its files.
    pub download: Option<Download>,
}

/// Counts of one recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardCounts {
    /// Files (all columns counted as one).
    pub files: Option<u64>,
    /// Slots of each file.
    pub slots_per_file: Option<u64>,
    /// Steps: padding is not counted, steps of an unfinished episode are.
    pub transitions: Option<u64>,
    /// Finished episodes.
    pub episodes: Option<u64>,
    /// Size on disk.
    pub bytes: Option<u64>,
}

/// Addresses of a dataset's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Download {
    /// The address of a file, `http` or `https`, with `{task}`, `{dataset}` and, for a log of
    /// several files, `{file}` to be filled in.
    pub address: String,
    /// Allowed hosts, also as targets of redirects; `host`, or `host:port`.
    pub hosts: Vec<String>,
    /// Sizes and hashes of files, if public; by the file's path.
    #[serde(default)]
    pub files: BTreeMap<String, Published>,
}

/// Public facts about a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Its size.
    pub bytes: Option<u64>,
    /// Its SHA-256, in hexadecimal.
    pub sha256: Option<String>,
}

/// One recording that a description names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The task, as its files are named.
    pub task: String,
    /// The recording of the task.
    pub dataset: String,
}

impl DatasetCard {
    /// Path of one recording, relative to `datasets/`.
    pub fn place(&self, task: &str, dataset: &str) -> PathBuf {
        fill(&self.path, task, dataset).into()
    }

    /// A description of a recording, in words.
    pub fn label(&self, task: &str, dataset: &str) -> String {
        fill(&self.label, task, &dataset.replace('_', "-"))
    }

    /// The name of `task` in file names, if this description lists them.
    pub fn name_of<'a>(&'a self, task: &'a Task) -> Option<&'a str> {
        let mut names = self.tasks.iter().map(String::as_str);
        match (self.suite == task.suite, self.tasks.is_empty()) {
            (false, _) => None,
            (true, true) => Some(&task.title),
            (true, false) => names.find(|name| plain(name) == plain(&task.name)),
        }
    }

    /// Its dataset `name`, in any spelling.
    ///
    /// # Errors
    /// [`DataError::UnknownName`] if it does not exist.
    pub fn dataset(&self, name: &str) -> Result<&str, DataError> {
        let known: Vec<&str> = self.datasets.iter().map(String::as_str).collect();
        find_dataset(&known, name)
    }

    /// The recording that has the name of the file or folder `place`, at any location.
    pub fn named(&self, place: &Path) -> Option<Named> {
        // From the first part of the path that says which recording it is.
        let parts = Path::new(&self.path).iter();
        let says = |part: &&OsStr| !part.to_string_lossy().contains('{');
        let ending: PathBuf = parts.skip_while(says).collect();
        let ending = ending.to_string_lossy();
        self.candidates(place).into_iter().find(|Named { task, dataset }| {
            let ending = fill(&ending, task, dataset);
            !ending.is_empty() && place.ancestors().any(|above| above.ends_with(&ending))
        })
    }

    /// As [`DatasetCard::named`], of a recording that lies where this description says, below
    /// the folder `datasets`.
    pub fn describes(&self, place: &Path, datasets: &Path) -> Option<Named> {
        let place = place.canonicalize().ok()?;
        self.candidates(&place).into_iter().find(|Named { task, dataset }| {
            let known = datasets.join(self.place(task, dataset)).canonicalize();
            known.is_ok_and(|known| place.starts_with(known))
        })
    }

    /// Every recording; of any task, those whose name is a part of the path `place`.
    fn candidates(&self, place: &Path) -> Vec<Named> {
        let parts = || place.iter().map(|part| part.to_string_lossy().into_owned());
        let tasks = if self.tasks.is_empty() { parts().collect() } else { self.tasks.clone() };
        let named = |task: &String, dataset: &String| Named {
            task: task.clone(),
            dataset: dataset.clone(),
        };
        let datasets = |task| self.datasets.iter().map(move |dataset| named(task, dataset));
        tasks.iter().flat_map(datasets).collect()
    }

    /// The counts of one recording, if known.
    pub fn counts_of(&self, recording: Option<&Named>) -> Option<&CardCounts> {
        let own = |Named { task, dataset }: &Named| self.counts.get(&format!("{task}_{dataset}"));
        recording.and_then(own).or_else(|| self.counts.get("each"))
    }

    /// The known facts about a recording of this dataset.
    pub fn origin(&self) -> Origin {
        Origin {
            kind: self.kind,
            dataset: Some(self.name.clone()),
            recording: Some(self.recording.clone()),
            n_actions: None,
        }
    }

    /// Reads one description.
    ///
    /// # Errors
    /// `Fault::Card` if it is not TOML of this form, or names a path that leads out of its
    /// folder.
    pub fn load(path: &Path) -> Result<Self, DataError> {
        let text = fs::read_to_string(path)
            .map_err(DataError::open(path, "a dataset is described there"))?;
        let wrong = |reason: String| Fault::Card(reason).at(path);
        let card: Self =
            toml::from_str(&text).map_err(|error| wrong(error.message().to_owned()))?;
        // Names stand for parts of paths: every path that is made of them must be plain.
        let recordings = card.candidates(Path::new("task"));
        let places = recordings.iter().map(|Named { task, dataset }| card.place(task, dataset));
        let mut paths = places.chain(card.checksums.iter().map(PathBuf::from));
        match paths.find(|path| !is_plain(path)) {
            None => Ok(card),
            Some(odd) => Err(wrong(format!(
                "expected a path of plain names below this folder, got `{}`",
                odd.display()
            ))),
        }
    }

    /// Reads all descriptions in the folder `datasets`, sorted by name.
    ///
    /// # Errors
    /// If the folder cannot be listed or a description is malformed.
    pub fn load_all(datasets: &Path) -> Result<Vec<Self>, DataError> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(datasets).map_err(DataError::open(datasets, DATASETS_HINT))? {
            let path = entry.map_err(DataError::io(datasets, "list"))?.path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                paths.push(path);
            }
        }
        paths.sort();
        paths.iter().map(|path| Self::load(path)).collect()
    }
}

/// The one of `known` that equals `name` in any spelling.
///
/// # Errors
/// [`DataError::UnknownName`] if it does not exist.
pub(crate) fn find_dataset<'a>(known: &[&'a str], name: &str) -> Result<&'a str, DataError> {
    names::find(known, name).ok_or_else(|| DataError::unknown("dataset", name, known))
}

fn fill(pattern: &str, task: &str, dataset: &str) -> String {
    pattern.replace("{task}", task).replace("{dataset}", dataset)
}

/// Advice for a missing folder of datasets.
pub(crate) const DATASETS_HINT: &str = "name the data (dataset=/path/to/it), or run in the project's folder, whose datasets/ has the starter sets (or name that folder in OVERTONE_DATASETS)";
