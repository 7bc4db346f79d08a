//! The Mersenne Twister MT19937 (Matsumoto and Nishimura 1998), which shuffles the rows that
//! scikit-learn's `train_test_split(random_state=…)` parts.

const N: usize = 624;
const M: usize = 397;

struct MersenneTwister {
    state: [u32; N],
    next: usize,
}

impl MersenneTwister {
    fn new(seed: u32) -> Self {
        let mut state = [seed; N];
        for i in 1..N {
            let before = state[i - 1];
            state[i] = (before ^ (before >> 30)).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        Self { state, next: N }
    }

    fn twist(&mut self) {
        for i in 0..N {
            let joined = self.state[i] & 0x8000_0000 | self.state[(i + 1) % N] & 0x7fff_ffff;
            let turned = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + M) % N] ^ (joined >> 1) ^ turned;
        }
        self.next = 0;
    }

    fn bits(&mut self) -> u32 {
        if self.next == N {
            self.twist();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= y << 7 & 0x9d2c_5680;
        y ^= y << 15 & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// Uniform in `0 ..= most`: the low bits, drawn again while they are too large.
    fn at_most(&mut self, most: u32) -> u32 {
        let mask = u32::MAX >> most.leading_zeros();
        loop {
            let value = self.bits() & mask;
            if value <= most {
                return value;
            }
        }
    }
}

/// The numbers below `n` in the order of NumPy's `RandomState(seed).permutation(n)`: Fisher
/// and Yates from the end.
pub fn permutation(seed: u32, n: u32) -> Vec<usize> {
    let mut generator = MersenneTwister::new(seed);
    let mut order: Vec<usize> = (0..n as usize).collect();
    for last in (1..n).rev() {
        order.swap(last as usize, generator.at_most(last) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_check_value() {
        // The 10,000th number of the seed 5489, as the C++ standard states it.
        let mut generator = MersenneTwister::new(5489);
        let last = (0..10_000).map(|_| generator.bits()).last();
        assert_eq!(last, Some(4_123_659_995));
    }

    #[test]
    fn it_is_numpys_order() {
        let order = permutation(42, 5000);
        assert_eq!(order[..8], [1501, 2586, 2653, 1055, 705, 106, 589, 2468]);
        assert_eq!(order[4997..], [3092, 3772, 860]);
        assert_eq!(permutation(1, 0), [0; 0]);
        assert_eq!(permutation(1, 1), [0]);
    }
}
