//! Datasets that a configuration names by their path.

use std::path::Path;

use overtone_console::keys;
use overtone_core::{ObservationSpace, Task};
use overtone_data::{
    Form, MinariId,
    read::{reader_as, reader_of},
};

use crate::suites::Data;

/// The datasets that a value of `dataset=` names, separated by commas. A file may have one in its
/// name.
pub fn datasets_of(names: &str) -> Vec<&str> {
    if !names.contains(',') || Path::new(names).exists() {
        return vec![names];
    }
    names.split(',').map(str::trim).collect()
}

/// Whether a dataset's name is a path: it has a separator or the ending of a file, or a recording is
/// there.
pub fn is_path(name: &str) -> bool {
    let path = Path::new(name);
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    name.contains('/')
        || ending.contains(char::is_alphabetic)
        || path.is_file()
        || path.is_dir() && reader_of(path).is_ok()
}

/// Whether the dataset of `task` called `dataset`, or the one at a path, is a log of frames.
pub(crate) fn is_log(task: &Task, dataset: &str, data: Option<&Data>) -> bool {
    let reader = data.and_then(|data| reader_as(&data.path, &data.form).ok());
    let is_of_arrays = || reader.map(|reader| !reader.is_log());
    let is_minari = || !matches!(MinariId::of(dataset), Ok(None));
    matches!(task.observations, ObservationSpace::Pixels { .. })
        && !is_of_arrays().unwrap_or_else(is_minari)
}

/// The dataset whose path these words (each `key=value`) set.
pub(crate) fn of_words(words: &[String]) -> Option<Data> {
    let text = |key: &str| keys::last(words, key).unwrap_or_default();
    let columns =
        words.iter().filter_map(|word| word.strip_prefix("data.columns.")?.split_once('='));
    let columns: toml::Table = columns.map(|(key, name)| (key.into(), name.into())).collect();
    let form = Form {
        layout: text("data.layout").into(),
        columns: columns.try_into().unwrap_or_default(),
    };
    at_path(text("dataset"), Path::new(text("data.path")), form)
}

pub(crate) fn at_path(dataset: &str, path: &Path, form: Form) -> Option<Data> {
    let of = |dataset: &str| match MinariId::of(dataset) {
        _ if !path.as_os_str().is_empty() => Some(path.to_path_buf()),
        // A missing dataset is reported when it is read.
        Ok(Some(id)) => id.find().ok(),
        Ok(None) if is_path(dataset) => Some(dataset.into()),
        Ok(None) | Err(_) => None,
    };
    let mut all = datasets_of(dataset).into_iter().map(of);
    let path = all.next()??;
    Some(Data { path, others: all.flatten().collect(), form })
}
