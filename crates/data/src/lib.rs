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

pub use describe::{card, check};

pub use describe::card::DatasetCard;
pub use describe::check::{Check, Inspection, LintReport, check, check_as};
pub use describe::expected::Expected;
pub use describe::findings::{Finding, Findings, Severity};
pub use describe::locate::{
    Located, cache_folder, check_named, datasets_folder, description_of, folder_of, locate, starter,
};
pub use describe::minari_id::{MinariId, RecordedEnv, minari_folder};
pub use describe::origin::{Kind, Origin};
pub use describe::recorded_spaces::RecordedSpaces;
pub use describe::recorded_task::RecordedTask;
pub use error::DataError;
pub use read::action_masks::ActionMasks;
pub use read::column::{ActionColumn, ObservationColumn};
pub use read::columns::{Columns, Mixture};
pub use read::form::{Form, TableColumns};
pub use read::npz::read_array;
pub use read::optional_arrays::OptionalArrays;
pub use read::read_frames::ReadFrames;
pub use read::recording::{Reader, Recording};
pub use read::replay_log::ReplayLog;
pub use read::run_folder::RunFolder;
pub use read::spaces::Space;
pub use read::stored::{Pictures, Stored};
pub use sample::batch::{
    Batch, BatchActions, BatchObservations, BatchOptions, Lookahead, Transitions,
};
pub use sample::copies::{EpisodeMark, copies};
pub use sample::counts::Counts;
pub use sample::dataset::{Dataset, StoredObservations};
pub use sample::episode_index::EpisodeIndex;
pub use sample::episode_returns::EpisodeReturns;
pub use sample::held_out::{Split, Subset};
pub use sample::loader::{Loader, LoaderConfig, Share};
pub use sample::options::{DatasetOptions, Fragment};
pub use sample::sampler::{Sampling, WindowSampler};
pub use store::frames::FrameStore;
pub use store::manifest::StoreManifest;
pub use store::preparation::Preparation;
pub use store::selection::Selection;
pub use write::about::{About, Written};
pub use write::{MinariWriter, WrittenEpisode};
