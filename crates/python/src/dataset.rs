//! Functions on datasets for Python, without a command.

use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray1};
use overtone_console::errors;
use overtone_data::{
    DataError, Dataset, DatasetOptions, Fragment, MinariId, Recording, datasets_folder, read,
    starter,
};
use pyo3::prelude::*;

use crate::program::OvertoneError;

/// SHA-256 of a dataset's contents, independent of its file format: observations, actions, rewards
/// and ends of episodes.
#[pyfunction]
pub fn content_hash(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let hash = || match read::open(&path)? {
        Recording::Columns(columns) => {
            let options = DatasetOptions { fragment: Fragment::Keep, ..DatasetOptions::default() };
            Ok(Some(Dataset::of(columns, &options)?.content_hash().to_owned()))
        }
        Recording::ReplayLog(_) => Ok(None),
    };
    let hash = py.detach(hash).map_err(failed)?;
    hash.ok_or_else(|| {
        let path = path.display();
        OvertoneError::new_err(format!(
            "{path}: a log of frames does not have a hash before it is converted"
        ))
    })
}

/// Warnings about the dataset at `path`, with its task, as `suite/name`: what the program says before
/// training on it.
#[pyfunction]
pub fn warnings(py: Python<'_>, path: PathBuf, task: Option<&str>) -> PyResult<Vec<String>> {
    let found = py.detach(move || overtone::warnings(&path, task));
    found.map_err(|error| OvertoneError::new_err(errors::message(&error)))
}

/// Log-probabilities of a dataset's recorded actions, `[steps]`; `None` if it does not have them.
#[pyfunction]
pub fn behavior_log_probs(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<Option<Bound<'_, PyArray1<f32>>>> {
    let read = || match read::open(&path)? {
        Recording::Columns(columns) => Ok(columns.behavior_log_probs),
        Recording::ReplayLog(_) => Ok(None),
    };
    Ok(py.detach(read).map_err(failed)?.map(|all| all.into_pyarray(py)))
}

/// The path of the dataset `minari:ID` or `starter:NAME`, and the task of a starter set, as
/// `suite/name`.
#[pyfunction]
pub fn find(name: &str) -> PyResult<(PathBuf, Option<String>)> {
    let found = || match (MinariId::of(name)?, name.strip_prefix("starter:")) {
        (Some(id), _) => Ok((id.find()?, None)),
        (None, set) => {
            let (path, task) = starter(set.unwrap_or(name), &datasets_folder()?)?;
            Ok((path, Some(task)))
        }
    };
    found().map_err(failed)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: DataError) -> PyErr {
    OvertoneError::new_err(error.to_string())
}
