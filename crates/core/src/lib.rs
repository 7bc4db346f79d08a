//! The vocabulary every other crate shares: episodes, returns-to-go, context windows,
//! seeds, the playing protocol, and the [`Policy`] trait.
//!
//! Nothing here does I/O, reads a clock, or draws from a global generator.

pub mod crc32c;
pub mod episode;
pub mod normalization;
pub mod numpy;
pub mod policy;
pub mod protocol;
pub mod returns;
pub mod seed;
pub mod space;
pub mod window;

pub use episode::{Episode, EpisodeError, Episodes, Outcome};
pub use normalization::Normalization;
pub use policy::{Actions, BinOrder, Observations, Played, Policy, PolicyError, Turn};
pub use protocol::{ContinuousProtocol, Emulation, Play, Protocol, Simulation};
pub use returns::returns_to_go;
pub use space::{ActionSpace, ObservationSpace};
pub use window::Window;
