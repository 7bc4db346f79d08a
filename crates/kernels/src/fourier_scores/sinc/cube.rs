//! [`sinc`](super) in the language of kernels.

#![allow(clippy::needless_range_loop, reason = "kernels can only unroll loops over indices")]

use std::f32::consts::{FRAC_1_PI, SQRT_2};

use cubecl::prelude::*;

use super::{COSINE, FARTHEST, FLOOR_SQUARE, NEAR, PI, SINC, SLOPE};
use crate::math::ARTANH;

/// `coefficients[0] xⁿ + … + coefficients[n]`
#[cube]
fn polynomial(x: f32, #[comptime] coefficients: &'static [f32]) -> f32 {
    let mut value = f32::new(comptime!(coefficients[0]));
    #[unroll]
    for i in 1..comptime!(coefficients.len()) {
        value = fma(value, x, f32::new(comptime!(coefficients[i])));
    }
    value
}

/// A NaN stays NaN.
#[cube]
fn limited(x: f32) -> f32 {
    select(x.is_nan(), x, clamp(x, -FARTHEST, FARTHEST))
}

/// `x` minus the nearest multiple of π.
#[cube]
fn reduced(x: f32) -> f32 {
    let n = -fma(x, FRAC_1_PI, 0.5f32).floor();
    let x = fma(n, comptime!(PI[0]), x);
    let x = fma(n, comptime!(PI[1]), x);
    fma(n, comptime!(PI[2]), x)
}

/// `(sin² x + FLOOR²) / x²`; without the floor near zero, where it is negligible.
#[cube]
pub(crate) fn square(x: f32) -> f32 {
    let x = limited(x);
    let square = x * x;
    let remainder = reduced(x);
    let remainder = remainder * remainder;
    let is_near = square < NEAR;
    let ratio = polynomial(select(is_near, square, remainder), comptime!(SINC.as_slice()));
    let ratio = ratio * ratio;
    // It may be infinite, but only if it is not selected.
    let far = fma(remainder, ratio, FLOOR_SQUARE) / square;
    select(is_near, ratio, far)
}

/// The slope of half the logarithm of [`square`].
#[cube]
pub(crate) fn slope(x: f32) -> f32 {
    let x = limited(x);
    let square = x * x;
    let remainder = reduced(x);
    let remainder_square = remainder * remainder;
    let sine = remainder * polynomial(remainder_square, comptime!(SINC.as_slice()));
    let cosine = polynomial(remainder_square, comptime!(COSINE.as_slice()));
    let sine_square = fma(sine, sine, FLOOR_SQUARE);
    let far = (sine * cosine * x - sine_square) / (sine_square * x);
    let near = -x * polynomial(min(square, NEAR), comptime!(SLOPE.as_slice()));
    select(square < NEAR, near, far)
}

/// `ln x` for `x` in `[1, 2)`.
#[cube]
pub(crate) fn ln_of_mantissa(x: f32) -> f32 {
    let is_upper = x > SQRT_2;
    let m = select(is_upper, 0.5f32 * x, x);
    let s = (m - 1.0f32) / (m + 1.0f32);
    let low = s * polynomial(s * s, comptime!(ARTANH.as_slice()));
    select(is_upper, low + std::f32::consts::LN_2, low)
}
