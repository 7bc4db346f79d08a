//! For tests only: the project's readers against damaged and hostile files.
//!
//! A [`Target`] is a reader with a few sound files. [`mutate`](mutate::mutate) damages one of
//! them, and the reader must accept or refuse it: without a panic, a crash, more memory than
//! the target's limit, or ten seconds of silence. Nothing is learned from one input for the
//! next, so every input follows from the seed and its number alone and can be had again.
//!
//! ```text
//! Target ─► Inputs (seed, number) ─► mutate ─► worker: write, read, count ─► watch ─► Outcome
//! ```
//!
//! The readers run in a process of their own ([`worker`]), which is watched ([`watch`]): a C
//! library that crashes, or a stack that overflows, ends that process and not the search.

pub mod inputs;
pub mod memory;
pub mod mutate;
pub mod record;
pub mod targets;
pub mod watch;
pub mod worker;

pub use inputs::Inputs;
pub use record::{Fault, Record};
pub use targets::{Seed, Target, targets};
