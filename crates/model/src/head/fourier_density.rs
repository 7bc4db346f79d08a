//! One density on [-1, 1] with Fourier frequencies, on the host in double precision, for acting and
//! reports.
//!
//! With `A(w) = Σ_l a_l e^{ilπw}` and the stretch `s` of the [`Domain`],
//! `p(z) = |A(sz)|² / ∫ |A(st)|² dt`. The coefficients of `|A|²` are the autocorrelation
//! `c_k = Σ_l a_{l+k} conj(a_l)`, so its integral is a closed form too:
//! `∫_{-1}^{z} |A(st)|² dt = c_0 (z + 1) + 2 Re Σ_k c_k (e^{ikπsz} - e^{-ikπs}) / (ikπs)`.

use std::f64::consts::PI;

use num_complex::Complex64;

use super::fourier_options::Domain;

/// Number of halvings of [-1, 1] in [`FourierDensity::inverse_cdf`]: the rest is 2⁻⁵³ wide (the
/// reference stops after 25).
const HALVINGS: usize = 54;

/// `e^{i angle}`.
fn turn(angle: f64) -> Complex64 {
    Complex64 { re: angle.cos(), im: angle.sin() }
}

/// A density on [-1, 1].
#[derive(Clone, Debug)]
pub struct FourierDensity {
    /// `a_0 ..= a_N`.
    coefficients: Vec<Complex64>,
    /// `2 c_k / (c_0 · ikπs)`, `k = 1 ..= N`: the factors of `e^{ikπsz}` in the integral.
    antiderivative: Vec<Complex64>,
    stretch: f64,
    /// `c_0 = Σ |a_l|²`.
    power: f64,
    /// Value of the unnormalised integral's oscillating part at -1.
    at_start: f64,
    /// The whole integral, divided by `c_0`.
    total: f64,
}

impl FourierDensity {
    /// The density with these coefficients, `[u_0 ..= u_N, v_0 ..= v_N]` with `a_l = u_l + i v_l`.
    /// All zeros give the uniform density.
    ///
    /// # Panics
    /// When the number of coefficients is odd or 0.
    pub fn new(coefficients: &[f64], domain: Domain) -> Self {
        let n = coefficients.len() / 2;
        assert!(n > 0 && coefficients.len() == 2 * n, "real parts, then as many imaginary parts");
        let mut a: Vec<Complex64> =
            (0..n).map(|l| Complex64::new(coefficients[l], coefficients[n + l])).collect();
        if a.iter().all(|&a| a == Complex64::ZERO) {
            a[0].re = 1.0;
        }
        let stretch = domain.stretch();
        let power: f64 = a.iter().map(Complex64::norm_sqr).sum();
        let antiderivative = (1..n)
            .map(|k| {
                let c = (0..n - k).fold(Complex64::ZERO, |c, l| c + a[l + k] * a[l].conj());
                // Divided by i: (x + iy)/i = y - ix.
                let scale = 2.0 / (power * k as f64 * PI * stretch);
                Complex64::new(c.im * scale, -c.re * scale)
            })
            .collect();
        let mut density =
            Self { coefficients: a, antiderivative, stretch, power, at_start: 0.0, total: 0.0 };
        density.at_start = density.oscillation(-1.0);
        density.total = 2.0 + density.oscillation(1.0) - density.at_start;
        density
    }

    /// Whether its coefficients and their squares are finite.
    pub fn is_finite(&self) -> bool {
        self.power.is_finite()
    }

    /// `Re Σ_k (antiderivative of k) e^{ikπsz}`, by Horner's rule.
    fn oscillation(&self, z: f64) -> f64 {
        let w = turn(PI * self.stretch * z);
        let terms = self.antiderivative.iter().rev();
        terms.fold(Complex64::ZERO, |sum, term| (sum + term) * w).re
    }

    /// The density at `z` in [-1, 1].
    pub fn pdf(&self, z: f64) -> f64 {
        let w = turn(PI * self.stretch * z);
        let a = self.coefficients.iter().rev().fold(Complex64::ZERO, |sum, a| sum * w + a);
        a.norm_sqr() / (self.power * self.total)
    }

    /// Probability of a value of at most `z`: 0 at -1, 1 at 1.
    pub fn cdf(&self, z: f64) -> f64 {
        ((z + 1.0 + self.oscillation(z) - self.at_start) / self.total).clamp(0.0, 1.0)
    }

    /// The `u`-quantile, by bisection. For `u` uniform in [0, 1) it is a sample.
    pub fn inverse_cdf(&self, u: f64) -> f64 {
        let (mut low, mut high) = (-1.0, 1.0);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if self.cdf(middle) < u { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    }

    /// The maximum of the density: the best of `16(N + 1) + 1` equally spaced points, refined
    /// between its neighbours by golden-section search. A periodic density is searched beyond an end
    /// too, where it goes on at the other end.
    pub fn mode(&self) -> f64 {
        let cells = 16 * self.coefficients.len();
        let step = 2.0 / cells as f64;
        let (best, _) = (0..=cells)
            .map(|i| -1.0 + i as f64 * step)
            .map(|z| (z, self.pdf(z)))
            .fold((0.0, f64::NEG_INFINITY), |best, at| if at.1 > best.1 { at } else { best });
        let ratio = 0.5 * (5.0f64.sqrt() - 1.0);
        let is_periodic = self.stretch == Domain::Periodic.stretch();
        let (mut low, mut high) = (best - step, best + step);
        if !is_periodic {
            (low, high) = (low.max(-1.0), high.min(1.0));
        }
        // 40 steps narrow the bracket by 4e-9; closer to the top, a parabola is flat in f64.
        for _ in 0..40 {
            let (left, right) = (high - ratio * (high - low), low + ratio * (high - low));
            if self.pdf(left) < self.pdf(right) { low = left } else { high = right }
        }
        match 0.5 * (low + high) {
            z if z < -1.0 => z + 2.0,
            z if z > 1.0 => z - 2.0,
            z => z,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Domain; 2] = [Domain::Periodic, Domain::HalfRange];

    /// N = 4.
    const ROW: [f64; 10] = [0.9, -0.3, 0.7, 0.2, -0.5, 0.1, 0.6, -0.4, 0.8, 0.3];

    #[track_caller]
    fn close(got: f64, expected: f64, tolerance: f64) {
        assert!((got - expected).abs() <= tolerance, "got {got:e}, expected {expected:e}");
    }

    /// `a_0 = a_1 = 1`: `|A|² = 2 + 2 cos πz`, so `p(z) = (1 + cos πz)/2`.
    #[test]
    fn raised_cosine() {
        let density = FourierDensity::new(&[1.0, 1.0, 0.0, 0.0], Domain::Periodic);
        for z in [-1.0, -0.6, 0.0, 0.35, 1.0f64] {
            close(density.pdf(z), (1.0 + (PI * z).cos()) / 2.0, 1e-15);
            close(density.cdf(z), (z + 1.0) / 2.0 + (PI * z).sin() / (2.0 * PI), 1e-15);
        }
        close(density.mode(), 0.0, 1e-7);
        close(density.inverse_cdf(0.5), 0.0, 1e-15);
    }

    /// The same coefficients on half the period: `|A|² = 2 + 2 cos(πz/2)`, whose integral
    /// over [-1, 1] is `4 + 8/π`.
    #[test]
    fn raised_cosine_on_half_the_period() {
        let density = FourierDensity::new(&[1.0, 1.0, 0.0, 0.0], Domain::HalfRange);
        let total = 4.0 + 8.0 / PI;
        for z in [-1.0, -0.6, 0.0, 0.35, 1.0f64] {
            close(density.pdf(z), (2.0 + 2.0 * (PI * z / 2.0).cos()) / total, 1e-15);
            let below = 2.0 * (z + 1.0) + 4.0 / PI * ((PI * z / 2.0).sin() + 1.0);
            close(density.cdf(z), below / total, 1e-15);
        }
    }

    #[test]
    fn the_cdf_runs_from_0_to_1_with_the_density_as_its_slope() {
        for domain in BOTH {
            let density = FourierDensity::new(&ROW, domain);
            close(density.cdf(-1.0), 0.0, 1e-15);
            close(density.cdf(1.0), 1.0, 1e-15);
            for z in [-0.9, -0.2, 0.1, 0.77] {
                let h = 1e-5;
                let slope = (density.cdf(z + h) - density.cdf(z - h)) / (2.0 * h);
                close(slope, density.pdf(z), 1e-8);
            }
        }
    }

    #[test]
    fn sampling_inverts_the_cdf() {
        for domain in BOTH {
            let density = FourierDensity::new(&ROW, domain);
            for u in [0.0, 1e-3, 0.2, 0.5, 0.77, 0.999] {
                let z = density.inverse_cdf(u);
                assert!((-1.0..=1.0).contains(&z));
                close(density.cdf(z), u, 1e-14);
            }
        }
    }

    #[test]
    fn only_the_periodic_ends_are_neighbours() {
        let [periodic, half] = BOTH.map(|domain| FourierDensity::new(&ROW, domain));
        close(periodic.pdf(-1.0), periodic.pdf(1.0), 1e-14);
        assert!((half.pdf(-1.0) - half.pdf(1.0)).abs() > 0.1);
    }

    #[test]
    fn nothing_is_more_probable_than_the_mode() {
        for domain in BOTH {
            let density = FourierDensity::new(&ROW, domain);
            let top = density.pdf(density.mode());
            for i in 0..=1000 {
                assert!(density.pdf(-1.0 + f64::from(i) / 500.0) <= top * (1.0 + 1e-12));
            }
        }
    }

    /// `|A|² = 2 + 2 cos π(z + 1.003)`, whose top is just beyond -1.
    #[test]
    fn a_top_beyond_an_end_is_found_at_the_other_end() {
        let (sin, cos) = (PI * 1.003).sin_cos();
        let density = FourierDensity::new(&[1.0, cos, 0.0, sin], Domain::Periodic);
        close(density.mode(), 0.997, 1e-7);
    }

    #[test]
    fn zero_coefficients_are_the_uniform_density() {
        let density = FourierDensity::new(&[0.0; 8], Domain::HalfRange);
        close(density.pdf(0.3), 0.5, 1e-15);
        close(density.inverse_cdf(0.25), -0.5, 1e-15);
    }
}
