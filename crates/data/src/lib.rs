//! Atari datasets on disk: reading DQN-replay logs, converting a selection of them into a
//! memory-mapped frame store, and drawing batches of context windows from it.
//!
//! ```text
//! locate ─► ReplayLog::open ─► Plan::new ─► Plan::ensure ─► AtariDataset
//!                                                              │
//!                                Loader ◄── WindowSampler ◄────┘
//! ```
//!
//! Nothing here prints; a conversion reports to a callback.

pub mod batch;
pub mod card;
mod content_hash;
pub mod dataset;
pub mod error;
pub mod frame_store;
pub mod inspect;
pub mod loader;
pub mod locate;
pub mod manifest;
pub mod npy;
pub mod plan;
pub mod replay_log;
pub mod run_folder;
pub mod sampler;
pub mod selection;
mod shuffle;

pub use batch::AtariBatch;
pub use card::DatasetCard;
pub use dataset::AtariDataset;
pub use error::DataError;
pub use inspect::{Inspection, inspect};
pub use loader::{Loader, LoaderConfig};
pub use locate::{Located, datasets_folder, known_game, locate};
pub use manifest::{Kind, Manifest, Origin};
pub use plan::Plan;
pub use replay_log::ReplayLog;
pub use run_folder::RunFolder;
pub use sampler::{Sampling, WindowSampler};
pub use selection::Selection;
