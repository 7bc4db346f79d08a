//! Playing: rollouts of any `Policy` in any `VectorEnv`, and the report about them.
//!
//! This crate does not know the model: its own tests play hand-written policies.

pub mod normalize;
pub mod random;
pub mod report;
pub mod rollout;
pub mod summary;
pub mod table;

pub use normalize::{Convention, Pair};
pub use random::RandomPolicy;
pub use report::{CheckpointRef, Evaluation, ReportError, Setting, TargetResult};
pub use rollout::{Plan, PlayedEpisode, Progress, Rollout, RolloutError, rollout};
pub use summary::Summary;
