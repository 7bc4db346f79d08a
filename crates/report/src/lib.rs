//! Reports for people: the page about one or several runs, and videos of episodes.

pub mod estimates;
pub mod filmed;
pub mod imitation;
pub mod page;
pub mod reel;

pub use filmed::Filmed;
pub use page::{FailedRun, Page, PageError, RunFiles, StudyCell};
pub use reel::Reel;
