//! The mean integrated squared error of a kernel density estimate, exactly: equation 26 of
//! FourierFormer's appendix D.2, by quadrature in Fourier space instead of by drawing points.
//!
//! Targets are products of the same density in each of `D` dimensions, so every integral over
//! ℝ^D is made of three integrals over ℝ:
//! `M₀ = ∫ p̂²`, `M₁ = ∫ p̂²(1−K)`, `M₂ = ∫ p̂²(1−K)²`, each over 2π.

use std::f64::consts::PI;

use super::kernel::{Kernel, gaussian_transform};

/// A density on ℝ with a known Fourier transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The standard normal: supersmooth of order 2.
    Gaussian,
    /// `exp(−|x|)/2`: ordinary smooth of order β = 2.
    Laplace,
}

impl Target {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gaussian => "Gaussian",
            Self::Laplace => "Laplace",
        }
    }

    /// `p̂(t)²`.
    fn power(self, t: f64) -> f64 {
        match self {
            Self::Gaussian => (-t * t).exp(),
            Self::Laplace => (1.0 + t * t).powi(-2),
        }
    }

    /// `∫ₓ^∞ p̂(t)² dt` for a kernel that ends at `x`, or `None` where quadrature up to
    /// [`Target::END`] gives it.
    fn tail(self, x: f64) -> Option<f64> {
        match self {
            Self::Gaussian => None,
            // The antiderivative (t/(1+t²) + atan t)/2, away from cancellation for large x.
            Self::Laplace if x < 30.0 => Some(0.5 * (x.recip().atan() - x / (1.0 + x * x))),
            Self::Laplace => {
                let y = 1.0 / (x * x);
                Some((1.0 / 3.0 - y * (2.0 / 5.0 - y * (3.0 / 7.0 - y * 4.0 / 9.0))) * y / x)
            }
        }
    }

    /// Where `exp(−t²)` has nothing left.
    const END: f64 = 27.0;
}

/// What a kernel density estimate smooths with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Smoother {
    /// A generalized Fourier integral kernel at a radius `R`.
    Fourier(Kernel, f64),
    /// A Gaussian with this standard deviation.
    Gaussian(f64),
}

/// The two parts of the mean integrated squared error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mise {
    /// `∫ (E p_N − p)²`.
    pub bias: f64,
    /// `∫ Var p_N`, times the number of points: it does not depend on that.
    pub variance_times_n: f64,
}

impl Mise {
    /// For the product of `dimensions` densities `target`.
    pub fn new(target: Target, dimensions: usize, smoother: Smoother) -> Self {
        let d = dimensions as i32;
        let transform = |t: f64| match smoother {
            Smoother::Fourier(kernel, radius) => kernel.transform(t / radius),
            Smoother::Gaussian(bandwidth) => gaussian_transform(bandwidth, t),
        };
        let breaks = breaks(smoother);
        let beyond = target.tail(breaks[breaks.len() - 1]).unwrap_or(0.0);
        let integrands = |t: f64| {
            let (power, kept) = (target.power(t), transform(t));
            let lost = 1.0 - kept;
            [power, power * lost, power * lost * lost, power * kept * kept]
        };
        let mut integrals = [beyond, beyond, beyond, 0.0];
        for ends in breaks.windows(2) {
            let part = simpson(&integrands, ends[0], ends[1]);
            integrals.iter_mut().zip(part).for_each(|(integral, part)| *integral += part);
        }
        let [m0, m1, m2, kept] = integrals.map(|integral| integral / PI);
        let all = match smoother {
            Smoother::Fourier(kernel, radius) => radius * kernel.roughness(),
            Smoother::Gaussian(bandwidth) => 1.0 / (2.0 * PI.sqrt() * bandwidth),
        };
        Self { bias: bias(m0, m1, m2, dimensions), variance_times_n: all.powi(d) - kept.powi(d) }
    }

    /// The whole error with `n` points.
    pub fn total(self, n: f64) -> f64 {
        self.bias + self.variance_times_n / n
    }
}

/// `∫ p̂² (1 − Π Kⱼ)²` over ℝ^D from its one-dimensional moments, without the cancellation of
/// `1 − 2K + K²`: with `u = 1 − K`, `1 − ΠKⱼ` of one more dimension is `v + u − vu`.
fn bias(m0: f64, m1: f64, m2: f64, dimensions: usize) -> f64 {
    let (mut v0, mut v1, mut v2) = (m0, m1, m2);
    for _ in 1..dimensions {
        let next2 = v2 * m0 + v0 * m2 + v2 * m2 + 2.0 * (v1 * m1 - v2 * m1 - v1 * m2);
        let next1 = v1 * m0 + v0 * m1 - v1 * m1;
        (v0, v1, v2) = (v0 * m0, next1, next2);
    }
    v2
}

/// Places between which the integrands are smooth and change little: the spline's knots, the
/// halves up to [`Target::END`], then powers of 2, and an end beyond which only the target is
/// left.
fn breaks(smoother: Smoother) -> Vec<f64> {
    let (mut breaks, end) = match smoother {
        Smoother::Fourier(kernel, radius) => {
            let p = kernel.power();
            let knots = (0..p.div_ceil(2)).map(|k| radius * f64::from(p - 2 * k));
            (knots.collect::<Vec<_>>(), radius * f64::from(p))
        }
        Smoother::Gaussian(bandwidth) => (vec![], 9.0 / bandwidth),
    };
    let end = end.max(Target::END);
    breaks.push(end);
    breaks.extend((0..54).map(|k| 0.5 * f64::from(k)));
    breaks.extend((5..40).map(|k| 2f64.powi(k)).take_while(|&x| x < end));
    breaks.sort_by(f64::total_cmp);
    breaks.dedup();
    breaks
}

/// Simpson's rule with 32 steps, for four integrands at once.
fn simpson(f: &dyn Fn(f64) -> [f64; 4], from: f64, to: f64) -> [f64; 4] {
    const STEPS: usize = 32;
    let step = (to - from) / STEPS as f64;
    // Integrands may jump where a gap begins or ends; its inside decides.
    let inset = 1e-13 * (to - from);
    let mut sums = [0.0; 4];
    for i in 0..=STEPS {
        let (t, weight) = match i {
            0 => (from + inset, 1.0),
            STEPS => (to - inset, 1.0),
            i => (from + step * i as f64, if i % 2 == 0 { 2.0 } else { 4.0 }),
        };
        sums.iter_mut().zip(f(t)).for_each(|(sum, value)| *sum += weight * value);
    }
    sums.map(|sum| sum * step / 3.0)
}

/// The expectation at `x` of the estimate of a standard normal density: equation 10, by
/// Plancherel `∫ p̂(t) K(t/R) cos(xt) dt / 2π`.
#[cfg(test)]
pub(super) fn expectation(kernel: Kernel, radius: f64, x: f64) -> f64 {
    let smoother = Smoother::Fourier(kernel, radius);
    let end = radius * f64::from(kernel.power());
    let integrand = |t: f64| {
        [gaussian_transform(1.0, t) * kernel.transform(t / radius) * (x * t).cos(), 0.0, 0.0, 0.0]
    };
    let breaks: Vec<f64> = breaks(smoother).into_iter().filter(|&t| t <= end).collect();
    breaks.windows(2).map(|ends| simpson(&integrand, ends[0], ends[1])[0]).sum::<f64>() / PI
}

/// The radius with the least error for `n` points, and that error.
///
/// By golden sections of `ln R`: the error has one valley, because the bias falls and the
/// variance rises with the radius.
pub fn best_radius(target: Target, dimensions: usize, kernel: Kernel, n: f64) -> (f64, f64) {
    let error =
        |ln: f64| Mise::new(target, dimensions, Smoother::Fourier(kernel, ln.exp())).total(n);
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (0.05f64.ln(), 1e6f64.ln());
    let mut inner = [high - golden * (high - low), low + golden * (high - low)];
    let mut errors = inner.map(error);
    while high - low > 1e-5 {
        if errors[0] < errors[1] {
            high = inner[1];
            inner = [high - golden * (high - low), inner[0]];
            errors = [error(inner[0]), errors[0]];
        } else {
            low = inner[0];
            inner = [inner[1], low + golden * (high - low)];
            errors = [errors[1], error(inner[1])];
        }
    }
    let ln = (low + high) / 2.0;
    (ln.exp(), error(ln))
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::super::kernel::POWERS;
    use super::*;

    #[track_caller]
    fn close(left: f64, right: f64, relative: f64) {
        assert!((left - right).abs() <= relative * right.abs(), "{left} is not {right}");
    }

    /// `∫ p²`, the error of estimating nothing.
    fn nothing(target: Target, dimensions: usize) -> f64 {
        let one = match target {
            Target::Gaussian => PI.sqrt() / TAU,
            Target::Laplace => 0.25,
        };
        one.powi(dimensions as i32)
    }

    /// For φ(z) = z the derivative of equation 26 vanishes where `p̂²(R) = 1/(N+1)`.
    #[test]
    fn the_best_radius_of_the_fourier_integral_theorem_is_known() {
        for n in [1e3f64, 1e5, 1e7] {
            let (radius, error) = best_radius(Target::Gaussian, 1, Kernel::new(1), n);
            close(radius, (n + 1.0).ln().sqrt(), 1e-4);
            let mise = Mise::new(
                Target::Gaussian,
                1,
                Smoother::Fourier(Kernel::new(1), (n + 1.0).ln().sqrt()),
            );
            close(error, mise.total(n), 1e-8);
            let (radius, _) = best_radius(Target::Laplace, 1, Kernel::new(1), n);
            close(radius, ((n + 1.0).sqrt() - 1.0).sqrt(), 1e-4);
        }
    }

    /// `∫_{|t|>R} exp(−t²) dt / 2π` from the asymptotic series of erfc, and
    /// `∫_{|t|>R} (1+t²)⁻² dt / 2π` from its antiderivative.
    #[test]
    fn the_bias_of_the_fourier_integral_theorem_is_the_spectrums_tail() {
        let bias =
            |target, radius| Mise::new(target, 1, Smoother::Fourier(Kernel::new(1), radius)).bias;
        for radius in [5.0f64, 8.0] {
            let y = 1.0 / (2.0 * radius * radius);
            let series = 1.0 - y + 3.0 * y * y - 15.0 * y.powi(3) + 105.0 * y.powi(4);
            close(
                bias(Target::Gaussian, radius),
                (-radius * radius).exp() / (TAU * radius) * series,
                3e-5,
            );
        }
        for radius in [2.0f64, 29.0, 31.0] {
            let exact = (PI / 2.0 - radius.atan() - radius / (1.0 + radius * radius)) / TAU;
            close(bias(Target::Laplace, radius), exact, 1e-7);
        }
    }

    /// With a Gaussian kernel everything is normal densities at 0: `∫ p² = 1/(2√π)`, and
    /// kernels only widen them.
    #[test]
    fn the_gaussian_kernels_error_is_the_closed_form() {
        for h in [0.1f64, 0.5, 1.5] {
            let half = 1.0 / (2.0 * PI.sqrt());
            let kept = half / (1.0 + h * h).sqrt();
            let crossed = half * 2f64.sqrt() / (2.0 + h * h).sqrt();
            for d in [1, 2] {
                let mise = Mise::new(Target::Gaussian, d, Smoother::Gaussian(h));
                let d = d as i32;
                let exact = half.powi(d) - 2.0 * crossed.powi(d) + kept.powi(d);
                assert!((mise.bias - exact).abs() < 1e-12, "{h} {d}");
                close(mise.variance_times_n, (half / h).powi(d) - kept.powi(d), 1e-9);
            }
        }
    }

    /// Two dimensions against a sum over a grid of ℝ², with the cancellation left in.
    #[test]
    fn two_dimensions_are_the_double_integral() {
        for (target, power) in POWERS.into_iter().map(|p| (Target::Gaussian, p)) {
            let kernel = Kernel::new(power);
            let radius = 1.3;
            let mise = Mise::new(target, 2, Smoother::Fourier(kernel, radius));
            let (step, n) = (0.013, 620);
            let lattice: Vec<f64> = (0..n).map(|i| step * (f64::from(i) + 0.5)).collect();
            let k: Vec<f64> = lattice.iter().map(|t| kernel.transform(t / radius)).collect();
            let p: Vec<f64> = lattice.iter().map(|&t| target.power(t)).collect();
            let mut bias = 0.0;
            for i in 0..lattice.len() {
                for j in 0..lattice.len() {
                    bias += p[i] * p[j] * (1.0 - k[i] * k[j]).powi(2);
                }
            }
            close(mise.bias, bias * (step / PI).powi(2), 2e-3);
        }
    }

    /// Far from the optimum the variance is `(R · ∫φ² / A²)^D / N`, and the bias is `∫ p²` when
    /// nothing is kept.
    #[test]
    fn the_ends_are_right() {
        for power in POWERS {
            let kernel = Kernel::new(power);
            for (target, d) in [(Target::Gaussian, 1), (Target::Laplace, 2)] {
                let wide = Mise::new(target, d, Smoother::Fourier(kernel, 1e4));
                close(wide.variance_times_n, (1e4 * kernel.roughness()).powi(d as i32), 1e-3);
                let narrow = Mise::new(target, d, Smoother::Fourier(kernel, 1e-5));
                close(narrow.bias, nothing(target, d), 1e-3);
                assert!(wide.total(10.0) > wide.total(20.0) && wide.bias < narrow.bias);
            }
        }
    }
}
