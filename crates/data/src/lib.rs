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
//! The rooms: `read/` (a file for each format), `describe/` (what a recording holds and what is wrong
//! with it), `store/` (converted frames), `sample/` (datasets and batches), `write/` and `download/`.
//!
//! Nothing here prints; a conversion reports to a callback.

mod describe;
mod disk;
pub mod download;
pub mod error;
mod hex;
mod outcome_code;
mod plain_path;
pub mod read;
mod sample;
pub mod store;
pub mod write;

pub use describe::{card, check, expected, findings, locate, minari_id, origin, spaces};
pub(crate) use describe::{recorded_spaces, recorded_task, stored};
pub use read::columns::{self};
pub use read::recording::{self};
pub use sample::{batch, dataset, episode_index, held_out, loader, options, sampler};
pub(crate) use sample::{
    best_shares, combinations, copies, episode_returns, from_columns, shares, shuffle,
};

pub use batch::{Batch, BatchActions, BatchObservations, BatchOptions, Transitions};
pub use card::DatasetCard;
pub use check::{Check, Inspection, LintReport, check, check_as};
pub use columns::{ActionColumn, Columns, Mixture, ObservationColumn};
pub use copies::{EpisodeMark, copies};
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
