//! What Python asks of a recording that no command says.

use std::path::PathBuf;

use overtone_data::{Dataset, DatasetOptions, Fragment, Recording, read};
use pyo3::prelude::*;

use crate::program::OvertoneError;

/// SHA-256 of all that a recording holds, whatever file it is in: observations, actions, rewards
/// and where episodes end.
#[pyfunction]
pub fn content_hash(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let hash = || match read::open(&path)? {
        Recording::Columns(columns) => {
            let options = DatasetOptions { fragment: Fragment::Keep, ..DatasetOptions::default() };
            Ok(Some(Dataset::of(columns, &options)?.content_hash().to_owned()))
        }
        Recording::ReplayLog(_) => Ok(None),
    };
    let hash = py
        .detach(hash)
        .map_err(|error: overtone_data::DataError| OvertoneError::new_err(error.to_string()))?;
    hash.ok_or_else(|| {
        let path = path.display();
        OvertoneError::new_err(format!("{path}: a log of frames has a hash when it is converted"))
    })
}
