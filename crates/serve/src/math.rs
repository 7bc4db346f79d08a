//! Exponentials, logarithms and sines from the four operations, so that every platform computes the
//! same bits. Errors are around 1e-15, absolute or relative, and 1.5e-7 for the error function.

use std::f64::consts::{LN_2, LOG2_E, PI, SQRT_2};

/// `ln 2` and `π` in two parts: the first has zeros at its end, so its multiples are exact.
const LN_2_HIGH: f64 = f64::from_bits(LN_2.to_bits() & !0xffff_ffff);
const LN_2_LOW: f64 = 4.749_325_039_031_672_6e-7;
const PI_HIGH: f64 = f64::from_bits(PI.to_bits() & !0xffff_ffff);
const PI_LOW: f64 = 6.278_329_573_009_626e-7;

/// `1 / n!` for `n` from 0.
const FACTORIALS: [f64; 22] = {
    let mut all = [1.0; 22];
    let mut n = 1;
    while n < all.len() {
        all[n] = all[n - 1] / n as f64;
        n += 1;
    }
    all
};

/// `e^x = 2^n e^r` with `|r| ≤ ½ ln 2`, and the series of `e^r` up to `r¹³`.
pub fn exp(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x > 709.0 {
        return f64::INFINITY;
    }
    if x < -700.0 {
        return 0.0;
    }
    let n = (x * LOG2_E).round();
    let r = x - n * LN_2_HIGH - n * LN_2_LOW;
    let sum = FACTORIALS[..14].iter().rev().fold(0.0, |sum, factor| sum * r + factor);
    sum * f64::from_bits(((n as i64 + 1023) as u64) << 52)
}

/// `1 / (2k + 1)` for `k` from 0.
const ODD: [f64; 12] = {
    let mut all = [1.0; 12];
    let mut k = 0;
    while k < all.len() {
        all[k] = 1.0 / (2 * k + 1) as f64;
        k += 1;
    }
    all
};

/// `ln x = e ln 2 + 2 artanh s` with `x = 2^e m`, `½√2 ≤ m < √2` and `s = (m − 1)/(m + 1)`.
pub fn ln(x: f64) -> f64 {
    if !(x > 0.0 && x.is_finite()) {
        return if x == 0.0 {
            f64::NEG_INFINITY
        } else if x > 0.0 {
            x
        } else {
            f64::NAN
        };
    }
    // Numbers below the normal ones are scaled up.
    let (x, scaled) =
        if x < f64::MIN_POSITIVE { (x * (1u64 << 54) as f64, 54.0) } else { (x, 0.0) };
    let bits = x.to_bits();
    let mut e = (bits >> 52) as f64 - 1023.0 - scaled;
    let mut m = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000);
    if m >= SQRT_2 {
        m *= 0.5;
        e += 1.0;
    }
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let sum = ODD.iter().rev().fold(0.0, |sum, factor| sum * square + factor);
    e * LN_2_HIGH + (e * LN_2_LOW + 2.0 * s * sum)
}

/// `sin x = ± sin r` with `x = k π + r`, and the series of `sin r` up to `r²¹`.
pub fn sin(x: f64) -> f64 {
    if !x.is_finite() {
        return f64::NAN;
    }
    let k = (x / PI).round();
    let r = x - k * PI_HIGH - k * PI_LOW;
    let square = r * r;
    // Odd powers, with alternating signs.
    let odd = FACTORIALS.iter().skip(1).step_by(2).rev();
    let series = odd.fold(0.0, |sum, factor| factor - sum * square);
    if k % 2.0 == 0.0 { r * series } else { -r * series }
}

/// `(e^{2x} − 1)/(e^{2x} + 1)`
pub fn tanh(x: f64) -> f64 {
    if x.abs() > 20.0 {
        return 1f64.copysign(x);
    }
    let power = exp(2.0 * x);
    (power - 1.0) / (power + 1.0)
}

/// `ln(1 + e^x)`, without overflow.
pub fn softplus(x: f64) -> f64 {
    x.max(0.0) + ln(1.0 + exp(-x.abs()))
}

/// The error function, to 1.5e-7 (Abramowitz and Stegun 1964, 7.1.26).
pub fn erf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let terms = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
    let sum = terms.into_iter().fold(0.0, |sum, term| (sum + term) * t);
    (1.0 - sum * exp(-x * x)).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(what: &str, x: f64, got: f64, expected: f64) {
        let error = (got - expected).abs();
        assert!(error <= 1e-15 + 4e-15 * expected.abs(), "{what} {x}: {got:e}, {expected:e}");
    }

    #[test]
    fn the_standard_library_agrees() {
        assert_eq!((LN_2_HIGH + LN_2_LOW, PI_HIGH + PI_LOW), (LN_2, PI));
        for i in -4000..=4000 {
            let x = f64::from(i) * 0.017;
            close("exp", x, exp(x), x.exp());
            close("sin", x, sin(x), x.sin());
            close("tanh", x, tanh(x), x.tanh());
            close("ln", x, ln(x.abs() + 1e-3), (x.abs() + 1e-3).ln());
            close("softplus", x, softplus(x), x.max(0.0) + (-x.abs()).exp().ln_1p());
        }
        for x in [1e-310, 1e-300, 1.0, 1e300] {
            close("ln", x, ln(x), x.ln());
        }
        assert_eq!((exp(-1e4), exp(1e4), ln(0.0)), (0.0, f64::INFINITY, f64::NEG_INFINITY));
        assert!(exp(f64::NAN).is_nan() && ln(-1.0).is_nan() && sin(f64::INFINITY).is_nan());
        for (x, expected) in
            [(0.5, 0.520_499_877_8), (-1.2, -0.910_313_978_2), (3.0, 0.999_977_909_5)]
        {
            assert!((erf(x) - expected).abs() < 2e-7, "{x}");
        }
    }
}
