//! For tests only: golden files, gradient checks, comparisons, recordings, web servers, child
//! processes, a folder to run a program in.

pub mod child;
pub mod compare;
pub mod desk;
pub mod differences;
pub mod dopamine;
pub mod golden;
pub mod gradient;
pub mod hdf5_file;
mod left_out;
pub mod long_log;
pub mod minari_hub;
pub mod npz;
mod project;
pub mod sentences;
pub mod tls;
pub mod web_server;

pub use compare::{assert_close, largest_difference};
pub use desk::Desk;
pub use golden::Golden;
pub use gradient::assert_gradient;
pub use hdf5_file::Hdf5File;
pub use left_out::left_out;
pub use project::project;
