//! One file per command.

pub mod data;
pub mod dataset;
pub mod evaluate;
pub mod gpu_check;
pub mod lab;
pub mod train;
