//! Atari 2600 games through the Arcade Learning Environment (ale-py's C++ vector interface),
//! as a batch of `overtone_env::VectorEnv` environments.
//!
//! [`open`] picks the implementation an [`Emulation`] asks for: [`AleVectorEnv`] plays as the
//! DQN Replay Dataset was recorded, to the bit; [`ReleasedAle`] as the Decision Transformer's
//! released evaluation did, from raw screens.
//!
//! An emulator that fails ends its own episode alone, and is started anew for its next. What
//! cannot be helped: an emulator that never answers is waited for.
//!
//! The Python packages are looked for in `VIRTUAL_ENV`, then in `.venv` under the current
//! folder and its parents.

pub mod colour;
mod error;
mod game;
mod python;
pub mod released;
pub mod screen;
pub mod seed;
pub mod vector;

pub use colour::ColourScreens;
pub use error::AleError;
pub use game::{ACTIONS, Game};
pub use released::ReleasedAle;
pub use vector::AleVectorEnv;

use overtone_core::protocol::{Emulation, Resize};
use overtone_env::VectorEnv;

/// Version of ale-py that is known to record and play as described here.
pub const ALE_PY_VERSION: &str = "0.12.1";

/// `n_envs` environments of `game`, run as `emulation` says.
///
/// # Errors
/// When the Python packages or the game's ROM are missing or others, or `emulation` is a
/// combination nobody plays by.
pub fn open(
    game: Game,
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
pub fn check(game: Game) -> Result<(), AleError> {
    python::Rom::find(game).map(drop)
}
