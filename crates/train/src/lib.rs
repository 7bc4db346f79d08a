//! Offline training: optimizer, schedule, checkpoints, metrics, and the loop.
//!
//! This crate does not depend on environments, so training is offline by construction. It does not
//! print; it reports progress to an [`Observer`].

pub mod algorithm;
mod averages;
pub mod checkpoint;
pub mod config;
pub mod error;
pub mod events;
mod follow;
pub mod frame_bank;
pub mod gradient;
pub mod held_out;
pub mod initial;
pub mod learner;
pub mod metrics;
pub mod observer;
pub mod optimizer;
pub mod processes;
pub mod run_dir;
pub mod schedule;
pub mod setting;
pub mod shortened;
pub mod trainer;
pub mod training_data;

pub use algorithm::{
    Algorithm, Export, Exported, PartFigures, Parts, Recorded, StepAt, StepFigures, Stored,
};
pub use checkpoint::{Best, Checkpoint, InitSource, TrainState, Unreported};
pub use config::{Precision, ScheduleKind, TrainConfig};
pub use error::TrainError;
pub use follow::Target;
pub use frame_bank::FrameBank;
pub use gradient::Gradient;
pub use initial::Initial;
pub use learner::{BatchLoss, Learner};
pub use observer::{Observer, StepReport};
pub use optimizer::{AdamW, AdamWConfig, Decayed, LearningRate};
pub use processes::{LostProcess, Processes, SingleProcess};
pub use run_dir::{RunDir, RunLock};
pub use schedule::Schedule;
pub use setting::Setting;
pub use shortened::Shortened;
pub use trainer::{Finished, Job, Trainer, Training, recorder::Recorder};
pub use training_data::{TrainingData, TransitionTensors};
