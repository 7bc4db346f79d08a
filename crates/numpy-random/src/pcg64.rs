//! PCG XSL RR 128/64 (O'Neill 2014), its state filled from one seed by the hash of O'Neill
//! 2015 ("Developing a seed_seq alternative").

/// O'Neill's 128-bit multiplier.
const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

/// A generator of 64-bit numbers.
#[derive(Clone, Debug)]
pub struct Pcg64 {
    state: u128,
    increment: u128,
}

impl Pcg64 {
    /// The stream of NumPy's `default_rng(seed)`.
    ///
    /// ```
    /// use overtone_numpy_random::Pcg64;
    /// assert_eq!(Pcg64::new(42).uniform(), 0.7739560485559633);
    /// ```
    pub fn new(seed: u64) -> Self {
        let words = SeedHash::new(seed).words();
        let wide = |i: usize| (u128::from(words[i]) << 64) | u128::from(words[i + 1]);
        let increment = (wide(2) << 1) | 1;
        let state = increment.wrapping_add(wide(0));
        let mut generator = Self { state, increment };
        generator.advance();
        generator
    }

    fn advance(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
    }

    /// 64 random bits: the xor of the state's halves, rotated by its top six bits.
    pub fn bits(&mut self) -> u64 {
        self.advance();
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        folded.rotate_right((self.state >> 122) as u32)
    }

    /// Uniform on [0, 1), a multiple of 2⁻⁵³.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform between `low` and `high`: NumPy's `uniform(low, high)`.
    pub fn uniform_between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }
}

/// A pool of four words with the hashed seed, from which any number of words can be hashed.
struct SeedHash([u32; 4]);

/// `value` xored with a running constant, multiplied by the next one, its halves xored.
fn hash(value: u32, constant: &mut u32, multiplier: u32) -> u32 {
    let value = value ^ *constant;
    *constant = constant.wrapping_mul(multiplier);
    let value = value.wrapping_mul(*constant);
    value ^ (value >> 16)
}

impl SeedHash {
    fn new(seed: u64) -> Self {
        let mut constant = 0x43b0_d7e5;
        let mut next = |value| hash(value, &mut constant, 0x931e_8875);
        let mut pool = [seed as u32, (seed >> 32) as u32, 0, 0].map(&mut next);
        for from in 0..4 {
            for to in (0..4).filter(|&to| to != from) {
                let mixed = pool[to]
                    .wrapping_mul(0xca01_f9dd)
                    .wrapping_sub(next(pool[from]).wrapping_mul(0x4973_f715));
                pool[to] = mixed ^ (mixed >> 16);
            }
        }
        Self(pool)
    }

    /// Four words of 64 bits.
    fn words(&self) -> [u64; 4] {
        let mut constant = 0x8b51_f9dd;
        let mut next = |i: usize| u64::from(hash(self.0[i % 4], &mut constant, 0x58f3_8ded));
        std::array::from_fn(|i| next(2 * i) | (next(2 * i + 1) << 32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_stream_of_default_rng() {
        let mut generator = Pcg64::new(42);
        let draws: [f64; 3] = std::array::from_fn(|_| generator.uniform());
        assert_eq!(draws, [0.7739560485559633, 0.4388784397520523, 0.8585979199113825]);
    }

    /// Expected: NumPy 2.4's `default_rng(42).uniform(-0.1, 0.1, 3)`.
    #[test]
    fn intervals_round_as_numpy_rounds_them() {
        let mut generator = Pcg64::new(42);
        let draws: [f64; 3] = std::array::from_fn(|_| generator.uniform_between(-0.1, 0.1));
        assert_eq!(draws, [0.05479120971119267, -0.012224312049589542, 0.07171958398227649]);
    }

    #[test]
    fn every_bit_of_the_seed_counts() {
        let first: Vec<u64> = (0..64).map(|bit| Pcg64::new(1 << bit).bits()).collect();
        for (i, a) in first.iter().enumerate() {
            assert!(first[..i].iter().all(|b| a != b), "bit {i}");
        }
    }
}
