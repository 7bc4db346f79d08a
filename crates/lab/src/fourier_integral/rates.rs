//! How the mean integrated squared error falls with `R` and `N` (FourierFormer, Theorems 1
//! and 3), exactly by equation 26.

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::kernel::{Kernel, POWERS, silverman};
use super::mise::{Mise, Smoother, Target, best_radius};
use crate::power_law::PowerLaw;

/// Dimensions that are looked at.
pub const DIMENSIONS: [usize; 2] = [1, 2];
/// Radii between which the exponents of bias and variance are read off: where `R` is large
/// beside the target's width, and the Gaussian's bias is not yet rounding.
pub(super) const ASYMPTOTIC_RADII: [f64; 2] = [64.0, 512.0];
/// Numbers of points for which the best radius is sought: from the first to the last by equal
/// factors, this many.
pub(super) const SOUGHT: (f64, f64, usize) = (1e4, 1e9, 11);

/// Exponents of one target and kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// The density in each dimension.
    pub target: Target,
    /// Number of dimensions.
    pub dimensions: usize,
    /// `p` in `φ(z) = z^p`.
    pub power: u32,
    /// The power law of the squared bias in `R`; `None` if it does not follow one.
    pub bias: Option<PowerLaw>,
    /// The power law of the variance in `R`.
    pub variance: Option<PowerLaw>,
    /// `[N, R, error]`: the best radius for each number of points.
    pub best: Vec<[f64; 3]>,
}

/// Exponents that somebody states: of the squared bias in `1/R`, of the best radius in `N`, of
/// the error in `1/N`. An infinite first one stands for a bias that falls exponentially.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponents {
    /// `b` in bias² ∝ `R^−b`.
    pub bias: f64,
    /// Dimensions, which make the variance `R^D/N`.
    pub dimensions: usize,
}

impl Exponents {
    /// The exponent of the best radius: `1/(D + b)`, from `R^−b = R^D/N`.
    pub fn radius(self) -> f64 {
        1.0 / (self.dimensions as f64 + self.bias)
    }

    /// The exponent of the error at the best radius: `−b/(D + b)`; −1 when the bias is exponential.
    pub fn error(self) -> f64 {
        -1.0 + self.dimensions as f64 * self.radius()
    }
}

impl Rate {
    /// The exponents of the paper's bound, also where its conditions do not hold.
    pub fn paper(&self) -> Exponents {
        let bias = match (self.power, self.target) {
            (1, Target::Gaussian) => f64::INFINITY,
            // β − 1 with β = 2.
            (1, Target::Laplace) => 1.0,
            // Theorem 3 (b), and Theorem 1 with m = 1.
            _ => 2.0,
        };
        Exponents { bias, dimensions: self.dimensions }
    }

    /// Whether the paper's conditions hold. The Laplace density is ordinary smooth of order 2,
    /// where Theorem 3 (b) wants more than 3, and has no second derivative for Theorem 1.
    pub fn paper_applies(&self) -> bool {
        self.target == Target::Gaussian || self.power == 1
    }

    /// The exponents of equation 26 for large `R`: `1 − K(t/R)` begins with `|t/R|` for `p` = 2 and
    /// with `(t/R)²` for 4 and 6, and is squared; a heavier tail of the spectrum, `t⁻⁴` for the
    /// Laplace density, limits the exponent to 3.
    pub fn sharp(&self) -> Exponents {
        let kernel = match self.power {
            1 => f64::INFINITY,
            2 => 2.0,
            _ => 4.0,
        };
        let tail = match self.target {
            Target::Gaussian => f64::INFINITY,
            Target::Laplace => 3.0,
        };
        Exponents { bias: f64::min(kernel, tail), dimensions: self.dimensions }
    }

    /// The best radius as a power of `N`.
    pub fn radius(&self) -> Option<PowerLaw> {
        PowerLaw::fit(self.best.iter().map(|&[n, radius, _]| [n, radius]))
    }

    /// The least error as a power of `N`.
    pub fn error(&self) -> Option<PowerLaw> {
        PowerLaw::fit(self.best.iter().map(|&[n, _, error]| [n, error]))
    }
}

/// Units of work of [`exact`].
pub(super) const UNITS: usize = 2 * DIMENSIONS.len() * POWERS.len();

/// Exponents from exact errors.
pub(super) fn exact(tick: &(dyn Fn() + Sync)) -> Vec<Rate> {
    let mut cases = Vec::new();
    for target in [Target::Gaussian, Target::Laplace] {
        for dimensions in DIMENSIONS {
            cases.extend(POWERS.map(|power| (target, dimensions, power)));
        }
    }
    let one = |(target, dimensions, power)| {
        let rate = rate(target, dimensions, power);
        tick();
        rate
    };
    cases.into_par_iter().map(one).collect()
}

/// `count` numbers from `from` to `to` by equal factors.
pub(super) fn geometric(from: f64, to: f64, count: usize) -> Vec<f64> {
    let step = (to / from).ln() / (count.max(2) - 1) as f64;
    (0..count).map(|i| from * (step * i as f64).exp()).collect()
}

fn rate(target: Target, dimensions: usize, power: u32) -> Rate {
    let kernel = Kernel::new(power);
    let [from, to] = ASYMPTOTIC_RADII;
    let (mut bias, mut variance) = (Vec::new(), Vec::new());
    for radius in geometric(from, to, 13) {
        let mise = Mise::new(target, dimensions, Smoother::Fourier(kernel, radius));
        bias.push([radius, mise.bias]);
        variance.push([radius, mise.variance_times_n]);
    }
    // It is exponential there.
    let bias = PowerLaw::fit(bias).filter(|_| power > 1 || target != Target::Gaussian);
    let (from, to, count) = SOUGHT;
    let best = |n: f64| {
        let (radius, error) = best_radius(target, dimensions, kernel, n);
        [n, radius, error]
    };
    let best = geometric(from, to, count).into_iter().map(best).collect();
    Rate { target, dimensions, power, bias, variance: PowerLaw::fit(variance), best }
}

/// The error of Silverman's rule with a Gaussian kernel on the standard normal, exactly.
pub fn silvermans_error(dimensions: usize, n: f64) -> f64 {
    let bandwidth = silverman(1.0, n as usize, dimensions);
    Mise::new(Target::Gaussian, dimensions, Smoother::Gaussian(bandwidth)).total(n)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::tiny_results;
    use super::*;

    #[test]
    fn exponents_are_the_sharp_ones() {
        for rate in &tiny_results().rates {
            let sharp = rate.sharp();
            let exponent = |law: Option<PowerLaw>| law.unwrap().exponent;
            assert!((exponent(rate.variance) - rate.dimensions as f64).abs() < 0.03, "{rate:?}");
            if sharp.bias.is_finite() {
                assert!((exponent(rate.bias) + sharp.bias).abs() < 0.15, "{rate:?}");
            } else {
                assert_eq!(rate.bias, None);
            }
            assert!((exponent(rate.radius()) - sharp.radius()).abs() < 0.05, "{rate:?}");
            assert!((exponent(rate.error()) - sharp.error()).abs() < 0.09, "{rate:?}");
            let paper = rate.paper();
            assert!(paper.bias <= sharp.bias && paper.error() > sharp.error() - 1e-12);
        }
    }

    #[test]
    fn an_exponential_bias_leaves_the_variance_alone() {
        let exponents = Exponents { bias: f64::INFINITY, dimensions: 2 };
        assert_eq!((exponents.radius(), exponents.error()), (0.0, -1.0));
        let exponents = Exponents { bias: 2.0, dimensions: 1 };
        assert!((exponents.error() + 2.0 / 3.0).abs() < 1e-15 && exponents.radius() == 1.0 / 3.0);
        // The best rule for N = 10⁴ beats Silverman's with a Gaussian kernel.
        let (_, best) = best_radius(Target::Gaussian, 1, Kernel::new(1), 1e4);
        assert!(best < silvermans_error(1, 1e4));
    }
}
