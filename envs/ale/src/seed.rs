//! Conversion of 64-bit episode seeds to the emulator's seeds.

use overtone_core::seed::mix;

/// The emulator's seed for the episode with seed `seed`: SplitMix64's finalizer, reduced to
/// `1 ..= 2³¹ − 1`. The emulator's seed is a signed 32-bit number, and a negative seed means the time
/// of day.
///
/// ```
/// assert_eq!(overtone_ale::seed::ale_seed(0), 1_063_198_246);
/// ```
pub fn ale_seed(seed: u64) -> i32 {
    (mix(seed) % (i32::MAX as u64)) as i32 + 1
}
