//! Which HDF5 file a path means.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{DataError, Fault};

/// The path of a dataset's file in Minari's folder.
const MINARI_FILES: [&str; 2] = ["main_data.hdf5", "data/main_data.hdf5"];

/// The HDF5 file at `path`: itself, or where it is a folder, Minari's `data/main_data.hdf5`
/// there or the only HDF5 file in it.
///
/// # Errors
/// When nothing is at `path`, or no one file.
pub(crate) fn find_file(path: &Path) -> Result<PathBuf, DataError> {
    if !path.is_dir() {
        return Ok(path.to_path_buf());
    }
    let mut files = hdf5_files(path)?;
    match files.len() {
        0 => Err(Fault::NoLog("no HDF5 file here; D4RL's and Minari's names end in .hdf5".into())
            .at(path)),
        1 => Ok(files.remove(0)),
        n => Err(Fault::NoLog(format!("{n} HDF5 files here; name one of them")).at(path)),
    }
}

/// HDF5 files in a folder, sorted; only Minari's where it is there.
pub(crate) fn hdf5_files(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let minari = MINARI_FILES.iter().map(|name| folder.join(name)).find(|path| path.is_file());
    if let Some(file) = minari {
        return Ok(vec![file]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(DataError::io(folder, "list"))? {
        let path = entry.map_err(DataError::io(folder, "list"))?.path();
        if is_named_hdf5(&path) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Whether the name promises an HDF5 file.
pub(crate) fn is_named_hdf5(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "hdf5" || extension == "h5")
}
