//! Playing: rollouts of any `Policy` in any `VectorEnv`, and the report about them.
//!
//! Also the statistics a report is made of, the smoothness of distributions among them, and the
//! page about several runs.
//!
//! This crate does not know the model: its own tests play hand-written policies.

pub mod ablation;
pub mod filmed;
pub mod fourier_transform;
pub mod normalize;
pub mod page;
pub mod random;
pub mod replay;
pub mod report;
pub mod rollout;
pub mod smoothness;
pub mod statistics;
pub mod summary;
pub mod table;

pub use ablation::{Ablation, AblationResult, AblationRow};
pub use filmed::Filmed;
pub use fourier_transform::FourierTransform;
pub use normalize::{Convention, Pair};
pub use random::RandomPolicy;
pub use replay::{Moment, replay};
pub use report::{
    ActionShare, CheckpointRef, Evaluation, ReportError, Setting, SmoothnessResult, TargetResult,
};
pub use rollout::{
    FailedEpisode, Pace, Plan, PlayedDistributions, PlayedEpisode, Player, Progress, Rollout,
    RolloutError, rollout, rollout_together,
};
pub use smoothness::{Pooled, Smoothness};
pub use summary::Summary;
