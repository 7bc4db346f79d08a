//! The random numbers behind the published datasets: streams that equal those of NumPy's
//! `default_rng(seed)`, written from the published algorithms.
//!
//! The Fourier head's toy data are drawn by NumPy, and its tables compare runs on the *same*
//! data, so we draw the same numbers. Bits, uniform, normal and exponential numbers are
//! [`overtone_numpy_random`]'s; what only the toy data need is here.
//!
//! | file | draws | after |
//! | --- | --- | --- |
//! | `gamma.rs` | gamma and beta numbers | Marsaglia and Tsang 2000; Ahrens and Dieter 1974; Jöhnk 1964 |
//! | `mersenne_twister.rs` | the permutation of the train/test split | Matsumoto and Nishimura 1998 |

mod gamma;
mod mersenne_twister;

pub use gamma::Beta;
pub use mersenne_twister::permutation;
pub use overtone_numpy_random::{Pcg64, Ziggurats};
