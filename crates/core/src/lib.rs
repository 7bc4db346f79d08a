//! The vocabulary that all crates share: tasks and their spaces, episodes, returns-to-go, context
//! windows, seeds, the acting protocol, judgements, and the [`Policy`] trait.
//!
//! Nothing here does I/O, reads a clock, or draws from a global generator.

mod acting_mode;
mod action_scale;
mod bounds;
mod decimal;
pub mod episode;
mod first_observations;
pub mod imitation;
pub mod interval;
pub mod judgement;
pub mod names;
pub mod normalization;
pub mod picture;
pub mod policy;
pub mod protocol;
pub mod returns;
pub mod seed;
pub mod simulation;
pub mod space;
pub mod task;
pub mod window;

pub use acting_mode::ActingMode;
pub use action_scale::ActionScale;
pub use decimal::{counted, decimal};
pub use episode::{Episode, EpisodeError, Episodes, Outcome};
pub use first_observations::FirstObservations;
pub use interval::Interval;
pub use normalization::Normalization;
pub use picture::Picture;
pub use policy::{Actions, BinOrder, Observations, Played, Policy, PolicyError, Turn};
pub use protocol::Play;
pub use returns::returns_to_go;
pub use simulation::{Simulation, SimulationError};
pub use space::{ActionSpace, ObservationSpace};
pub use task::{Reference, Targets, Task};
pub use window::Window;

/// The README's example, compiled and run with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
