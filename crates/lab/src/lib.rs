//! The papers' smaller experiments, each one function from settings to findings.
//!
//! Findings are written as Markdown and CSV tables and plots, with the paper's numbers
//! beside ours. Everything is seeded; the number of threads changes nothing.

pub mod classifier;
pub mod comparison;
pub mod data_file;
mod dot;
pub mod forecast;
pub mod fourier_integral;
pub mod grid;
pub mod images;
pub mod language;
pub mod learning;
pub mod memory;
pub mod noise;
pub mod power_law;
pub mod report;
pub mod run;
pub mod scaling_law;
pub mod series;
pub mod side_by_side;
pub mod smoothness;
pub mod square_wave;
pub mod study;
pub mod tempo;
pub mod toy;
pub mod transformer;
pub mod translation;

pub use noise::Colour;
pub use power_law::PowerLaw;
