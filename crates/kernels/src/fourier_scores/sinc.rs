//! `ln |sin x / x|` and its slope in `f32` without branches, so that loops over them vectorise.
//! Coefficients are Chebyshev or minimax fits computed with 40 digits, the highest power first.

#[cfg(feature = "cube")]
pub(crate) mod cube;

use super::FLOOR;
use crate::math::{ROUND, polynomial};

/// Squares of arguments up to here have their own polynomials.
pub(super) const NEAR: f32 = 4.0;

/// Squares of arguments up to here have shorter polynomials.
pub(super) const NEARER: f32 = 2.0;

/// `sin x / x` in `x²`, up to [`NEAR`]; relative error below 1e-7.
pub(super) const SINC: [f32; 6] =
    [-2.319_234_2e-8, 2.747_459_8e-6, -1.983_956_3e-4, 0.008_333_317, -0.166_666_66, 1.0];

/// `ln(sin x / x) / x²` in `x²`, up to [`NEAR`]; relative error below 1.2e-7.
pub(super) const LOG: [f32; 7] = [
    -6.954_945e-8,
    2.060_048_4e-7,
    -3.344_043_8e-6,
    -2.461_587e-5,
    -3.540_364e-4,
    -0.005_555_214_4,
    -0.166_666_69,
];

/// [`LOG`] up to [`NEARER`]; relative error below 1.2e-7.
pub(super) const LOG_NEARER: [f32; 5] =
    [-3.381_102e-6, -2.404_960_3e-5, -3.545_427e-4, -0.005_555_088, -0.166_666_69];

/// `1/x² − cot x / x` in `x²`, up to [`NEAR`].
pub(super) const SLOPE: [f32; 9] = [
    2.005_180_4e-8,
    -1.630_286_9e-7,
    1.097_973_6e-6,
    -1.113_138_2e-7,
    2.472_402e-5,
    2.089_338e-4,
    0.002_117_482_5,
    0.022_222_059,
    0.333_333_34,
];

/// [`SLOPE`] up to [`NEARER`]; relative error below 1e-7.
pub(super) const SLOPE_NEARER: [f32; 6] =
    [4.196_556_3e-6, 1.618_051e-5, 2.173_782e-4, 0.002_113_612_5, 0.022_222_71, 0.333_333_3];

/// `cos x` in `x²` for `|x| ≤ π/2`.
pub(super) const COSINE: [f32; 6] =
    [-2.597_184_3e-7, 2.475_561_5e-5, -0.001_388_827_2, 0.041_666_63, -0.5, 1.0];

pub(super) const FLOOR_SQUARE: f32 = (FLOOR * FLOOR) as f32;

/// π in three parts; the first two have trailing zeros, so their small multiples are exact.
pub(super) const PI: [f32; 3] = [3.140_625, 9.675_026e-4, 1.509_958e-7];

/// Maximum argument; `f32` does not resolve the sine of larger ones.
pub(super) const FARTHEST: f32 = 1e6;

/// `sin x / x` from `x² ≤` [`NEAR`].
#[inline(always)]
pub(super) fn near(square: f32) -> f32 {
    polynomial(square, SINC)
}

/// The slope `cot x − 1/x` from `x` and `x² ≤` [`NEAR`].
#[inline(always)]
pub(super) fn near_slope(x: f32, square: f32) -> f32 {
    -x * polynomial(square, SLOPE)
}

/// A NaN stays NaN.
#[inline(always)]
fn limited(x: f32) -> f32 {
    let x = if x > FARTHEST { FARTHEST } else { x };
    if x < -FARTHEST { -FARTHEST } else { x }
}

/// `x` minus the nearest multiple of π.
#[inline(always)]
fn reduced(x: f32) -> f32 {
    let n = (x * std::f32::consts::FRAC_1_PI + ROUND) - ROUND;
    x - n * PI[0] - n * PI[1] - n * PI[2]
}

/// `(sin² x + FLOOR²) / x²`; without the floor near zero, where it is negligible.
#[inline(always)]
pub(super) fn square(x: f32) -> f32 {
    let x = limited(x);
    let square = x * x;
    let remainder = reduced(x);
    let remainder = remainder * remainder;
    let is_near = square < NEAR;
    let ratio = near(if is_near { square } else { remainder });
    let ratio = ratio * ratio;
    let far = (remainder * ratio + FLOOR_SQUARE) / square;
    if is_near { ratio } else { far }
}

/// The slope of half the logarithm of [`square`].
#[inline(always)]
pub(super) fn slope(x: f32) -> f32 {
    let x = limited(x);
    let square = x * x;
    let remainder = reduced(x);
    let remainder_square = remainder * remainder;
    let sine = remainder * near(remainder_square);
    let cosine = polynomial(remainder_square, COSINE);
    let sine_square = sine * sine + FLOOR_SQUARE;
    let far = (sine * cosine * x - sine_square) / (sine_square * x);
    if square < NEAR { near_slope(x, square) } else { far }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same function, exact: no floor near zero.
    fn floor_square(x: f64) -> f64 {
        if x.abs() < 2.0 { 0.0 } else { FLOOR * FLOOR }
    }

    fn exact_square(x: f64) -> f64 {
        if x == 0.0 { 1.0 } else { (x.sin().powi(2) + floor_square(x)) / (x * x) }
    }

    fn exact_slope(x: f64) -> f64 {
        if x.abs() < 1e-2 {
            -x / 3.0 - x.powi(3) / 45.0 - 2.0 * x.powi(5) / 945.0
        } else {
            x.sin() * x.cos() / (x.sin().powi(2) + floor_square(x)) - 1.0 / x
        }
    }

    /// Arguments from −60 to 60 with a sine of at least this size.
    fn arguments(sine: f64) -> impl Iterator<Item = f32> {
        (-600_000..=600_000)
            .map(|i| i as f32 * 1e-4)
            .filter(move |x| x.abs() < 2.0 || f64::from(*x).sin().abs() > sine)
    }

    #[test]
    fn values_are_accurate() {
        let mut worst = 0.0f64;
        for x in arguments(1e-3) {
            let exact = exact_square(f64::from(x));
            worst = worst.max((f64::from(square(x)) / exact - 1.0).abs());
            if x * x <= NEAR {
                let other = f64::from(near(x * x)).powi(2);
                worst = worst.max((other / exact - 1.0).abs());
            }
        }
        assert!(worst < 1e-6, "{worst}");
    }

    #[test]
    fn logarithms_are_accurate() {
        let mut worst = [0.0f64; 2];
        for x in arguments(0.0).filter(|x| *x != 0.0 && x * x <= NEAR) {
            let exact = 0.5 * exact_square(f64::from(x)).ln();
            let square = x * x;
            let error = |factor: f32| (f64::from(square * factor) / exact - 1.0).abs();
            worst[0] = worst[0].max(error(polynomial(square, LOG)));
            if square <= NEARER {
                worst[1] = worst[1].max(error(polynomial(square, LOG_NEARER)));
            }
        }
        // Near zero the logarithm is nearly x² / 6: `exact` has lost what 1 − x² / 6 lost.
        assert!(worst[0] < 1e-6 && worst[1] < 1e-6, "{worst:?}");
    }

    #[test]
    fn slopes_are_accurate() {
        let mut worst = 0.0f64;
        for x in arguments(1e-3) {
            let exact = exact_slope(f64::from(x));
            // Relative, except where the slope passes through zero (tan x = x).
            let scale = if x * x < NEAR { exact.abs().max(1e-30) } else { exact.abs().max(1.0) };
            worst = worst.max((f64::from(slope(x)) - exact).abs() / scale);
            if x * x <= NEAR {
                worst = worst.max((f64::from(near_slope(x, x * x)) - exact).abs() / scale);
            }
            if x * x <= NEARER {
                let other = -x * polynomial(x * x, SLOPE_NEARER);
                worst = worst.max((f64::from(other) - exact).abs() / scale);
            }
        }
        assert!(worst < 2e-6, "{worst}");
    }

    #[test]
    fn nothing_is_infinite() {
        let zeros = (1..40).map(|n| (f64::from(n) * std::f64::consts::PI) as f32);
        let extremes = [0.0, 1e-38, 1e-20, 1e6, 1e8, 1e30, f32::MAX, f32::INFINITY];
        for x in zeros.chain(extremes).flat_map(|x| [x, -x]) {
            assert!(square(x) > 1e-26 && square(x) <= 1.0, "{x}: {}", square(x));
            assert!(slope(x).abs() <= 0.5 / FLOOR as f32 * 1.001, "{x}: {}", slope(x));
        }
        assert!(square(f32::NAN).is_nan() && slope(f32::NAN).is_nan());
    }
}
