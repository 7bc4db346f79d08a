//! The store that keeps every frame of a log once: what is drawn from a log, its conversion
//! into one file, and that file opened as a [`crate::Dataset`].

mod content_hash;
mod convert;
pub mod frames;
mod layout;
pub mod manifest;
mod open;
pub mod preparation;
pub mod selection;
mod shard;
mod temporary;
