//! [`Generator`]: the random numbers of an agent, the same as in Overtone.
//!
//! ChaCha with 8 rounds (Bernstein 2008), seeded through PCG32 (O'Neill 2014) as in the crate
//! `rand_core`. The seed of a role is derived by SplitMix64's finalizer.

/// A generator of 64-bit numbers.
#[derive(Clone, Debug)]
pub struct Generator {
    key: [u32; 8],
    block: u64,
    words: [u32; 16],
    /// The next word; 16: none is left.
    next: usize,
}

/// SplitMix64's finalizer.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Generator {
    /// The generator of a policy in the episode with this seed.
    pub fn of_policy(seed: u64) -> Self {
        let role = "policy".bytes();
        let mut state = role.fold(mix(seed), |state, byte| mix(state ^ u64::from(byte)));
        let key = std::array::from_fn(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(11_634_580_027_462_260_723);
            let mixed = (((state >> 18) ^ state) >> 27) as u32;
            mixed.rotate_right((state >> 59) as u32)
        });
        Self { key, block: 0, words: [0; 16], next: 16 }
    }

    fn refill(&mut self) {
        let mut state = [0u32; 16];
        state[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
        state[4..12].copy_from_slice(&self.key);
        state[12] = self.block as u32;
        state[13] = (self.block >> 32) as u32;
        let start = state;
        for _ in 0..4 {
            for [a, b, c, d] in [
                [0, 4, 8, 12],
                [1, 5, 9, 13],
                [2, 6, 10, 14],
                [3, 7, 11, 15],
                [0, 5, 10, 15],
                [1, 6, 11, 12],
                [2, 7, 8, 13],
                [3, 4, 9, 14],
            ] {
                for [to, add, turn, by] in
                    [[a, b, d, 16], [c, d, b, 12], [a, b, d, 8], [c, d, b, 7]]
                {
                    state[to] = state[to].wrapping_add(state[add]);
                    state[turn] = (state[turn] ^ state[to]).rotate_left(by as u32);
                }
            }
        }
        for (word, (state, start)) in self.words.iter_mut().zip(state.into_iter().zip(start)) {
            *word = state.wrapping_add(start);
        }
        self.block = self.block.wrapping_add(1);
        self.next = 0;
    }

    /// The next 32 bits.
    pub fn u32(&mut self) -> u32 {
        if self.next == 16 {
            self.refill();
        }
        self.next += 1;
        self.words[self.next - 1]
    }

    /// The next 64 bits.
    pub fn u64(&mut self) -> u64 {
        let low = u64::from(self.u32());
        low | u64::from(self.u32()) << 32
    }

    /// Uniform in `0..n`, by Canon's method with two draws (Canon 2021), as in the crate `rand`.
    pub fn below(&mut self, n: usize) -> usize {
        let n = n as u32;
        let product = |random: u32| u64::from(random) * u64::from(n);
        let first = product(self.u32());
        let (mut result, low) = ((first >> 32) as u32, first as u32);
        if low > n.wrapping_neg() {
            let next = (product(self.u32()) >> 32) as u32;
            result += u32::from(low.checked_add(next).is_none());
        }
        result as usize
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}
