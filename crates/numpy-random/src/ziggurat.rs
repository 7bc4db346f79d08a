//! Normal numbers by the ziggurat method with 256 layers (Marsaglia and
//! Tsang 2000).
//!
//! The area under a decreasing density `f` is cut into 256 layers of equal area `v`: 255 rectangles
//! `[0, x_i] × [f(x_i), f(x_{i-1})]`, and at the bottom the strip below `f(r)` with the whole tail.
//! A random layer and a random position in it give a number. The number is accepted immediately if
//! it lies under the next layer, else after a test.

use crate::Pcg64;

/// The start of the tail, for 256 layers.
const NORMAL_TAIL: f64 = 3.654_152_885_361_009;
/// Area of a layer under `exp(-x²/2)`: `r f(r) + ∫_r^∞ f`. In 40 digits it ends in …974_654_9;
/// NumPy's layers result from this value, three last bits below.
const NORMAL_AREA: f64 = 0.004_928_673_233_974_652;
/// The layer with an `f(x_i)` that is one last bit too large in the computation of NumPy's layers.
/// Every layer above inherits it.
const NORMAL_MISROUNDED: usize = 38;

/// The layers of the normal distribution.
#[derive(Clone, Debug)]
pub struct Ziggurats {
    /// `x_i` as a fraction of the range of the integer that draws the position.
    width: [f64; 256],
    /// Integers below this lie under the next layer.
    inside: [u64; 256],
    /// `f(x_i)`, from 1 at the top; `height[255]` is `f(r)`.
    height: [f64; 256],
}

/// The density, `exp(-x²/2)`.
fn bell(x: f64) -> f64 {
    (-0.5 * x * x).exp()
}

impl Default for Ziggurats {
    fn default() -> Self {
        // Positions have 52 bits.
        let scale = 2f64.powi(52);
        let bottom = NORMAL_AREA / bell(NORMAL_TAIL);
        let mut layers = Self { width: [0.0; 256], inside: [0; 256], height: [0.0; 256] };
        layers.width[0] = bottom / scale;
        layers.inside[0] = (NORMAL_TAIL / bottom * scale) as u64;
        layers.height[0] = 1.0;
        let mut x = NORMAL_TAIL;
        for i in (1..256).rev() {
            layers.width[i] = x / scale;
            layers.height[i] = if i == NORMAL_MISROUNDED { bell(x).next_up() } else { bell(x) };
            // The top layer has nothing above.
            let above =
                if i > 1 { (-2.0 * (NORMAL_AREA / x + layers.height[i]).ln()).sqrt() } else { 0.0 };
            layers.inside[i] = (above / x * scale) as u64;
            x = above;
        }
        layers
    }
}

impl Ziggurats {
    /// N(0, 1). The lowest 8 of 64 bits are the layer, the next the sign, the next 52 the position.
    pub fn normal(&self, generator: &mut Pcg64) -> f64 {
        loop {
            let bits = generator.bits();
            let (layer, place) = ((bits & 0xff) as usize, bits >> 9 & ((1 << 52) - 1));
            let size = place as f64 * self.width[layer];
            let x = if bits >> 8 & 1 == 1 { -size } else { size };
            if place < self.inside[layer] {
                return x;
            }
            if layer == 0 {
                return self.normal_tail(place >> 8 & 1 == 1, generator);
            }
            let [above, below] = [self.height[layer - 1], self.height[layer]];
            if (above - below) * generator.uniform() + below < bell(x) {
                return x;
            }
        }
    }

    /// Beyond `r` (Marsaglia 1964): `r + x` with `x` exponential of rate `r`, kept with
    /// probability `exp(-x²/2)`.
    fn normal_tail(&self, negative: bool, generator: &mut Pcg64) -> f64 {
        let minus_log = |generator: &mut Pcg64| -(-generator.uniform()).ln_1p();
        loop {
            // Multiplied by 1/r, not divided by r: the rounding of the published streams.
            let x = NORMAL_TAIL.recip() * minus_log(generator);
            if 2.0 * minus_log(generator) > x * x {
                let size = NORMAL_TAIL + x;
                return if negative { -size } else { size };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: NumPy 2.4's `default_rng(7).standard_normal(4)`.
    #[test]
    fn it_is_the_stream_of_default_rng() {
        let (layers, mut generator) = (Ziggurats::default(), Pcg64::new(7));
        let normal: Vec<f64> = (0..4).map(|_| layers.normal(&mut generator)).collect();
        assert_eq!(
            normal,
            [0.0012301533574825742, 0.2987455375084699, -0.2741378553622176, -0.8905918387572742],
        );
    }

    /// Every layer and every path in 200,000 draws of seed 3: the rotated and xored bits equal
    /// those of NumPy 2.4.
    #[test]
    #[cfg_attr(not(target_env = "gnu"), ignore = "another C library rounds differently")]
    fn normal_numbers_equal_numpys_to_the_bit() {
        let (layers, mut generator) = (Ziggurats::default(), Pcg64::new(3));
        let digest = (0..200_000).fold(0u64, |digest, _| {
            digest.rotate_left(1) ^ layers.normal(&mut generator).to_bits()
        });
        assert_eq!(digest, 0xb276_3ab7_e63c_d66f);
    }

    /// Each path of the method is taken in 200,000 draws of seed 3; the sums and the largest are
    /// NumPy's.
    #[test]
    fn long_streams_stay_in_step() {
        let layers = Ziggurats::default();
        let stream = |draw: &dyn Fn(&mut Pcg64) -> f64| {
            let mut generator = Pcg64::new(3);
            let draws: Vec<f64> = (0..200_000).map(|_| draw(&mut generator)).collect();
            let largest = draws.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
            [draws.iter().sum(), largest]
        };
        let normal = stream(&|generator| layers.normal(generator));
        assert!((normal[0] - 86.8770200558233).abs() < 1e-9, "{normal:?}");
        assert!((normal[1] - 4.574671029819804).abs() < 1e-14, "{normal:?}");
    }
}
