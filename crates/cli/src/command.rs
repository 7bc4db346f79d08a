//! One file per command.

pub mod data;
pub mod download;
pub mod evaluate;
pub mod prepare;
pub mod provenance;
pub mod record;
pub mod report;
pub mod study;
pub mod train;
pub mod video;
pub mod weights;
