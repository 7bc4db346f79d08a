//! Evaluation: rollouts of any `Policy` in any `VectorEnv`, and their results.
//!
//! The crate also computes statistics over episodes and runs, and the smoothness of action
//! distributions. The crate `report` makes pages, plots and videos from them.
//!
//! This crate does not depend on the model. Its tests use hand-written policies.

pub mod choice;
pub mod evaluation;
pub mod fourier_transform;
mod paired;
pub mod random;
pub mod replay;
pub mod report_file;
pub mod rollout;
pub mod selection;
pub mod smoothness;
pub mod statistics;
pub mod summary;
pub mod table;

pub use choice::{Choice, ChoicePoint, Portfolio};
pub use evaluation::{
    ActionProbability, CheckpointRef, Evaluation, Setting, SmoothnessResult, TargetResult,
    UsedSettings,
};
pub use fourier_transform::FourierTransform;
pub use paired::paired_difference;
pub use random::{RandomPolicy, allowed_actions};
pub use replay::{Moment, replay};
pub use report_file::ReportError;
pub use rollout::{
    FailedEpisode, Plan, PlayedDistributions, PlayedEpisode, Player, Progress, Rollout,
    RolloutError, Timing, rollout, rollout_together,
};
pub use smoothness::{Pooled, Smoothness};
pub use summary::Summary;
