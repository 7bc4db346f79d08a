//! The papers' smaller experiments, each one function from settings to findings.
//!
//! Findings are written as Markdown and CSV tables and plots, with the paper's numbers
//! beside ours. Everything is seeded; the number of threads changes nothing.

pub mod density;
pub mod forecast;
pub mod fourier_integral;
pub mod likelihood;
pub mod noise;
pub mod page;
pub mod pmf_file;
pub mod power_law;
pub mod scaling_law;
pub mod smoothness;
pub mod square_wave;
pub mod toy;

pub use noise::Colour;
pub use page::Page;
pub use pmf_file::{Pmf, PmfFileError};
pub use power_law::PowerLaw;
