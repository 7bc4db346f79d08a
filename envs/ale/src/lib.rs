//! Atari 2600 games through the Arcade Learning Environment (ale-py's C++ vector interface),
//! as a suite of `overtone_env::VectorEnv` environments.
//!
//! The games are the rows of `tasks.toml`: all of ale-py's but [`UNPLAYABLE`]. [`open`] picks the implementation an [`Emulation`]
//! asks for: `AleVectorEnv` plays as the DQN Replay Dataset was recorded, to the bit;
//! `ReleasedAle` as the Decision Transformer's released evaluation did, from raw screens.
//!
//! An emulator that fails ends its own episode alone, and is started anew for its next. What
//! cannot be helped: an emulator that never answers is waited for.
//!
//! The Python packages are looked for in `VIRTUAL_ENV`, then in `.venv` under the current
//! folder and its parents. Without the feature `python` the games are known and cannot be
//! played.

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

/// Version of ale-py that is known to record and play as described here.
pub const ALE_PY_VERSION: &str = "0.12.1";

/// `n_envs` environments of `game`, run as `emulation` says.
///
/// # Errors
/// When the Python packages or the game's ROM are missing or others, or `emulation` is a
/// combination nobody plays by.
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

/// Checks that Python, ale-py and the game's ROM are there, without starting an emulator.
///
/// # Errors
/// When one is missing, or another version than expected.
#[cfg(feature = "python")]
pub fn check(game: &'static Game) -> Result<(), AleError> {
    python::Rom::find(game).map(drop)
}

/// The emulator's screens in colour; `None` where the emulation shows nothing but what the agent
/// sees.
///
/// # Errors
/// As [`open`].
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

/// Refuses: built without Python.
///
/// # Errors
/// Always.
#[cfg(not(feature = "python"))]
pub fn open(game: &'static Game, _: &Emulation, _: usize) -> Result<Box<dyn VectorEnv>, AleError> {
    Err(AleError::NoPython { game: game.title() })
}

/// Refuses: built without Python.
///
/// # Errors
/// Always.
#[cfg(not(feature = "python"))]
pub fn check(game: &'static Game) -> Result<(), AleError> {
    Err(AleError::NoPython { game: game.title() })
}

/// Refuses: built without Python.
///
/// # Errors
/// Always.
#[cfg(not(feature = "python"))]
pub fn camera(game: &'static Game, _: &Emulation) -> Result<Option<Box<dyn Camera>>, AleError> {
    Err(AleError::NoPython { game: game.title() })
}
