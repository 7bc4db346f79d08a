//! What can be missing or wrong between us and the Arcade Learning Environment.

use std::path::PathBuf;

use overtone_core::SimulationError;
use overtone_env::EnvError;

use crate::ALE_PY_VERSION;

/// Why an Atari game cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum AleError {
    /// Not one of the games.
    #[error("there is no game `{name}` in this program's table of games")]
    NoGame {
        /// What was asked for.
        name: String,
    },
    /// Settings that are not those of the emulator.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// The program has no Python in it.
    #[error("this program was built without the feature `python`: it cannot play {game}")]
    NoPython {
        /// The game's name.
        game: &'static str,
    },
    /// No folder with Python packages was found.
    #[error(
        "no `.venv` here nor in a folder above, so ale-py is missing: run `just setup`, or pip install 'overtone-rl[atari]'"
    )]
    NoPackages,
    /// A virtual environment without ale-py.
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
    /// Another ale-py.
    #[error(
        "ale-py {got} is installed, {ALE_PY_VERSION} is needed: run `just setup`, or pip install 'overtone-rl[atari]'"
    )]
    AleVersion {
        /// The version found.
        got: String,
    },
    /// ale-py could not load all of itself.
    #[error(
        "ale-py's vector interface does not load ({message}): run `just setup`, or pip install 'overtone-rl[atari]'"
    )]
    NoVectorInterface {
        /// What Python said.
        message: String,
    },
    /// No ROM.
    #[error(
        "the ROM of {game} is missing (`{path}`): run `just setup`, or pip install 'overtone-rl[atari]'"
    )]
    NoRom {
        /// The game's name.
        game: &'static str,
        /// Where it should lie.
        path: PathBuf,
    },
    /// Another ROM.
    #[error(
        "`{path}` has MD5 {got}, the ROM of {game} has {expected}: run `just setup`, or pip install 'overtone-rl[atari]'"
    )]
    OtherRom {
        /// The game's name.
        game: &'static str,
        /// The file.
        path: PathBuf,
        /// Its hash.
        got: String,
        /// The hash of the game the data was recorded from.
        expected: &'static str,
    },
    /// The ROM is no longer the one that play began with.
    #[error(
        "the ROM of {game} changed while it was played (`{path}`): run `just setup`, or pip install 'overtone-rl[atari]'"
    )]
    ChangedRom {
        /// The game's name.
        game: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The game's actions are others than in the data.
    #[error("{game} has the actions {got} in this emulator, {expected} were expected")]
    OtherActions {
        /// The game's name.
        game: &'static str,
        /// The emulator's ids of its actions.
        got: String,
        /// The ids in the table of games.
        expected: String,
    },
    /// Settings that no implementation plays by.
    #[error("the emulator cannot be run with {what}")]
    Unsupported {
        /// The setting, in words.
        what: String,
    },
    /// The emulator, or the Python between, failed.
    #[error("the emulator failed while {doing}: {message}")]
    Emulator {
        /// What was being done.
        doing: &'static str,
        /// What Python said.
        message: String,
    },
}

impl From<AleError> for EnvError {
    fn from(error: AleError) -> Self {
        Self::Backend(Box::new(error))
    }
}
