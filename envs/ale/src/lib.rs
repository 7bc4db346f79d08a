//! Atari 2600 games through the Arcade Learning Environment (ale-py's C++ vector interface),
//! as a suite of `overtone_env::VectorEnv` environments.
//!
//! The games are the rows of `tasks.toml`: all games of ale-py except [`UNPLAYABLE`]. [`open`]
//! selects the implementation for an [`Emulation`]. `AleVectorEnv` reproduces the DQN Replay Dataset
//! bit by bit. `ReleasedAle` reproduces the Decision Transformer's released evaluation from raw
//! screens.
//!
//! A failing emulator ends only its own episode, and is restarted for the next one. There is no
//! timeout: a call waits for an emulator that never answers.
//!
//! The Python packages are found in `VIRTUAL_ENV`, otherwise in `.venv` in the current directory or
//! above. Without the feature `python` the games are listed but cannot run.

#[cfg(feature = "python")]
pub mod colour;
mod emulation;
mod error;
mod game;
#[cfg(feature = "python")]
mod python;
#[cfg(feature = "python")]
pub mod released;
pub mod screen;
pub mod seed;
mod suite;
#[cfg(feature = "python")]
pub mod vector;

#[cfg(feature = "python")]
pub use colour::ColourScreens;
pub use emulation::{Emulation, Resize, SETTINGS};
pub use error::AleError;
pub use game::{ACTIONS, Game, UNPLAYABLE};
#[cfg(feature = "python")]
pub use released::ReleasedAle;
pub use suite::Ale;
#[cfg(feature = "python")]
pub use vector::AleVectorEnv;

use overtone_env::{Camera, VectorEnv};

/// The suite's name.
pub const SUITE: &str = "ale";

/// The supported version of ale-py.
pub const ALE_PY_VERSION: &str = "0.12.1";

/// `n_envs` environments of `game` with the settings `emulation`.
///
/// # Errors
/// When the Python packages or the game's ROM are missing or have another version, or the
/// combination of settings is not supported.
#[cfg(feature = "python")]
pub fn open(
    game: &'static Game,
    emulation: &Emulation,
    n_envs: usize,
) -> Result<Box<dyn VectorEnv>, AleError> {
    Ok(match emulation.resize {
        Resize::MaxThenArea => Box::new(AleVectorEnv::new(game, emulation, n_envs)?),
        Resize::BilinearThenMax => Box::new(ReleasedAle::new(game, emulation, n_envs)?),
    })
}

/// Checks that Python, ale-py and the game's ROM are installed, without starting an emulator.
///
/// # Errors
/// When one of them is missing or has another version.
#[cfg(feature = "python")]
pub fn check(game: &'static Game) -> Result<(), AleError> {
    python::Rom::find(game).map(drop)
}

/// A camera for the emulator's colour screens; `None` if the emulation only has the agent's
/// observations.
///
/// # Errors
/// The same as [`open`].
#[cfg(feature = "python")]
pub fn camera(
    game: &'static Game,
    emulation: &Emulation,
) -> Result<Option<Box<dyn Camera>>, AleError> {
    if emulation.resize != Resize::MaxThenArea {
        return Ok(None);
    }
    Ok(Some(Box::new(ColourScreens::new(game, emulation)?)))
}

/// Returns an error, because the program was built without Python.
///
/// # Errors
/// Always.
#[cfg(not(feature = "python"))]
pub fn open(game: &'static Game, _: &Emulation, _: usize) -> Result<Box<dyn VectorEnv>, AleError> {
    Err(AleError::NoPython { game: game.title() })
}

/// Returns an error, because the program was built without Python.
///
/// # Errors
/// Always.
#[cfg(not(feature = "python"))]
pub fn check(game: &'static Game) -> Result<(), AleError> {
    Err(AleError::NoPython { game: game.title() })
}

/// Returns an error, because the program was built without Python.
///
/// # Errors
/// Always.
#[cfg(not(feature = "python"))]
pub fn camera(game: &'static Game, _: &Emulation) -> Result<Option<Box<dyn Camera>>, AleError> {
    Err(AleError::NoPython { game: game.title() })
}
