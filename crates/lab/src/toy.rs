//! Learning a known conditional distribution: the toy example of the Fourier head's paper
//! (Section 4.1, Appendix C.2 and C.3), with a small trainer of its own.
//!
//! A perceptron 2 → 64 → 32 → head sees `(x, y)` and learns how `z` is distributed. One run is
//! 62,500 steps on 32 rows each, and the study hundreds of runs. At that size a step of a
//! tensor library is nearly all overhead: each operation allocates, dispatches and records a
//! node for microseconds around a fraction of a microsecond of arithmetic. So forward and
//! backward passes are written out over slices here, one run on one thread, many runs side by
//! side. The heads of `overtone-model` are the oracle of the tests.
//!
//! | file | what |
//! | --- | --- |
//! | [`random`] | NumPy's random numbers |
//! | [`data`] | the three datasets, their bins, split and true distributions |
//! | [`number`] | what is asked of `f32` and `f64` |
//! | [`product`] | products of small matrices |
//! | [`network`] | the perceptron: parameters, forward and backward pass |
//! | [`head`] | losses and their gradients |
//! | [`trainer`] | Adam, shuffling, schedule, one epoch |
//! | [`study`] | many runs and their spread |
//! | [`findings`] | training all of them, and what they say beside the paper |
//! | [`timing`] | how long an epoch takes |

pub mod data;
pub mod findings;
pub mod head;
pub mod network;
pub mod number;
pub mod product;
pub mod random;
pub mod study;
pub mod timing;
pub mod trainer;

pub use data::{Dataset, Samples};
pub use head::HeadKind;
pub use trainer::Trainer;
