//! Estimates of an agent's return from a recording, where nothing may be played.

pub mod fit;
pub mod fitted_q;
pub mod forced;
pub mod recorded_steps;

pub use fit::{Estimate, Estimates, Fit, FitError, FitOptions, Fitted};
pub use fitted_q::FittedQ;
pub use forced::{Forced, ForcedActions};
pub use recorded_steps::{Recorded, RecordedSteps};
