//! Estimates of an agent's return from a recording, where nothing may be played.
//!
//! An estimate is not a score: a score is measured in episodes that an agent plays.

pub mod behavior_clone;
mod by_critics;
mod by_weights;
pub mod checks;
mod critics;
mod error;
pub mod fit;
pub mod fitted_q;
pub mod forced;
pub mod imitation;
mod judge;
mod log_probs;
pub mod recorded_steps;
mod statistics;
mod together;
mod weighing;
pub mod weights;

pub use behavior_clone::BehaviorClone;
pub use error::{JudgeError, LEAST_EPISODES, Progress};
pub use fit::{Estimate, Estimates, Fit, FitOptions, Fitted};
pub use fitted_q::FittedQ;
pub use forced::{Forced, ForcedActions, ReplayError};
pub use judge::{Candidate, JudgeOptions, Known, Request, judge, judge_known};
pub use recorded_steps::{Recorded, RecordedSteps};
