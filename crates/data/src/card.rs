//! Dataset descriptions: one TOML file per dataset in `datasets/`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use overtone_core::{Emulation, Simulation};
use serde::{Deserialize, Serialize};

use crate::continuous::ContinuousOrigin;
use crate::error::DataError;
use crate::manifest::{Kind, Origin};

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
    pub recording: Emulation,
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

    /// How [`ContinuousCard::counts`] names a file.
    pub fn counted(environment: &str, dataset: &str) -> String {
        format!("{environment}_{dataset}")
    }

    /// What a file of this dataset is known to be.
    pub fn origin(&self) -> ContinuousOrigin {
        ContinuousOrigin {
            kind: self.kind,
            dataset: Some(self.name.clone()),
            recording: Some(self.recording.clone()),
        }
    }
}

impl AtariCard {
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
    /// [`DataError::Card`] when it is not TOML of this form.
    pub fn load(path: &Path) -> Result<Self, DataError> {
        let text = fs::read_to_string(path)
            .map_err(DataError::open(path, "a dataset is described there"))?;
        toml::from_str(&text).map_err(|error| DataError::Card {
            path: path.to_path_buf(),
            reason: error.message().to_owned(),
        })
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

    /// The dataset's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Atari(card) => &card.name,
            Self::Continuous(card) => &card.name,
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
