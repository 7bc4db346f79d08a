//! Dataset descriptions: one TOML file per dataset in `datasets/`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use overtone_core::Simulation;
use serde::{Deserialize, Serialize};

use crate::error::DataError;
use crate::family::{Family, family_of};
use crate::origin::{Kind, Origin};
use crate::plain_path::is_plain;
use crate::read::hdf5_paths::find_file;
use crate::read::run_folder::RunFolder;

/// A dataset's description: where it comes from, and how it was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "snake_case")]
pub enum DatasetCard {
    /// Screens and discrete actions, in the DQN Replay Dataset's format.
    Atari(AtariCard),
    /// Vectors and real-valued actions, in D4RL's format.
    Continuous(ContinuousCard),
}

/// The description of a dataset of Atari games.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtariCard {
    /// The dataset's name, equal to the file's without `.toml`.
    pub name: String,
    /// One sentence.
    pub title: String,
    /// What kind of data it is.
    pub kind: Kind,
    /// Folders of its games, relative to `datasets/`; each holds runs.
    pub folder: String,
    /// Games it has, as their folders are named.
    pub games: Vec<String>,
    /// Where it can be had.
    pub source: String,
    /// The terms it comes under.
    pub licence: String,
    /// How it was made.
    pub made: String,
    /// File with the SHA-256 sums of its files, relative to `datasets/`.
    pub checksums: Option<String>,
    /// How many of everything, where it is known.
    pub counts: Option<CardCounts>,
    /// Actions in each game's action set.
    pub n_actions: usize,
    /// How the emulator was run when it was recorded.
    pub recording: Simulation,
    /// Where its files can be fetched, with `{game}`, `{run}` and `{file}`.
    pub download: Option<Download>,
}

/// Counts of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardCounts {
    /// Files (all columns counted as one).
    pub files: u64,
    /// Slots of each file.
    pub slots_per_file: u64,
    /// Agent steps, padding not counted.
    pub transitions: Option<u64>,
    /// Finished episodes.
    pub episodes: Option<u64>,
    /// Size on disk.
    pub bytes: Option<u64>,
}

/// Where a dataset's files can be fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Download {
    /// The address of a file, `http` or `https`, with names in braces to be filled in.
    pub address: String,
    /// Hosts that may be asked, also where one sends on to another; `host`, or `host:port`.
    pub hosts: Vec<String>,
    /// Sizes and hashes of files, where they are public; by the file's path.
    #[serde(default)]
    pub files: BTreeMap<String, Published>,
}

/// What is public about a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Its size.
    pub bytes: Option<u64>,
    /// Its SHA-256, in hexadecimal.
    pub sha256: Option<String>,
}

/// The description of a dataset of continuous control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContinuousCard {
    /// The dataset's name, equal to the file's without `.toml`.
    pub name: String,
    /// One sentence.
    pub title: String,
    /// What kind of data it is.
    pub kind: Kind,
    /// Its files, relative to `datasets/`, with `{environment}` and `{dataset}` for a name of
    /// each list below.
    pub files: String,
    /// Environments it has.
    pub environments: Vec<String>,
    /// Datasets it has of each, named for the policy that was recorded.
    pub qualities: Vec<String>,
    /// Where it can be had.
    pub source: String,
    /// The terms it comes under.
    pub licence: String,
    /// How it was made.
    pub made: String,
    /// File with the SHA-256 sums of its files, relative to `datasets/`.
    pub checksums: Option<String>,
    /// How many of everything in each file, where it is known; named as
    /// [`ContinuousCard::counted`] names them.
    #[serde(default)]
    pub counts: BTreeMap<String, FileCounts>,
    /// How the robot was simulated when it was recorded.
    pub recording: Simulation,
    /// Where its files can be fetched, with `{environment}` and `{dataset}`.
    pub download: Option<Download>,
}

/// Counts of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileCounts {
    /// Steps, those of an unfinished episode included.
    pub transitions: u64,
    /// Finished episodes.
    pub episodes: u64,
    /// Size on disk.
    pub bytes: u64,
}

impl ContinuousCard {
    /// Path of one file, relative to `datasets/`.
    pub fn file(&self, environment: &str, dataset: &str) -> PathBuf {
        let file = self.files.replace("{environment}", environment);
        file.replace("{dataset}", dataset).into()
    }

    /// The environment and the dataset whose file is named as `file` is, where there is one.
    pub fn named(&self, file: &Path) -> Option<(&str, &str)> {
        let datasets =
            |environment| self.qualities.iter().map(move |dataset| (environment, dataset));
        let named = self.environments.iter().flat_map(datasets).find(|&(environment, dataset)| {
            self.file(environment, dataset).file_name() == file.file_name()
        });
        named.map(|(environment, dataset)| (environment.as_str(), dataset.as_str()))
    }

    /// As [`ContinuousCard::named`], of a file that lies where this description says, below
    /// the folder `datasets`.
    pub fn describes(&self, file: &Path, datasets: &Path) -> Option<(&str, &str)> {
        let (environment, dataset) = self.named(file)?;
        let known = datasets.join(self.file(environment, dataset)).canonicalize().ok()?;
        (file.canonicalize().ok()? == known).then_some((environment, dataset))
    }

    /// How [`ContinuousCard::counts`] names a file.
    pub fn counted(environment: &str, dataset: &str) -> String {
        format!("{environment}_{dataset}")
    }

    /// What a file of this dataset is known to be.
    pub fn origin(&self) -> Origin {
        Origin {
            kind: self.kind,
            dataset: Some(self.name.clone()),
            recording: Some(self.recording.clone()),
            n_actions: None,
        }
    }
}

impl AtariCard {
    /// Whether `run` is one of this description's, below the folder `datasets`.
    pub fn describes(&self, run: &RunFolder, datasets: &Path) -> bool {
        let folder = datasets.join(&self.folder).canonicalize();
        folder.is_ok_and(|folder| run.folder.starts_with(folder)) && self.games.contains(&run.game)
    }

    /// What a log of this dataset is known to be.
    pub fn origin(&self) -> Origin {
        Origin {
            kind: self.kind,
            dataset: Some(self.name.clone()),
            recording: Some(self.recording.clone()),
            n_actions: Some(self.n_actions),
        }
    }
}

impl DatasetCard {
    /// Reads one description.
    ///
    /// # Errors
    /// [`DataError::Card`] when it is not TOML of this form, or names a path that leads out of
    /// its folder.
    pub fn load(path: &Path) -> Result<Self, DataError> {
        let text = fs::read_to_string(path)
            .map_err(DataError::open(path, "a dataset is described there"))?;
        let wrong = |reason: String| DataError::Card { path: path.to_path_buf(), reason };
        let card: Self =
            toml::from_str(&text).map_err(|error| wrong(error.message().to_owned()))?;
        match card.paths().into_iter().find(|path| !is_plain(path)) {
            None => Ok(card),
            Some(odd) => Err(wrong(format!(
                "`{}` is no path of plain names below this folder",
                odd.display()
            ))),
        }
    }

    /// Everything it says of where files lie, relative to the folder of descriptions.
    fn paths(&self) -> Vec<PathBuf> {
        let (checksums, mut paths) = match self {
            Self::Atari(card) => {
                let folder = Path::new(&card.folder);
                let games = card.games.iter().map(|game| folder.join(game));
                (&card.checksums, games.chain([folder.to_path_buf()]).collect::<Vec<_>>())
            }
            Self::Continuous(card) => {
                let files = card.environments.iter().flat_map(|environment| {
                    card.qualities.iter().map(|dataset| card.file(environment, dataset))
                });
                (&card.checksums, files.collect())
            }
        };
        paths.extend(checksums.iter().map(PathBuf::from));
        paths
    }

    /// Reads all descriptions in the folder `datasets`, sorted by name.
    ///
    /// # Errors
    /// When the folder cannot be listed or a description is malformed.
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

    /// The description in the folder `datasets` of the recording at `path`, where there is one.
    ///
    /// # Errors
    /// When the descriptions cannot be read, or `path` is no recording.
    pub fn of(path: &Path, datasets: &Path) -> Result<Option<Self>, DataError> {
        let cards = Self::load_all(datasets)?;
        match family_of(path)? {
            Family::Atari => {
                let run = RunFolder::find(path)?;
                let of_run = |card: &Self| match card {
                    Self::Atari(card) => card.describes(&run, datasets),
                    Self::Continuous(_) => false,
                };
                Ok(cards.into_iter().find(of_run))
            }
            Family::Continuous => {
                let file = find_file(path)?;
                let of_file = |card: &Self| match card {
                    Self::Atari(_) => false,
                    Self::Continuous(card) => card.describes(&file, datasets).is_some(),
                };
                Ok(cards.into_iter().find(of_file))
            }
        }
    }

    /// The dataset's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Atari(card) => &card.name,
            Self::Continuous(card) => &card.name,
        }
    }

    /// What kind of data it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Atari(card) => card.kind,
            Self::Continuous(card) => card.kind,
        }
    }

    /// The description, where it is of Atari games.
    pub fn atari(self) -> Option<AtariCard> {
        match self {
            Self::Atari(card) => Some(card),
            Self::Continuous(_) => None,
        }
    }

    /// The description, where it is of continuous control.
    pub fn continuous(self) -> Option<ContinuousCard> {
        match self {
            Self::Atari(_) => None,
            Self::Continuous(card) => Some(card),
        }
    }
}

/// What to do without a folder of datasets.
pub(crate) const DATASETS_HINT: &str = "run from the project's folder, whose datasets/ holds the starter sets, or name the data's folder";
