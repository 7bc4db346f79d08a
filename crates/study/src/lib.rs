//! Studies: grids of runs, their status, and their execution.
//!
//! A [`Study`] is a document, and each of its [`Cell`]s is a list of words for a run. This crate does
//! not depend on training: its caller interprets the words and locates the run of a cell.

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
pub use words::{KeyValues, seeds};
