//! Estimates of an agent's return from a recording, where nothing may be played.
//!
//! An estimate is not a score: a score is measured in episodes that an agent plays.

pub mod checks;
pub mod weights;
