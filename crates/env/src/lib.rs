//! The Gymnasium interface as Rust traits: spaces, batches of environments, and the suites they
//! belong to.
//!
//! This crate contains no Python. A [`Suite`] implements [`VectorEnv`] in its own crate under
//! `envs/`, lists its tasks in a [`TaskTable`], and finds its Python packages with
//! [`virtual_envs`]. [`Corridor`] is a tiny environment for tests. Implement [`Env`] for your own
//! environment; [`Batched`] makes a batch of it.

pub mod batched;
pub mod camera;
pub mod corridor;
pub mod error;
pub mod slots;
pub mod step;
pub mod suite;
pub mod table;
pub mod vector_env;
mod virtual_env;

pub use batched::{Action, Batched, Env};
pub use camera::{Camera, Capsule, Picture};
pub use corridor::Corridor;
pub use error::{Cause, EnvError, Failure};
pub use overtone_core::{ActionSpace, ObservationSpace};
pub use slots::Slots;
pub use step::Step;
pub use suite::{Simulator, Suite, TaskError, UnknownTask, find_in_table};
pub use table::{Scores, TaskTable};
pub use vector_env::{VectorEnv, cut_seed};
pub use virtual_env::virtual_envs;
