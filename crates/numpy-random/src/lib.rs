//! NumPy's `default_rng(seed)`, written from the published algorithms, to reproduce data and
//! episodes that NumPy drew.
//!
//! | file | draws | after | equal to NumPy's |
//! | --- | --- | --- | --- |
//! | `pcg64.rs` | 64 random bits, uniform numbers | O'Neill 2014, 2015 | to the bit |
//! | `ziggurat.rs` | normal numbers | Marsaglia and Tsang 2000, 256 layers | to the bit |
//!
//! Normal numbers need `exp` and `ln` that round like the GNU C library. With other libraries, some
//! differ in the last bit. Code that does not have to equal NumPy draws from `overtone_core::seed`.

mod pcg64;
mod ziggurat;

pub use pcg64::Pcg64;
pub use ziggurat::Ziggurats;
