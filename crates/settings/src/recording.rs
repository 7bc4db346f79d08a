//! Datasets that a configuration names by their path.

use std::path::Path;

use overtone_console::keys;
use overtone_core::{ObservationSpace, Task};
use overtone_data::{ENDINGS, MinariId, read::reader_as};

use crate::suites::Data;

/// The datasets that a value of `dataset=` names, separated by commas. A file may have one in its
/// name.
pub fn datasets_of(names: &str) -> Vec<&str> {
    if !names.contains(',') || Path::new(names).exists() {
        return vec![names];
    }
    names.split(',').map(str::trim).collect()
}

/// Whether a dataset's name is the path of a file or directory.
pub fn is_path(name: &str) -> bool {
    let ending = Path::new(name).extension().unwrap_or_default();
    name.contains('/') || ENDINGS.iter().any(|known| ending == *known)
}

/// Whether the dataset of `task` called `dataset`, or the one at a path, is a log of frames.
pub(crate) fn is_log(task: &Task, dataset: &str, data: Option<&Data>) -> bool {
    let reader = data.and_then(|data| reader_as(&data.path, &data.layout).ok());
    let is_of_arrays = || reader.map(|reader| !reader.is_log());
    let is_minari = || !matches!(MinariId::of(dataset), Ok(None));
    matches!(task.observations, ObservationSpace::Pixels { .. })
        && !is_of_arrays().unwrap_or_else(is_minari)
}

/// The dataset whose path these words (each `key=value`) set.
pub(crate) fn of_words(words: &[String]) -> Option<Data> {
    let text = |key: &str| keys::last(words, key).unwrap_or_default();
    at_path(text("dataset"), Path::new(text("data.path")), text("data.layout"))
}

pub(crate) fn at_path(dataset: &str, path: &Path, layout: &str) -> Option<Data> {
    let of = |dataset: &str| match MinariId::of(dataset) {
        _ if !path.as_os_str().is_empty() => Some(path.to_path_buf()),
        // A missing dataset is reported when it is read.
        Ok(Some(id)) => id.find().ok(),
        Ok(None) if is_path(dataset) => Some(dataset.into()),
        Ok(None) | Err(_) => None,
    };
    let mut all = datasets_of(dataset).into_iter().map(of);
    let path = all.next()??;
    Some(Data { path, others: all.flatten().collect(), layout: layout.into() })
}
