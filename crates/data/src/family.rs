//! [`Family`]: which kind of recording something is.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::DataError;
use crate::read::hdf5_paths::hdf5_files;

/// A family of environments, each with its own file formats, datasets and models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Screens and discrete actions, in folders of the DQN Replay Dataset's form.
    Atari,
    /// Vectors and real-valued actions, in HDF5 files of D4RL or Minari.
    Continuous,
}

/// Which family's reader is for `path`: a file, or a folder with an HDF5 file, is of continuous
/// control, any other folder of Atari. Whether it can be read is not looked at.
///
/// # Errors
/// [`DataError::Missing`] when nothing is there, or the folder cannot be listed.
pub fn family_of(path: &Path) -> Result<Family, DataError> {
    if !path.exists() {
        return Err(DataError::Missing {
            path: path.to_path_buf(),
            hint: "give an HDF5 file of D4RL or Minari, or the folder of a DQN-replay game".into(),
        });
    }
    if !path.is_dir() || !hdf5_files(path)?.is_empty() {
        return Ok(Family::Continuous);
    }
    Ok(Family::Atari)
}
