//! Recorded experience on disk, and batches of context windows drawn from it.
//!
//! ```text
//! read::open ─► Recording::Columns ───► Dataset::of ──────────────┐
//!      │                                                          ▼
//!      └─► Recording::ReplayLog ─► Preparation::new ─► Preparation::ensure ─► Dataset
//!                                                                 │
//!                                       Loader ◄── WindowSampler ◄┘
//! ```
//!
//! A [`Dataset`] is one type for every task: frames or vectors are observed, actions are chosen
//! from a list or real-valued. A file format is one file in `read/`.
//!
//! Nothing here prints; a conversion reports to a callback.

pub mod batch;
mod best_shares;
pub mod card;
pub mod check;
pub mod columns;
mod combinations;
pub mod dataset;
mod disk;
pub mod download;
pub mod episode_index;
mod episode_returns;
pub mod error;
pub mod expected;
pub mod findings;
mod fits;
mod from_columns;
pub mod held_out;
mod hex;
pub mod loader;
pub mod locate;
pub mod minari_id;
pub mod options;
pub mod origin;
mod outcome_code;
mod plain_path;
pub mod read;
mod recorded_spaces;
mod recorded_task;
pub mod recording;
pub mod sampler;
mod shuffle;
pub mod spaces;
pub mod store;
mod stored;
pub mod write;

pub use batch::{Batch, BatchActions, BatchObservations, BatchOptions, Transitions};
pub use card::DatasetCard;
pub use check::{Check, Inspection, LintReport, check, check_as};
pub use columns::{ActionColumn, Columns, ObservationColumn};
pub use dataset::{Counts, Dataset, StoredObservations};
pub use episode_index::EpisodeIndex;
pub use episode_returns::EpisodeReturns;
pub use error::DataError;
pub use expected::Expected;
pub use findings::{Finding, Findings, Severity};
pub use held_out::{Split, Subset};
pub use loader::{Loader, LoaderConfig, Share};
pub use locate::{
    Located, cache_folder, check_named, datasets_folder, description_of, folder_of, locate, starter,
};
pub use minari_id::{MinariId, RecordedEnv, minari_folder};
pub use options::{DatasetOptions, Fragment};
pub use origin::{Kind, Origin};
pub use read::read_frames::ReadFrames;
pub use read::replay_log::ReplayLog;
pub use read::run_folder::RunFolder;
pub use recorded_spaces::RecordedSpaces;
pub use recorded_task::RecordedTask;
pub use recording::{Reader, Recording};
pub use sampler::{Sampling, WindowSampler};
pub use spaces::Space;
pub use store::frames::FrameStore;
pub use store::manifest::StoreManifest;
pub use store::preparation::Preparation;
pub use store::selection::Selection;
pub use stored::{Pictures, Stored};
pub use write::{About, MinariWriter, Written, WrittenEpisode};
