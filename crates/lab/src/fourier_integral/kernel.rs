//! The generalized Fourier integral kernels `φ(sin z / z)` with `φ(z) = z^p`.

use std::f64::consts::TAU;

/// The powers that are compared; 1 is the Fourier integral theorem itself, the even ones are
/// what FourierFormer attends with.
pub const POWERS: [u32; 4] = [1, 2, 4, 6];

/// `|z|` under which `sin z / z` is computed from its series: it leaves out `z⁶/7!`.
const SERIES_UNDER: f64 = 1e-2;

/// The kernel of `φ(z) = z^power`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    power: u32,
}

impl Kernel {
    /// # Panics
    /// When `power` is not in `1 ..= 12`: beyond, the closed forms lose digits.
    pub fn new(power: u32) -> Self {
        assert!((1..=12).contains(&power), "φ(z) = z^{power}");
        Self { power }
    }

    /// `p` in `φ(z) = z^p`.
    pub fn power(self) -> u32 {
        self.power
    }

    /// `A = ∫ φ(sin z / z) dz`: π, π, 2π/3 and 11π/20 for `p` = 1, 2, 4 and 6.
    pub fn integral(self) -> f64 {
        TAU * self.spline(0.0)
    }

    /// `∫ φ²(sin z / z) dz / A²`: the variance of the density estimator is at most
    /// `‖p‖∞ R^D/N` times this to the power `D` (appendix D.1).
    pub fn roughness(self) -> f64 {
        Self::new(2 * self.power).integral() / self.integral().powi(2)
    }

    /// `∫ φ(sin z / z) cos(uz) dz / A`: the kernel's Fourier transform at `u = t/R`, the
    /// factor `K_R` of equation 26. It is 1 at 0, and 0 for `|u| > p`.
    pub fn transform(self, u: f64) -> f64 {
        self.spline(u) / self.spline(0.0)
    }

    /// The density at `u` of a sum of `p` numbers that are uniform on [−1, 1]: `sin z / z` is
    /// the characteristic function of each, so `∫ (sin z / z)^p cos(uz) dz` is 2π times it.
    fn spline(self, u: f64) -> f64 {
        let p = self.power as i32;
        // To the left of 0 fewer terms are left, and they cancel less.
        let from_left = f64::from(p) - u.abs();
        let (mut sum, mut choose) = (0.0, 1.0);
        for k in 0..=p {
            let x = from_left - 2.0 * f64::from(k);
            if x < 0.0 {
                break;
            }
            let term = choose * x.powi(p - 1);
            sum += if k % 2 == 0 { term } else { -term };
            choose *= f64::from(p - k) / f64::from(k + 1);
        }
        let factorial: f64 = (1..p).map(f64::from).product();
        sum / (factorial * 2f64.powi(p))
    }
}

/// `s^p` for each of [`POWERS`].
pub(crate) fn powers(s: f64) -> [f64; POWERS.len()] {
    let square = s * s;
    let fourth = square * square;
    [s, square, fourth, fourth * square]
}

/// `sin z / z`, where `sine` is `sin z` as far as `z` is not small.
///
/// The sine may come from an addition theorem, whose error does not shrink with `z`.
#[inline]
pub(crate) fn sinc(z: f64, sine: f64) -> f64 {
    let square = z * z;
    let series = 1.0 - square * (1.0 / 6.0 - square * (1.0 / 120.0));
    if z.abs() < SERIES_UNDER { series } else { sine / z }
}

/// The Fourier transform at `t` of a Gaussian kernel with standard deviation `bandwidth`.
pub fn gaussian_transform(bandwidth: f64, t: f64) -> f64 {
    (-0.5 * (bandwidth * t).powi(2)).exp()
}

/// Silverman's bandwidth for `n` points in `dimensions` whose standard deviation is `sd`:
/// `sd · (4 / ((D + 2) N))^(1/(D+4))`, the best one asymptotically for a Gaussian target.
pub fn silverman(sd: f64, n: usize, dimensions: usize) -> f64 {
    let d = dimensions as f64;
    sd * (4.0 / ((d + 2.0) * n as f64)).powf(1.0 / (d + 4.0))
}

/// `1/√(2π)`.
pub(crate) const INVERSE_SQRT_TAU: f64 = 0.398_942_280_401_432_7;

/// The standard normal density.
pub(crate) fn normal_density(x: f64) -> f64 {
    INVERSE_SQRT_TAU * (-0.5 * x * x).exp()
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    #[test]
    fn the_integrals_are_the_known_ones() {
        for (power, over_pi) in [(1, 1.0), (2, 1.0), (3, 0.75), (4, 2.0 / 3.0), (6, 11.0 / 20.0)] {
            let integral = Kernel::new(power).integral();
            assert!((integral - over_pi * PI).abs() < 1e-14, "{power}: {integral}");
        }
        // ∫ (sin z / z)² dz / π² = 1/π.
        assert!((Kernel::new(1).roughness() - 1.0 / PI).abs() < 1e-15);
    }

    /// The integral's and the transform's closed forms against sums over a fine grid.
    #[test]
    fn the_closed_forms_are_the_integrals() {
        for power in [2, 4, 6] {
            let kernel = Kernel::new(power);
            let (step, n) = (0.01, 4_000_000 / power as usize);
            for u in [0.0, 0.3, 1.0, 1.9, 3.7, 6.5] {
                let at = |i: usize| {
                    let z = step * i as f64;
                    sinc(z, z.sin()).powi(power as i32) * (u * z).cos()
                };
                let sum = step * (1.0 + 2.0 * (1..n).map(at).sum::<f64>());
                let difference = (sum - kernel.integral() * kernel.transform(u)).abs();
                // The tail of z⁻² beyond n·step; for higher powers there is none.
                assert!(difference < 6e-5, "{power} {u}: {difference}");
            }
        }
    }

    #[test]
    fn the_transform_is_the_papers_box_and_triangle() {
        let (one, two) = (Kernel::new(1), Kernel::new(2));
        for (u, box_, triangle) in [
            (0.0, 1.0, 1.0),
            (0.5, 1.0, 0.75),
            (-0.9, 1.0, 0.55),
            (1.5, 0.0, 0.25),
            (2.5, 0.0, 0.0),
        ] {
            assert!((one.transform(u) - box_).abs() < 1e-15, "{u}");
            assert!((two.transform(u) - triangle).abs() < 1e-15, "{u}");
        }
    }

    #[test]
    fn the_series_meets_the_quotient() {
        for z in [-SERIES_UNDER, SERIES_UNDER] {
            let (inside, outside) = (z * (1.0 - 1e-9), z * (1.0 + 1e-9));
            let difference = sinc(inside, f64::NAN) - sinc(outside, outside.sin());
            assert!(difference.abs() < 1e-13, "{difference}");
        }
        assert_eq!(sinc(0.0, 0.0), 1.0);
        assert_eq!(powers(-2.0), [-2.0, 4.0, 16.0, 64.0]);
    }

    #[test]
    fn silvermans_bandwidth_is_that_of_the_rule() {
        // (4/3)^(1/5) = 1.0592, and in two dimensions the constant is 1.
        assert!((silverman(2.0, 1, 1) - 2.0 * 1.059_223_841_048_812).abs() < 1e-12);
        assert!((silverman(1.0, 64, 2) - 0.5).abs() < 1e-12);
        assert!((gaussian_transform(0.5, 2.0) - (-0.5f64).exp()).abs() < 1e-15);
    }
}
