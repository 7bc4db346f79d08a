//! The papers' synthetic experiments, each one function from settings to findings.
//!
//! Findings are written as Markdown and CSV tables and SVG plots, with the paper's numbers
//! beside ours. Everything is seeded; the number of threads changes nothing.

pub mod noise;
pub mod plot;
pub mod pmf_file;
pub mod smoothness;
pub mod square_wave;

pub use noise::Colour;
pub use plot::{Line, LinePlot};
pub use pmf_file::{Pmf, PmfFileError};
