//! Studies: a grid of runs, where each of them stands, and what carries them out.
//!
//! A [`Study`] is a document; its [`Cell`]s are words for a run. Nothing here knows what a run
//! learns or how: whoever uses this says what a word means, and where a cell's run is.

mod error;
mod folder;
mod grid;
mod label;
pub mod local;
pub mod slurm;
mod state;
mod words;

pub use error::StudyError;
pub use folder::StudyFolder;
pub use grid::{Cell, Engine, Executor, Study};
pub use state::{CellStatus, State, Status, last_step};
pub use words::{Asked, seeds};
