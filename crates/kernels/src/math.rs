//! Elementary functions in `f32` without branches or tables, so that loops over them vectorise.
//! Coefficients are Chebyshev fits computed with 40 digits.

/// `1 / sqrt(2 π)`
const INV_SQRT_2PI: f32 = 0.398_942_3;

/// Adding 1.5 · 2²³ rounds to an integer, which is then in the low bits.
pub(crate) const ROUND: f32 = 12_582_912.0;

/// `coefficients[0] xⁿ + … + coefficients[n]`
#[inline(always)]
pub(crate) fn polynomial<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut value = coefficients[0];
    for coefficient in &coefficients[1..] {
        value = value.mul_add(x, *coefficient);
    }
    value
}

/// `eˣ`, relative error below 2e-7 for `x` in `[-87.3, 88.3]`; zero below, `e^88.3` above.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    const LOWEST: f32 = -87.3;
    const HIGHEST: f32 = 88.3;
    // ln 2 in two parts; the first has trailing zeros, so its integer multiples are exact.
    const LN2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];

    let clamped = if x > HIGHEST { HIGHEST } else { x };
    let clamped = if clamped < LOWEST { LOWEST } else { clamped };
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = clamped - n * LN2[0] - n * LN2[1];
    let series = polynomial(r, [0.001_392_692_7, 0.008_363_774, 0.041_666_55, 0.166_665_73, 0.5]);
    let fraction = 1.0 + (r + r * r * series);
    // 2ⁿ from its exponent bits; the bits of ROUND above the exponent shift out.
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    if x < LOWEST { 0.0 } else { fraction * power }
}

/// `2 artanh(s) / s` in `s²`, from `s = (m − 1) / (m + 1)` for `m` from `sqrt(1/2)` to `sqrt(2)`.
pub(crate) const ARTANH: [f32; 4] = [0.299_321_26, 0.399_745_64, 0.666_668_2, 2.0];

/// `ln x` of a positive number that is not subnormal, absolute error below 2e-7 times the
/// larger of 1 and the logarithm.
#[inline(always)]
pub(crate) fn ln(x: f32) -> f32 {
    // The bits of sqrt(1/2): x = 2ⁿ m with m from there to sqrt(2).
    const LEAST: u32 = 0x3f35_04f3;

    let bits = x.to_bits().wrapping_sub(LEAST);
    let n = (bits as i32 >> 23) as f32;
    let m = f32::from_bits((bits & 0x007f_ffff) + LEAST);
    let s = (m - 1.0) / (m + 1.0);
    n * std::f32::consts::LN_2 + s * polynomial(s * s, ARTANH)
}

/// `tanh x`, relative error below 3e-7.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let size = x.abs();
    let square = x * x;
    let small = x + x
        * square
        * polynomial(
            square,
            [-0.006_096_714, 0.020_997_18, -0.053_850_91, 0.133_327_7, -0.333_333_3],
        );
    let large = (1.0 - 2.0 / (exp(2.0 * size) + 1.0)).copysign(x);
    if size < 0.625 { small } else { large }
}

/// The normal distribution function and density `(Φ(x), φ(x))`; absolute error of either
/// below 2.5e-7, relative error below 3e-6 down to `x = -5`.
#[inline(always)]
pub(crate) fn normal(x: f32) -> (f32, f32) {
    let size = x.abs();
    let bell = exp(-0.5 * (x * x));
    let t = 1.0 / (1.0 + 0.3 * size);
    let tail = bell
        * t
        * polynomial(
            t,
            [
                -0.020_815_175,
                0.113_509_86,
                -0.230_815_13,
                0.195_348_07,
                -0.082_456_94,
                0.097_815_59,
                0.077_808_91,
                0.110_360_56,
                0.119_556_8,
                0.119_687_45,
            ],
        );
    let below = if x < 0.0 { tail } else { 1.0 - tail };
    (below, bell * INV_SQRT_2PI)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The maximum of `error(x)` on a fine grid.
    fn worst(range: [f32; 2], error: impl Fn(f32) -> f64) -> f64 {
        let n = 400_000;
        (0..=n)
            .map(|i| error(range[0] + (range[1] - range[0]) * i as f32 / n as f32))
            .fold(0.0, f64::max)
    }

    fn relative(got: f32, exact: f64) -> f64 {
        if exact == 0.0 { f64::from(got.abs()) } else { (f64::from(got) / exact - 1.0).abs() }
    }

    /// `Φ(x)` in `f64` by the continued fraction and the series of the error function.
    fn normal_exact(x: f64) -> f64 {
        let z = x.abs() / std::f64::consts::SQRT_2;
        let upper = if z < 3.0 {
            // erf z = 2/√π e^{-z²} Σ 2ⁿ z^{2n+1} / (2n+1)!!
            let (mut term, mut total) = (z, z);
            for n in 1..120 {
                term *= 2.0 * z * z / f64::from(2 * n + 1);
                total += term;
            }
            0.5 - total * (-z * z).exp() / std::f64::consts::PI.sqrt()
        } else {
            let mut fraction = z;
            for n in (1..200).rev() {
                fraction = z + 0.5 * f64::from(n) / fraction;
            }
            0.5 * (-z * z).exp() / (fraction * std::f64::consts::PI.sqrt())
        };
        if x < 0.0 { upper } else { 1.0 - upper }
    }

    #[test]
    fn the_exact_distribution_is_exact() {
        // Φ(-1), Φ(-4.5), Φ(2) from tables.
        for (x, exact) in
            [(-1.0, 0.15865525393145707), (-4.5, 3.3976731247300535e-6), (2.0, 0.9772498680518208)]
        {
            assert!((normal_exact(x) / exact - 1.0).abs() < 1e-12, "{x}: {}", normal_exact(x));
        }
    }

    #[test]
    fn exp_is_accurate() {
        let error = worst([-87.2, 88.2], |x| relative(exp(x), f64::from(x).exp()));
        assert!(error < 2e-7, "{error}"); // seen: 1.3e-7
        assert_eq!([exp(-88.0), exp(f32::NEG_INFINITY), exp(0.0)], [0.0, 0.0, 1.0]);
        assert!(exp(1000.0) > 1e38 && exp(f32::NAN).is_nan());
    }

    #[test]
    fn ln_is_accurate() {
        for range in [[0.5, 2.0], [1e-3, 1.0], [1e-37, 1e-30], [1.0, 1e30]] {
            let error = worst(range, |x| {
                let exact = f64::from(x).ln();
                (f64::from(ln(x)) - exact).abs() / exact.abs().max(1.0)
            });
            assert!(error < 2e-7, "{range:?}: {error}");
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn tanh_is_accurate() {
        let error = worst([-12.0, 12.0], |x| relative(tanh(x), f64::from(x).tanh()));
        assert!(error < 3e-7, "{error}");
        assert_eq!([tanh(40.0), tanh(f32::NEG_INFINITY), tanh(0.0)], [1.0, -1.0, 0.0]);
        assert!(tanh(f32::NAN).is_nan());
    }

    #[test]
    fn the_normal_distribution_is_accurate() {
        let absolute = |range: [f32; 2]| {
            worst(range, |x| (f64::from(normal(x).0) - normal_exact(f64::from(x))).abs())
        };
        let error = absolute([-20.0, 20.0]);
        assert!(error < 2.5e-7, "{error}"); // seen: 1.8e-7
        let error = worst([-5.0, 5.0], |x| relative(normal(x).0, normal_exact(f64::from(x))));
        assert!(error < 3e-6, "{error}");
        let density = |x: f64| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let error =
            worst([-20.0, 20.0], |x| (f64::from(normal(x).1) - density(f64::from(x))).abs());
        assert!(error < 1e-7, "{error}");
        assert_eq!(normal(f32::INFINITY).0, 1.0);
        assert!(normal(f32::NAN).0.is_nan());
    }
}
