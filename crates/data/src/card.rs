//! Dataset descriptions: one TOML file per dataset in `datasets/`.

use std::fs;
use std::path::{Path, PathBuf};

use overtone_core::Emulation;
use serde::{Deserialize, Serialize};

use crate::error::DataError;
use crate::manifest::{Kind, Origin};

/// A dataset's description: where it comes from, and how it was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetCard {
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

/// What to do without a folder of datasets.
pub(crate) const DATASETS_HINT: &str = "run from the project's folder, whose datasets/ holds the starter sets, or name the data's folder";
