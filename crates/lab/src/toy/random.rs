//! The random numbers behind the published datasets: streams that equal those of NumPy's
//! `default_rng(seed)`, written from the published algorithms.
//!
//! The Fourier head's toy data are drawn by NumPy, and its tables compare runs on the *same*
//! data, so we draw the same numbers. Everything else of this project draws from
//! [`overtone_core::seed`].
//!
//! | file | draws | after |
//! | --- | --- | --- |
//! | `pcg64.rs` | 64 random bits, uniform numbers, signs | O'Neill 2014, 2015; Lemire 2019 |
//! | `ziggurat.rs` | normal and exponential numbers | Marsaglia and Tsang 2000, 256 layers |
//! | `gamma.rs` | gamma and beta numbers | Marsaglia and Tsang 2000; Ahrens and Dieter 1974; Jöhnk 1964 |
//! | `mersenne_twister.rs` | the permutation of the train/test split | Matsumoto and Nishimura 1998 |

mod gamma;
mod mersenne_twister;
mod pcg64;
mod ziggurat;

pub use gamma::Beta;
pub use mersenne_twister::permutation;
pub use pcg64::Pcg64;
pub use ziggurat::Ziggurats;
