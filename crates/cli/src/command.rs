//! One file per command.

pub mod data;
pub mod download;
pub mod evaluate;
pub mod prepare;
pub mod report;
pub mod train;
pub mod video;
