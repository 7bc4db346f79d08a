//! Where the project's Python packages are: environments come with their simulators in them.

use std::env;
use std::path::PathBuf;

/// Virtual environments in the order they are asked: `VIRTUAL_ENV`, then `.venv` under the
/// current folder and its parents. Only folders that are one are named.
pub fn virtual_envs() -> Vec<PathBuf> {
    let active = env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    let here = env::current_dir().unwrap_or_default();
    let above = here.ancestors().map(|folder| folder.join(".venv"));
    active.into_iter().chain(above).filter(|venv| venv.join("pyvenv.cfg").is_file()).collect()
}
