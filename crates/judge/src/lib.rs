//! Estimates of an agent's return from a recording, where nothing may be played.
//!
//! An estimate is not a score: a score is measured in episodes that an agent plays.

pub mod behavior_clone;
pub mod checks;
pub mod fit;
pub mod fitted_q;
pub mod forced;
mod judge;
pub mod recorded_steps;
mod weighing;
pub mod weights;

pub use behavior_clone::BehaviorClone;
pub use fit::{Estimate, Estimates, Fit, FitOptions, Fitted};
pub use fitted_q::FittedQ;
pub use forced::{Forced, ForcedActions, ReplayError};
pub use judge::{Candidate, JudgeError, JudgeOptions, LEAST_EPISODES, Progress, Request, judge};
pub use recorded_steps::{Recorded, RecordedSteps};
