//! Playing: rollouts of any `Policy` in any `VectorEnv`, and what came of them.
//!
//! Also statistics over episodes and runs, the smoothness of distributions among them. The pages,
//! plots and videos made of all this are the crate `report`'s.
//!
//! This crate does not know the model: its own tests play hand-written policies.

pub mod ablation;
pub mod choice;
pub mod evaluation;
pub mod fourier_transform;
pub mod random;
pub mod replay;
pub mod rollout;
pub mod smoothness;
pub mod statistics;
pub mod summary;
pub mod table;

pub use ablation::{Ablation, AblationResult, AblationRow};
pub use choice::{Choice, ChoicePoint};
pub use evaluation::{
    ActionHistogram, ActionShare, CheckpointRef, Evaluation, Heeds, ReportError, Setting,
    SmoothnessResult, TargetResult,
};
pub use fourier_transform::FourierTransform;
pub use random::RandomPolicy;
pub use replay::{Moment, replay};
pub use rollout::{
    FailedEpisode, Pace, Plan, PlayedDistributions, PlayedEpisode, Player, Progress, Rollout,
    RolloutError, rollout, rollout_together,
};
pub use smoothness::{Pooled, Smoothness};
pub use summary::Summary;
