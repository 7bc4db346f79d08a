//! Recorded experience of continuous control: vectors observed, real-valued actions.
//!
//! ```text
//! locate_continuous ─► ContinuousLog::open ─► ContinuousDataset ◄── ContinuousOptions
//!                        (D4RL or Minari)            │
//!                                 Loader ◄── WindowSampler
//! ```

pub mod batch;
pub(crate) mod d4rl;
pub mod dataset;
pub mod inspect;
pub mod locate;
pub mod log;
pub mod manifest;
pub(crate) mod minari;
mod selection;

pub use batch::ContinuousBatch;
pub use dataset::ContinuousDataset;
pub use inspect::{ContinuousInspection, inspect_continuous};
pub use locate::{Environment, LocatedContinuous, locate_continuous};
pub use log::{ContinuousLog, LogFormat};
pub use manifest::{ContinuousCounts, ContinuousManifest, ContinuousOrigin};
pub use selection::{ContinuousOptions, Fragment};
