//! Environments of Gymnasium and of any module that registers with it, as a suite of
//! `overtone_env::VectorEnv` environments.
//!
//! A task is an argument of `gymnasium.make`: `CartPole-v1`, `my_module:MyEnv-v0`, or
//! `Pendulum-v1,g=9.81` with keyword arguments ([`TaskName`]). Its spaces are queried from Gymnasium
//! at first use. `helper.py` steps several environments independently: an exception fails only its own
//! environment, which is created again for its next episode.
//!
//! Spaces are converted in this way:
//! - A Box is a vector of its numbers. A Box of bytes with two to four axes is an image. It becomes
//!   four grey frames of 84 × 84 pixels, as for Atari ([`overtone_core::picture`]).
//! - Discrete, MultiDiscrete and MultiBinary observations are one-hot vectors or bits.
//! - Dict and Tuple are concatenations of their parts. The parts of a Dict are sorted by key.
//! - Discrete actions are discrete. MultiDiscrete and MultiBinary actions become discrete actions for
//!   all combinations.
//! - A Box of actions keeps the bounds of each number. Training sets a missing bound by the recorded
//!   actions.
//!
//! All other spaces are errors.

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

/// The required major version of Gymnasium. The set-up installs 1.4.0.
pub const GYMNASIUM_VERSION: &str = "1";
