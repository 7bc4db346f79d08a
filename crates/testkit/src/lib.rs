//! For tests only: golden files, gradient checks, comparisons, recordings, a web server.

pub mod compare;
pub mod dopamine;
pub mod golden;
pub mod gradient;
pub mod long_log;
pub mod web_server;

pub use compare::{assert_close, largest_difference};
pub use golden::Golden;
pub use gradient::assert_gradient;
