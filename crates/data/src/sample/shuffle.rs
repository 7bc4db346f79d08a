//! Seeded shuffling whose result depends on nothing but the seed: stored cursors count draws,
//! so the order must stay the same from release to release and on every platform.

use overtone_core::seed::Generator;
use rand::{Rng, SeedableRng};

/// A number below `n`; see [`scale`].
///
/// # Panics
/// When `n` is 0: a caller's bug.
pub fn below(rng: &mut Generator, n: usize) -> usize {
    scale(rng.next_u64(), n)
}

/// 64 random bits as a number below `n`, by Lemire's multiplication; the bias is under
/// `n / 2⁶⁴`.
///
/// # Panics
/// When `n` is 0: a caller's bug.
pub fn scale(bits: u64, n: usize) -> usize {
    assert!(n > 0, "nothing lies below 0");
    ((u128::from(bits) * n as u128) >> 64) as usize
}

/// A permutation of `0 .. n` (Fisher and Yates).
///
/// # Panics
/// When `n` does not fit 32 bits: a caller's bug.
pub fn permutation(n: usize, seed: u64) -> Vec<u32> {
    let n = u32::try_from(n).expect("at most 2³² items are shuffled");
    let mut rng = Generator::seed_from_u64(seed);
    let mut items: Vec<u32> = (0..n).collect();
    for i in (1..items.len()).rev() {
        items.swap(i, below(&mut rng, i + 1));
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_hold_each_item_once_and_keep_their_order() {
        for n in [0, 1, 2, 1000] {
            let mut items = permutation(n, 7);
            items.sort_unstable();
            assert!(items.iter().copied().eq(0..n as u32));
        }
        // Pinned: a stored sampler cursor means these draws.
        assert_eq!(permutation(8, 7), [5, 0, 6, 2, 3, 4, 7, 1]);
        assert_ne!(permutation(8, 7), permutation(8, 8));
    }

    #[test]
    fn every_place_is_equally_likely() {
        let mut counts = [[0u32; 3]; 3];
        for seed in 0..6000 {
            for (place, item) in permutation(3, seed).into_iter().enumerate() {
                counts[place][item as usize] += 1;
            }
        }
        // 2000 expected; the standard deviation is about 37.
        assert!(counts.iter().flatten().all(|&count| (1800..2200).contains(&count)), "{counts:?}");
    }
}
