//! [`Description`] of a dataset of Minari's and where it is, and [`MinariSpaces`]: what it says of
//! the arrays.

use std::path::{Path, PathBuf};

use overtone_core::Simulation;
use serde::Deserialize;
use serde_json::Value;

use crate::describe::minari_id::metadata_text;
use crate::error::{DataError, Fault};
use crate::read::hdf5_file::Hdf5File;
use crate::read::hdf5_layout::{episode_names, is_minari};
use crate::read::source::Source;
use crate::read::spaces::Space;

/// Name of the description next to Minari's file.
const BESIDE: &str = "metadata.json";

/// Name that Minari gives its file.
pub(crate) const MINARI_FILE: &str = "main_data.hdf5";

/// The attribute of a file of our own that holds what else stands in `metadata.json`, as bytes.
pub(crate) const METADATA: &str = "metadata_json";

/// The spaces of a dataset's observations and actions, and how many episodes it has, where it says
/// that.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MinariSpaces {
    pub observations: Option<Space>,
    pub actions: Option<Space>,
    /// How many episodes the dataset has.
    pub total_episodes: Option<i64>,
}

/// Minari's description of a dataset, with our own part.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Description {
    data_format: Option<String>,
    total_episodes: Option<Value>,
    observation_space: Option<String>,
    action_space: Option<String>,
    /// The environment of Gymnasium's, as JSON.
    pub env_spec: Option<String>,
    /// The task, in a recording of our own.
    pub overtone: Option<Own>,
}

/// The task of a recording of our own.
#[derive(Debug, Deserialize)]
pub(crate) struct Own {
    pub task: String,
    pub simulation: Option<Simulation>,
}

impl Description {
    /// The description of the HDF5 file `file` and its location: in the file itself, or else next to
    /// it if it belongs to this file; or else in attributes, as Minari wrote it up to version 0.4.
    /// An unrelated `metadata.json` may lie next to any file. Empty if there is none.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn of(file: &Hdf5File) -> Result<(PathBuf, Self), DataError> {
        let place = file.path().to_path_buf();
        if let Some(text) = file.text(METADATA) {
            return Self::parse(&place, &text).map(|described| (place, described));
        }
        if !is_minari(file) {
            return Ok((place, Self::default()));
        }
        let beside = place.with_file_name(BESIDE);
        if beside.is_file() {
            let described = Self::parse(&beside, &metadata_text(&beside)?);
            let is_minaris_own = place.file_name().is_some_and(|name| name == MINARI_FILE);
            let n_episodes = Some(episode_names(file).len() as i64);
            if is_minaris_own || described.as_ref().is_ok_and(|it| it.episodes() == n_episodes) {
                return described.map(|described| (beside, described));
            }
        }
        let [env_spec, observation_space, action_space] =
            ["env_spec", "observation_space", "action_space"].map(|name| file.text(name));
        Ok((place, Self { env_spec, observation_space, action_space, ..Self::default() }))
    }

    /// The description in a folder of Minari's and its location, if there is one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn in_folder(folder: &Path) -> Result<Option<(PathBuf, Self)>, DataError> {
        let places = ["data/metadata.json", "metadata.json"].map(|name| folder.join(name));
        let Some(place) = places.into_iter().find(|place| place.is_file()) else { return Ok(None) };
        let described = Self::parse(&place, &metadata_text(&place)?)?;
        Ok(Some((place, described)))
    }

    fn parse(path: &Path, text: &str) -> Result<Self, DataError> {
        serde_json::from_str(text).map_err(|error| {
            Fault::NoLog(format!("its description is not Minari's: {error}")).at(path)
        })
    }

    fn episodes(&self) -> Option<i64> {
        self.total_episodes.as_ref()?.as_i64()
    }
}

impl MinariSpaces {
    /// The spaces in the file's [`Description`].
    ///
    /// # Errors
    /// When a description is there and is not Minari's, or of data that is not read.
    pub fn of(file: &Hdf5File) -> Result<Self, DataError> {
        let (place, described) = Description::of(file)?;
        refuse_other_form(&place, described.data_format.as_deref())?;
        let space = |name: &str, text: &Option<String>| {
            text.as_deref().map(Space::parse).transpose().map_err(|reason| {
                Fault::NoLog(format!("its `{name}` is not Minari's: {reason}")).at(&place)
            })
        };
        Ok(Self {
            observations: space("observation_space", &described.observation_space)?,
            actions: space("action_space", &described.action_space)?,
            total_episodes: described.episodes(),
        })
    }
}

/// The description in a folder of Minari's whose data is in another form than HDF5, and the form.
pub(crate) fn other_form(folder: &Path) -> Option<(PathBuf, String)> {
    let (place, described) = Description::in_folder(folder).ok()??;
    let form = described.data_format.filter(|form| form != "hdf5")?;
    Some((place, form))
}

/// Refuses data that Minari keeps in another form than HDF5.
///
/// # Errors
/// `Fault::Unread`, with the way out.
pub(crate) fn refuse_other_form(path: &Path, form: Option<&str>) -> Result<(), DataError> {
    match form {
        None | Some("hdf5") => Ok(()),
        Some(other) => Err(Fault::Unread {
            what: format!("data_format `{other}`"),
            way_out:
                "only Minari's HDF5 is; Minari itself reads it for Overtone's Python package: \
                      `overtone.from_minari(minari.load_dataset(…)).save(\"own.hdf5\")`"
                    .into(),
        }
        .at(path)),
    }
}
