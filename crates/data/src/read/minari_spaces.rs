//! [`MinariSpaces`]: what a description says of the arrays in Minari's file; and where that
//! description is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::error::{DataError, Fault};
use crate::minari_id::metadata_text;
use crate::read::hdf5_file::Hdf5File;
use crate::read::hdf5_layout::{episode_names, is_minari};
use crate::read::source::Source;
use crate::spaces::Space;

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

#[derive(Deserialize)]
struct Described {
    data_format: Option<String>,
    total_episodes: Option<Value>,
    observation_space: Option<String>,
    action_space: Option<String>,
}

impl MinariSpaces {
    /// The contents of the file's [`description`].
    ///
    /// # Errors
    /// When a description is there and is not Minari's, or of data that is not read.
    pub fn of(file: &Hdf5File) -> Result<Self, DataError> {
        match description(file)? {
            Some((place, text)) => Self::parse(&place, &text),
            None => Ok(Self::default()),
        }
    }

    fn parse(path: &Path, text: &str) -> Result<Self, DataError> {
        let wrong = |what: &str, reason: String| {
            Fault::NoLog(format!("{what} is not Minari's: {reason}")).at(path)
        };
        let described: Described =
            serde_json::from_str(text).map_err(|error| wrong("it", error.to_string()))?;
        refuse_other_form(path, described.data_format.as_deref())?;
        let space = |name: &str, text: Option<String>| {
            let parsed = text.map(|text| Space::parse(&text)).transpose();
            parsed.map_err(|reason| wrong(&format!("its `{name}`"), reason))
        };
        Ok(Self {
            observations: space("observation_space", described.observation_space)?,
            actions: space("action_space", described.action_space)?,
            total_episodes: described.total_episodes.and_then(|total| total.as_i64()),
        })
    }
}

/// The description in attributes, as in Minari's files up to version 0.4.
const ATTRIBUTES: [&str; 3] = ["env_spec", "observation_space", "action_space"];

/// The description of a file and its location: in the file itself, or else next to it if it belongs
/// to this file; or else in attributes, as Minari wrote it up to version 0.4. An unrelated
/// `metadata.json` may lie next to any file.
///
/// # Errors
/// When it is there and cannot be read.
pub(crate) fn description(file: &Hdf5File) -> Result<Option<(PathBuf, String)>, DataError> {
    if let Some(text) = file.text(METADATA) {
        return Ok(Some((file.path().to_path_buf(), text)));
    }
    if !is_minari(file) {
        return Ok(None);
    }
    let beside = file.path().with_file_name(BESIDE);
    if beside.is_file() {
        let text = metadata_text(&beside)?;
        let is_minaris_own = file.path().file_name().is_some_and(|name| name == MINARI_FILE);
        if is_minaris_own || counts_episodes_of(file, &text) {
            return Ok(Some((beside, text)));
        }
    }
    let said = ATTRIBUTES.iter().filter_map(|&name| Some((name.to_owned(), file.text(name)?)));
    let said: BTreeMap<String, String> = said.collect();
    let text = serde_json::to_string(&said).unwrap_or_default();
    Ok((!said.is_empty()).then(|| (file.path().to_path_buf(), text)))
}

/// Whether a description counts as many episodes as `file` has.
fn counts_episodes_of(file: &Hdf5File, description: &str) -> bool {
    #[derive(Deserialize)]
    struct Counted {
        total_episodes: Option<usize>,
    }
    let counted = serde_json::from_str::<Counted>(description).ok();
    counted.and_then(|counted| counted.total_episodes) == Some(episode_names(file).len())
}

/// The description in a folder of Minari's whose data is in another form than HDF5, and the form.
pub(crate) fn other_form(folder: &Path) -> Option<(PathBuf, String)> {
    let places = ["data/metadata.json", "metadata.json"].map(|name| folder.join(name));
    let place = places.into_iter().find(|place| place.is_file())?;
    let described: Described = serde_json::from_str(&metadata_text(&place).ok()?).ok()?;
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
