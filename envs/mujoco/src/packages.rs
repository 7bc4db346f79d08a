//! Locations of MuJoCo's library and Gymnasium's models in the installed Python packages. No Python
//! runs.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use overtone_env::virtual_envs;

use crate::{MujocoError, Revision, Robot};

/// Environment variable with the directory of Python packages, instead of a virtual environment.
pub const SITE_PACKAGES: &str = "OVERTONE_SITE_PACKAGES";

/// The library's file name in the `mujoco` package of version [`crate::MUJOCO_VERSION`].
const LIBRARY: &str =
    if cfg!(target_os = "macos") { "libmujoco.3.17.0.dylib" } else { "libmujoco.so.3.17.0" };

/// The directory of Python packages with library and models.
///
/// # Errors
/// When no such directory is found.
pub fn packages() -> Result<PathBuf, MujocoError> {
    if let Some(folder) = env::var_os(SITE_PACKAGES) {
        return Ok(folder.into());
    }
    let folders: Vec<PathBuf> =
        virtual_envs().iter().flat_map(|venv| site_packages(venv)).collect();
    let with_mujoco = folders.iter().find(|folder| folder.join("mujoco").is_dir());
    with_mujoco.or(folders.first()).cloned().ok_or(MujocoError::NoPackages)
}

/// Path of MuJoCo's library.
///
/// # Errors
/// When the library is missing or has another version.
pub(crate) fn library() -> Result<PathBuf, MujocoError> {
    let folder = packages()?.join("mujoco");
    let path = folder.join(LIBRARY);
    if path.is_file() {
        return Ok(path);
    }
    let is_library = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libmujoco"))
    };
    match entries(&folder).into_iter().find(is_library) {
        Some(path) => Err(MujocoError::OtherLibrary { path }),
        None => Err(MujocoError::NoLibrary { path }),
    }
}

/// Path of Gymnasium's model of `robot`.
///
/// # Errors
/// When the model is missing.
pub(crate) fn model(robot: &Robot, revision: Revision) -> Result<PathBuf, MujocoError> {
    let assets = packages()?.join("gymnasium/envs/mujoco/assets");
    let path = assets.join(robot.model_file(revision));
    if path.is_file() { Ok(path) } else { Err(MujocoError::NoModel { path }) }
}

/// The package directories of a virtual environment, for any version of Python.
fn site_packages(venv: &Path) -> Vec<PathBuf> {
    let folders = entries(&venv.join("lib")).into_iter().map(|python| python.join("site-packages"));
    folders.filter(|folder| folder.is_dir()).collect()
}

/// The sorted entries of `folder`; empty if it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
