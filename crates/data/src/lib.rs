//! Datasets on disk, and batches of context windows drawn from them.
//!
//! Atari: DQN-replay logs are read, and a selection of them converted into a frame
//! store. Continuous control: D4RL and Minari files are read into memory.
//!
//! ```text
//! locate ─► ReplayLog::open ─► Plan::new ─► Plan::ensure ─► AtariDataset ─────────┐
//!                                                                                 ▼
//!                                                   Loader ◄── WindowSampler ◄── EpisodeIndex
//!                                                                                 ▲
//! locate_continuous ─────────► ContinuousLog::open ──────► ContinuousDataset ─────┘
//! ```
//!
//! Nothing here prints; a conversion reports to a callback.

pub mod batch;
pub mod card;
mod content_hash;
pub mod continuous;
pub mod dataset;
mod disk;
pub mod download;
pub mod episode_index;
pub mod error;
pub mod family;
pub mod frame_store;
mod hdf5_file;
pub mod held_out;
pub mod inspect;
pub mod lint;
pub mod loader;
pub mod locate;
pub mod manifest;
pub mod npy;
mod plain_path;
pub mod plan;
pub mod replay_log;
pub mod run_folder;
pub mod sampler;
pub mod selection;
mod shuffle;

pub use batch::AtariBatch;
pub use card::{AtariCard, ContinuousCard, DatasetCard};
pub use continuous::{
    ContinuousBatch, ContinuousDataset, ContinuousInspection, ContinuousLog, ContinuousManifest,
    ContinuousOptions, ContinuousOrigin, Fragment, LocatedContinuous, inspect_continuous,
    locate_continuous,
};
pub use dataset::AtariDataset;
pub use episode_index::EpisodeIndex;
pub use error::DataError;
pub use family::{Family, family_of};
pub use held_out::{Part, Split};
pub use inspect::{Inspection, inspect};
pub use lint::{Finding, LintReport, Severity, lint};
pub use loader::{Loader, LoaderConfig};
pub use locate::{Located, datasets_folder, known_game, locate, snake_case};
pub use manifest::{Kind, Manifest, Origin};
pub use plan::Plan;
pub use replay_log::ReplayLog;
pub use run_folder::RunFolder;
pub use sampler::{Sampling, WindowSampler};
pub use selection::Selection;
