//! Errors of the Arcade Learning Environment.

use std::path::PathBuf;

use overtone_core::SimulationError;
use overtone_env::EnvError;

use crate::ALE_PY_VERSION;

/// Errors of Atari environments.
#[derive(Debug, thiserror::Error)]
pub enum AleError {
    /// The game is not in the table.
    #[error("unknown game `{name}`: it is not in this program's table of games")]
    NoGame {
        /// The given name.
        name: String,
    },
    /// The simulation has invalid settings.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// The program was built without Python.
    #[error("cannot run {game}: this program was built without the feature `python`")]
    NoPython {
        /// The game's name.
        game: &'static str,
    },
    /// No directory with Python packages was found.
    #[error(
        "no `.venv` in this directory or above, so ale-py is missing: run `just setup`, or pip install 'overtone-rl[atari]'"
    )]
    NoPackages,
    /// ale-py is not installed in the virtual environment.
    #[error(
        "ale-py is not installed in `{venv}`: run `just setup`, or pip install 'overtone-rl[atari]'"
    )]
    NoAle {
        /// The virtual environment.
        venv: PathBuf,
    },
    /// The packages cannot be reached.
    #[cfg(feature = "python")]
    #[error(transparent)]
    Packages(#[from] overtone_interpreter::PackagesError),
    /// ale-py has another version.
    #[error(
        "ale-py {got} is installed, {ALE_PY_VERSION} is needed: run `just setup`, or pip install 'overtone-rl[atari]'"
    )]
    AleVersion {
        /// The installed version.
        got: String,
    },
    /// ale-py's vector interface could not be loaded.
    #[error(
        "ale-py's vector interface does not load ({message}): run `just setup`, or pip install 'overtone-rl[atari]'"
    )]
    NoVectorInterface {
        /// Python's error.
        message: String,
    },
    /// The ROM is missing.
    #[error(
        "the ROM of {game} is missing (`{path}`): run `just setup`, or pip install 'overtone-rl[atari]'"
    )]
    NoRom {
        /// The game's name.
        game: &'static str,
        /// Expected path of the file.
        path: PathBuf,
    },
    /// The ROM has another hash.
    #[error(
        "`{path}` has MD5 {got}, but the ROM of {game} has {expected}: run `just setup`, or pip install 'overtone-rl[atari]'"
    )]
    OtherRom {
        /// The game's name.
        game: &'static str,
        /// The file.
        path: PathBuf,
        /// Its hash.
        got: String,
        /// Hash of the ROM that the data was recorded with.
        expected: &'static str,
    },
    /// The ROM has changed since the start.
    #[error(
        "the ROM of {game} changed while it was in use (`{path}`): run `just setup`, or pip install 'overtone-rl[atari]'"
    )]
    ChangedRom {
        /// The game's name.
        game: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The game's actions differ from those in the data.
    #[error("{game} has the actions {got} in this emulator, expected {expected}")]
    OtherActions {
        /// The game's name.
        game: &'static str,
        /// The emulator's ids of its actions.
        got: String,
        /// The ids in the table of games.
        expected: String,
    },
    /// No implementation supports the setting.
    #[error("the emulator does not support {what}")]
    Unsupported {
        /// Description of the setting.
        what: String,
    },
    /// The emulator or its Python interface failed.
    #[error("the emulator failed while {doing}: {message}")]
    Emulator {
        /// The failed operation.
        doing: &'static str,
        /// Python's error.
        message: String,
    },
}

impl From<AleError> for EnvError {
    fn from(error: AleError) -> Self {
        Self::Backend(Box::new(error))
    }
}
