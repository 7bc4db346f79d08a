//! NumPy's `default_rng(seed)`, written from the published algorithms, so that data and
//! episodes that NumPy drew can be drawn again.
//!
//! | file | draws | after | equal to NumPy's |
//! | --- | --- | --- | --- |
//! | `pcg64.rs` | 64 random bits, uniform numbers, signs | O'Neill 2014, 2015; Lemire 2019 | to the bit |
//! | `ziggurat.rs` | normal numbers | Marsaglia and Tsang 2000, 256 layers | to the bit |
//! | `ziggurat.rs` | exponential numbers | the same | within 1e-14 of their size |
//!
//! Normal numbers need `exp` and `ln` that round as the GNU C library's do; with others, some
//! are another last bit away. Whatever need not equal NumPy draws from
//! `overtone_core::seed`.

mod pcg64;
mod ziggurat;

pub use pcg64::Pcg64;
pub use ziggurat::Ziggurats;
