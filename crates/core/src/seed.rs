//! Seeds: every generator of a run is derived from the run's one seed and a role.
//!
//! Two roles never share a stream, so drawing one more number for dropout does not move
//! the order in which data is sampled.

use rand::SeedableRng;

/// The generator used everywhere on the host: portable and the same on every platform.
pub type Generator = rand::rngs::ChaCha8Rng;

/// SplitMix64's finalizer (Steele, Lea & Flood 2014): a bijection that mixes all 64 bits.
pub fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The seed of `role` (such as `"init"` or `"sampling"`) in the run with seed `run_seed`.
///
/// ```
/// use overtone_core::seed::derive;
/// assert_eq!(derive(7, "init"), derive(7, "init"));
/// assert_ne!(derive(7, "init"), derive(7, "dropout"));
/// assert_ne!(derive(7, "init"), derive(8, "init"));
/// ```
pub fn derive(run_seed: u64, role: &str) -> u64 {
    role.bytes().fold(mix(run_seed), |state, byte| mix(state ^ u64::from(byte)))
}

/// The seed of item `index` (a step, an episode) under `seed`.
pub fn derive_nth(seed: u64, index: u64) -> u64 {
    mix(mix(seed) ^ mix(index))
}

/// A generator for `role` in the run with seed `run_seed`.
pub fn generator(run_seed: u64, role: &str) -> Generator {
    Generator::seed_from_u64(derive(run_seed, role))
}

/// A generator that draws what `generator` would draw, which itself does not move.
pub fn copy(generator: &Generator) -> Generator {
    Generator::deserialize_state(&generator.serialize_state())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    /// At each place in the generator's blocks, and for numbers of 32 and 64 bits.
    #[test]
    fn a_copy_draws_the_same_numbers() {
        let mut generator = generator(1, "policy");
        for step in 0..200 {
            let mut copied = copy(&generator);
            if step % 3 == 0 {
                assert_eq!(copied.random::<u32>(), generator.random::<u32>());
            }
            let both = [&mut copied, &mut generator].map(|each| each.random::<[u64; 9]>());
            assert_eq!(both[0], both[1], "{step}");
        }
    }
}
