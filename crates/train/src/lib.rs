//! Offline training: optimizer, schedule, checkpoints, metrics, and the loop.
//!
//! This crate does not know environments: training is offline because it cannot be
//! otherwise. It prints nothing; progress is reported to an [`Observer`].

pub mod agent;
pub mod algorithm;
pub mod atari;
pub mod checkpoint;
pub mod config;
pub mod continuous;
pub mod error;
pub mod events;
pub mod frame_bank;
pub mod held_out;
pub mod metrics;
pub mod optimizer;
pub mod run_dir;
pub mod schedule;
pub mod supervised;
pub mod trainer;

pub use agent::{Agent, AtariAgent, ContinuousTaskAgent};
pub use algorithm::{Algorithm, Exported, StepAt, StepFigures, Stored};
pub use atari::AtariLearner;
pub use checkpoint::{Best, Checkpoint, TrainState, Unreported};
pub use config::{Precision, ScheduleKind, TrainConfig};
pub use continuous::ContinuousLearner;
pub use error::TrainError;
pub use frame_bank::FrameBank;
pub use optimizer::{AdamW, AdamWConfig, Decayed};
pub use run_dir::{RunDir, RunLock};
pub use schedule::Schedule;
pub use supervised::{BatchLoss, Supervised};
pub use trainer::{Finished, Job, Observer, StepReport, Trainer};
