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

/// Whether an argument has its own polynomials. Most have, so kernels branch: a warp computes the
/// longer form only if one of its units needs it.
#[cube]
pub(crate) fn is_near(x: f32) -> bool {
    x * x < NEAR
}

/// `sin² x / x²` where [`is_near`].
#[cube]
pub(crate) fn near_square(x: f32) -> f32 {
    let ratio = polynomial(x * x, comptime!(SINC.as_slice()));
    ratio * ratio
}

/// `(sin² x + FLOOR²) / x²` elsewhere.
#[cube]
pub(crate) fn far_square(x: f32) -> f32 {
    let x = limited(x);
    let remainder = reduced(x);
    let remainder = remainder * remainder;
    let ratio = polynomial(remainder, comptime!(SINC.as_slice()));
    fma(remainder, ratio * ratio, FLOOR_SQUARE) / (x * x)
}

/// The slope of half the logarithm of these squares.
#[cube]
pub(crate) fn slope(x: f32) -> f32 {
    let mut slope = -x * polynomial(x * x, comptime!(SLOPE.as_slice()));
    if !is_near(x) {
        let x = limited(x);
        let remainder = reduced(x);
        let square = remainder * remainder;
        let sine = remainder * polynomial(square, comptime!(SINC.as_slice()));
        let cosine = polynomial(square, comptime!(COSINE.as_slice()));
        let sine_square = fma(sine, sine, FLOOR_SQUARE);
        slope = (sine * cosine * x - sine_square) / (sine_square * x);
    }
    slope
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
