//! Which recording was given by its place, whatever becomes of it.

use std::path::Path;

use overtone_data::MinariId;

use super::Settings;
use crate::{
    keys::{self, Keys},
    suites::Data,
};

impl Settings {
    /// The recording, where its place was given and not a name that is looked up.
    pub fn recording(&self) -> Option<Data> {
        given(&self.dataset, &self.data.path, &self.data.layout)
    }
}

/// Whether a dataset's name is the path of a file or folder.
pub fn is_path(name: &str) -> bool {
    let endings = [".hdf5", ".h5", ".npz"];
    name.contains('/') || endings.iter().any(|ending| name.ends_with(ending))
}

/// The recording that these keys give.
pub(super) fn of_keys(keys: &Keys) -> Option<Data> {
    let text = |key: &str| keys.get(key).map(keys::plain).unwrap_or_default();
    given(&text("dataset"), Path::new(&text("data.path")), &text("data.layout"))
}

/// The recording that these words (each `key=value`) give.
pub(super) fn of_words(words: &[String]) -> Option<Data> {
    let text = |key: &str| {
        let values = words.iter().rev().filter_map(|word| word.split_once('='));
        values.into_iter().find(|(name, _)| *name == key).map_or("", |(_, value)| value)
    };
    given(text("dataset"), Path::new(text("data.path")), text("data.layout"))
}

fn given(dataset: &str, path: &Path, layout: &str) -> Option<Data> {
    let path = match MinariId::of(dataset) {
        _ if !path.as_os_str().is_empty() => path.to_path_buf(),
        // Whoever needs one that is not there says so.
        Ok(Some(id)) => id.find().ok()?,
        Ok(None) if is_path(dataset) => dataset.into(),
        Ok(None) | Err(_) => return None,
    };
    Some(Data { path, layout: layout.into() })
}
