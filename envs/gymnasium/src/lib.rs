//! Gymnasium's environments, and those of any module that registers with it, as a suite of
//! `overtone_env::VectorEnv` environments.
//!
//! A task is what `gymnasium.make` is told: `CartPole-v1`, `my_module:MyEnv-v0`, or
//! `Pendulum-v1,g=9.81` with keyword arguments ([`TaskName`]). What it shows and takes is asked of
//! Gymnasium when it is named. `helper.py` steps a list of environments, each alone: what one
//! raises is its own failure, and it is made anew for its next episode.
//!
//! Spaces become ours so:
//! - a Box is its numbers in a row; of bytes with two to four axes it is a picture, shown as
//!   Atari's are: four grey frames of 84 × 84 pixels ([`overtone_core::picture`])
//! - Discrete, MultiDiscrete and MultiBinary observations are ones and zeros
//! - Dict and Tuple are their parts one after the other, those of a Dict sorted by key
//! - Discrete actions are a list; MultiDiscrete and MultiBinary are the list of all combinations
//! - a Box of actions keeps its bounds, number by number
//!
//! Everything else is refused by name.

mod error;
mod name;
mod names;
#[cfg(feature = "python")]
mod python;
mod scores;
mod shape;
mod simulation;
mod suite;
#[cfg_attr(not(feature = "python"), path = "no_python.rs")]
mod tasks;
#[cfg(feature = "python")]
pub mod vector;

#[cfg(feature = "python")]
mod camera;

pub use error::GymnasiumError;
pub use name::TaskName;
pub use simulation::{GymnasiumSimulation, SETTINGS};
pub use suite::Gymnasium;
#[cfg(feature = "python")]
pub use vector::GymnasiumVectorEnv;

/// The suite's name.
pub const SUITE: &str = "gymnasium";

/// The version of Gymnasium whose interface this is; set-up installs 1.4.0.
pub const GYMNASIUM_VERSION: &str = "1";
