//! Python virtual environments of the project: the simulators' packages are in them.

use std::env;
use std::path::PathBuf;

/// Virtual environments in order of precedence: `VIRTUAL_ENV`, then `.venv` in the current
/// directory and its parents. Only existing ones are listed.
pub fn virtual_envs() -> Vec<PathBuf> {
    let active = env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    let here = env::current_dir().unwrap_or_default();
    let above = here.ancestors().map(|folder| folder.join(".venv"));
    active.into_iter().chain(above).filter(|venv| venv.join("pyvenv.cfg").is_file()).collect()
}
