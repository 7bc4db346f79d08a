//! The Gymnasium interface as Rust traits: spaces, and many environments stepped as one batch.
//!
//! No Python here: an environment family implements [`VectorEnv`] in its own crate under
//! `envs/`, and finds the packages it lives in with [`virtual_envs`]. [`Corridor`] is a tiny
//! environment written by hand, for tests.

pub mod corridor;
pub mod error;
pub mod slots;
pub mod vector_env;
mod virtual_env;

pub use corridor::Corridor;
pub use error::{Cause, EnvError, Failure};
pub use overtone_core::{ActionSpace, ObservationSpace};
pub use slots::Slots;
pub use vector_env::{Step, VectorEnv};
pub use virtual_env::virtual_envs;
