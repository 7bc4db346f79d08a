//! One file per command.

pub mod data;
pub mod download;
pub mod evaluate;
pub mod experiment;
pub mod report;
pub mod train;
pub mod video;
