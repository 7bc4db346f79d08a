//! Selection of the elements that dropout drops: a hash of a seed, a row and a column.
//!
//! No numbers are drawn or stored. Whether an element is dropped depends only on its place. So the
//! backward pass recomputes the hashes of the forward pass, and the CPU and every GPU drop the same
//! elements. Neither the number of threads nor the following rows change a row's mask.

#[cfg(feature = "cube")]
pub(crate) mod cube;

/// Place of a mask in an operation: masks of different places are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the attention probabilities; rows are `(batch, head, query)`.
    Attention,
    /// On the sum that is added to the residual stream; rows are `(batch, token)`.
    Residual,
}

/// A mask that is ready for use: dropped or not, by row and column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mask {
    pub seed: u64,
    /// Elements whose 24-bit hash lies below this are dropped.
    pub threshold: i32,
    /// Factor of kept elements.
    pub scale: f32,
}

/// One row of a mask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaskRow {
    keys: [u32; 2],
    threshold: i32,
    scale: f32,
}

impl Mask {
    /// The mask for one place, or `None` if nothing is dropped.
    ///
    /// # Panics
    /// When the probability lies outside `[0, 1)`.
    pub fn new(probability: f32, seed: u64, place: Place) -> Option<Self> {
        let p = probability;
        assert!((0.0..1.0).contains(&p), "dropout probability {p} is not in [0, 1)");
        if p == 0.0 {
            return None;
        }
        Some(Self {
            seed: mix64(seed ^ (PLACES + place as u64)),
            threshold: (f64::from(p) * f64::from(1 << 24)).round() as i32,
            scale: 1.0 / (1.0 - p),
        })
    }

    /// The row with this index.
    #[inline(always)]
    pub fn row(&self, row: usize) -> MaskRow {
        let key = mix64(self.seed.wrapping_add((row as u64).wrapping_mul(GOLDEN)));
        MaskRow {
            keys: [key as u32, (key >> 32) as u32],
            threshold: self.threshold,
            scale: self.scale,
        }
    }
}

impl MaskRow {
    /// Zero if the element is dropped, `1 / (1 - probability)` if it is kept.
    #[inline(always)]
    pub fn factor(&self, column: u32) -> f32 {
        if (hash(self.keys, column) >> 8) as i32 >= self.threshold { self.scale } else { 0.0 }
    }
}

/// The seed of the `nth` dropout of a step.
pub(crate) fn nth_seed(step_seed: u64, nth: u64) -> u64 {
    mix64(mix64(step_seed) ^ mix64(nth))
}

/// Added to a place before it is mixed with a seed.
const PLACES: u64 = 0x5bf0_3635;
/// 2⁶⁴ divided by the golden ratio, odd.
pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// Multipliers of [`mix64`].
pub(crate) const MIX: [u64; 2] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];
/// Multipliers of [`hash`].
pub(crate) const ROUND: [u32; 3] = [0x9e37_79b9, 0x7feb_352d, 0x846c_a68b];

/// The finaliser of splitmix64: a bijection in which every bit depends on every bit.
#[inline(always)]
fn mix64(mut x: u64) -> u64 {
    x = x.wrapping_add(GOLDEN);
    x = (x ^ (x >> 30)).wrapping_mul(MIX[0]);
    x = (x ^ (x >> 27)).wrapping_mul(MIX[1]);
    x ^ (x >> 31)
}

/// A 32-bit hash of the column under two keys: two multiply-xorshift rounds, which compilers
/// vectorise.
#[inline(always)]
fn hash(keys: [u32; 2], column: u32) -> u32 {
    let mut x = column.wrapping_mul(ROUND[0]) ^ keys[0];
    x = (x ^ (x >> 16)).wrapping_mul(ROUND[1]);
    x ^= keys[1];
    x = (x ^ (x >> 15)).wrapping_mul(ROUND[2]);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(probability: f32, seed: u64, place: Place) -> Mask {
        Mask::new(probability, seed, place).expect("the probability is positive")
    }

    fn dropped(mask: &Mask, row: usize, columns: u32) -> Vec<bool> {
        (0..columns).map(|column| mask.row(row).factor(column) == 0.0).collect()
    }

    #[test]
    fn the_dropped_fraction_is_the_probability() {
        // 1,280,000 draws: standard deviation of the fraction 0.00027.
        for probability in [0.1f32, 0.25, 0.5] {
            let mask = mask(probability, 3, Place::Residual);
            let count: usize = (0..10_000)
                .map(|row| dropped(&mask, row, 128).iter().filter(|dropped| **dropped).count())
                .sum();
            let fraction = count as f64 / 1_280_000.0;
            assert!(
                (fraction - f64::from(probability)).abs() < 0.0015,
                "{probability}: {fraction}"
            );
        }
    }

    #[test]
    fn neighbours_and_places_are_independent() {
        let residual = mask(0.1, 7, Place::Residual);
        let attention = mask(0.1, 7, Place::Attention);
        let next_seed = mask(0.1, 8, Place::Residual);
        let (mut column, mut row, mut place, mut seed) = (0, 0, 0, 0);
        let rows = 8000;
        for i in 0..rows {
            let here = dropped(&residual, i, 129);
            let below = dropped(&residual, i + 1, 129);
            let other = dropped(&attention, i, 129);
            let seeded = dropped(&next_seed, i, 129);
            for j in 0..128 {
                column += usize::from(here[j] && here[j + 1]);
                row += usize::from(here[j] && below[j]);
                place += usize::from(here[j] && other[j]);
                seed += usize::from(here[j] && seeded[j]);
            }
        }
        // Both dropped with probability 0.01; standard deviation of each fraction 0.0001.
        for pairs in [column, row, place, seed] {
            let fraction = pairs as f64 / (128 * rows) as f64;
            assert!((fraction - 0.01).abs() < 0.0006, "{fraction}");
        }
    }

    #[test]
    fn no_mask_without_probability() {
        assert!(Mask::new(0.0, 1, Place::Residual).is_none());
    }
}
