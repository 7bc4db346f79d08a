//! How the mean integrated squared error falls with `R` and `N` (FourierFormer, Theorems 1
//! and 3), exactly by equation 26, and drawn.

use std::array;

use overtone_eval::Pooled;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::Settings;
use super::estimator::{PerPower, Points};
use super::kernel::{Kernel, POWERS, silverman};
use super::mise::{Mise, Smoother, Target, best_radius, expectation, expected_error};
use super::synthetic::{generator, normal, normals};
use crate::power_law::PowerLaw;

/// Dimensions that are looked at.
pub const DIMENSIONS: [usize; 2] = [1, 2];
/// Radii between which the exponents of bias and variance are read off: where `R` is large
/// beside the target's width, and the Gaussian's bias is not yet rounding.
pub(super) const ASYMPTOTIC_RADII: [f64; 2] = [64.0, 512.0];
/// Numbers of points for which the best radius is sought: from the first to the last by equal
/// factors, this many.
pub(super) const SOUGHT: (f64, f64, usize) = (1e4, 1e9, 11);
/// Places on the grid over which an estimate's error is integrated, in each dimension, and the
/// grid's half width. The expected error changes over distances of 1, not over those of `1/R`,
/// so that its integral needs no finer grid.
const GRID: [(usize, f64); 2] = [(257, 8.0), (33, 5.0)];

/// Exponents of one target and kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// The density in each dimension.
    pub target: Target,
    /// Number of dimensions.
    pub dimensions: usize,
    /// `p` in `φ(z) = z^p`.
    pub power: u32,
    /// Of the squared bias in `R`; `None` where it is no power law.
    pub bias: Option<PowerLaw>,
    /// Of the variance in `R`.
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
    /// Of the best radius: `1/(D + b)`, from `R^−b = R^D/N`.
    pub fn radius(self) -> f64 {
        1.0 / (self.dimensions as f64 + self.bias)
    }

    /// Of the error at the best radius: `−b/(D + b)`; −1 when the bias is exponential.
    pub fn error(self) -> f64 {
        -1.0 + self.dimensions as f64 * self.radius()
    }
}

impl Rate {
    /// What the paper's bound says, or would say where its conditions do not hold.
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

    /// What equation 26 gives for large `R`: `1 − K(t/R)` begins with `|t/R|` for `p` = 2 and
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

/// Errors of estimates of a normal density drawn at one `R` and `N`, beside the exact ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// Number of dimensions.
    pub dimensions: usize,
    /// `p` in `φ(z) = z^p`.
    pub power: u32,
    /// Number of points.
    pub n: usize,
    /// The radius.
    pub radius: f64,
    /// Integrated squared errors of all draws.
    pub error: Pooled,
    /// Squared bias, of the mean of the draws, less what their variance adds to it.
    pub bias: f64,
    /// Variance over the draws.
    pub variance: f64,
    /// By equation 26.
    pub exact: Mise,
    /// The exact expected error, summed over the same grid as `error`. What it lacks to
    /// equation 26 lies beyond the grid: little, but for φ(z) = z, whose kernel ends slowest.
    pub on_grid: f64,
}

impl Drawn {
    /// How many standard errors the mean of the draws lies above what is expected of it.
    pub fn deviation(&self) -> Option<f64> {
        let sd = self.error.sd()?;
        let off = self.error.mean - self.on_grid;
        Some(off / (sd / (self.error.n as f64).sqrt()))
    }
}

/// What was found about rates.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// By target, dimensions and power.
    pub rates: Vec<Rate>,
    /// By dimensions, number of points, radius and power.
    pub drawn: Vec<Drawn>,
}

/// The configurations that are drawn: dimensions, number of points, radius.
fn configurations(settings: &Settings) -> Vec<(usize, usize, f64)> {
    let mut all = Vec::new();
    for d in DIMENSIONS {
        for &n in &settings.rate_points[d - 1] {
            all.extend(RADII.map(|radius| (d, n, radius)));
        }
    }
    all
}

/// Radii at which estimates are drawn.
pub const RADII: [f64; 8] = [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0];

/// Steps of [`run`] that are reported to `progress`.
pub(super) fn units(settings: &Settings) -> usize {
    2 * DIMENSIONS.len() * POWERS.len() + configurations(settings).len()
}

/// Exponents from exact errors, and drawn errors beside exact ones.
pub(super) fn run(settings: &Settings, progress: &(dyn Fn() + Sync)) -> Finding {
    let mut cases = Vec::new();
    for target in [Target::Gaussian, Target::Laplace] {
        for dimensions in DIMENSIONS {
            cases.extend(POWERS.map(|power| (target, dimensions, power)));
        }
    }
    let rates = cases
        .into_par_iter()
        .map(|(target, dimensions, power)| {
            let rate = rate(target, dimensions, power);
            progress();
            rate
        })
        .collect();
    let drawn: Vec<Vec<Drawn>> = configurations(settings)
        .into_par_iter()
        .map(|(dimensions, n, radius)| {
            let drawn = match dimensions {
                1 => draw::<1>(settings, n, radius, |at| normal([at[0]], 0.0)),
                _ => draw::<2>(settings, n, radius, |at| normal(at, 0.0)),
            };
            progress();
            drawn
        })
        .collect();
    Finding { rates, drawn: drawn.into_iter().flatten().collect() }
}

/// `count` numbers from `from` to `to` by equal factors.
pub(super) fn geometric(from: f64, to: f64, count: usize) -> Vec<f64> {
    let step = (to / from).ln() / (count.max(2) - 1) as f64;
    (0..count).map(|i| from * (step * i as f64).exp()).collect()
}

fn rate(target: Target, dimensions: usize, power: u32) -> Rate {
    let kernel = Kernel::new(power);
    let [from, to] = ASYMPTOTIC_RADII;
    let parts: Vec<(f64, Mise)> = geometric(from, to, 13)
        .into_iter()
        .map(|radius| (radius, Mise::new(target, dimensions, Smoother::Fourier(kernel, radius))))
        .collect();
    let exponential = power == 1 && target == Target::Gaussian;
    let bias = PowerLaw::fit(parts.iter().map(|(radius, mise)| [*radius, mise.bias]));
    let variance =
        PowerLaw::fit(parts.iter().map(|(radius, mise)| [*radius, mise.variance_times_n]));
    let (from, to, count) = SOUGHT;
    let best = geometric(from, to, count)
        .into_iter()
        .map(|n| {
            let (radius, error) = best_radius(target, dimensions, kernel, n);
            [n, radius, error]
        })
        .collect();
    let bias = bias.filter(|_| !exponential);
    Rate { target, dimensions, power, bias, variance, best }
}

/// The error of Silverman's rule with a Gaussian kernel on the standard normal, exactly.
pub fn silvermans_error(dimensions: usize, n: f64) -> f64 {
    let bandwidth = silverman(1.0, n as usize, dimensions);
    Mise::new(Target::Gaussian, dimensions, Smoother::Gaussian(bandwidth)).total(n)
}

fn draw<const D: usize>(
    settings: &Settings,
    n: usize,
    radius: f64,
    truth: impl Fn([f64; D]) -> f64,
) -> Vec<Drawn> {
    let (places, half_width) = GRID[D - 1];
    let step = 2.0 * half_width / (places - 1) as f64;
    let coordinate = |i: usize| step * i as f64 - half_width;
    let index: Vec<[usize; D]> = (0..places.pow(D as u32))
        .map(|i| array::from_fn(|j| i / places.pow(j as u32) % places))
        .collect();
    let grid: Vec<[f64; D]> = index.iter().map(|index| index.map(coordinate)).collect();
    let truth: Vec<f64> = grid.iter().map(|&at| truth(at)).collect();
    let volume = step.powi(D as i32);
    let mut errors: [Pooled; POWERS.len()] = Default::default();
    let mut at_grid: Vec<[Pooled; POWERS.len()]> = vec![Default::default(); grid.len()];
    for draw in 0..settings.rate_draws {
        let role = format!("rates {D} {n}");
        let columns = normals::<D>(n, 0.0, &mut generator(settings.seed, &role, draw));
        let points = Points::new(&columns, radius);
        let mut squares: PerPower = [0.0; POWERS.len()];
        for ((&at, pooled), truth) in grid.iter().zip(&mut at_grid).zip(&truth) {
            for (p, estimate) in points.densities(at).into_iter().enumerate() {
                pooled[p].add(estimate);
                squares[p] += volume * (estimate - truth).powi(2);
            }
        }
        errors.iter_mut().zip(squares).for_each(|(error, square)| error.add(square));
    }
    let draws = settings.rate_draws as f64;
    let finding = |(p, &power): (usize, &u32)| {
        let kernel = Kernel::new(power);
        let expectations: Vec<[f64; 2]> = (0..places)
            .map(|i| {
                [kernel, Kernel::new(2 * power)]
                    .map(|kernel| expectation(kernel, radius, coordinate(i)))
            })
            .collect();
        let expected = |(index, &truth): (&[usize; D], &f64)| {
            let expectations = index.map(|i| expectations[i]);
            volume * expected_error(expectations, truth, kernel, radius, n as f64)
        };
        let on_grid = index.iter().zip(&truth).map(expected).sum();
        let variance: f64 =
            at_grid.iter().filter_map(|pooled| pooled[p].sd()).map(|sd| volume * sd * sd).sum();
        let of_mean: f64 = at_grid
            .iter()
            .zip(&truth)
            .map(|(pooled, truth)| volume * (pooled[p].mean - truth).powi(2))
            .sum();
        let smoother = Smoother::Fourier(kernel, radius);
        Drawn {
            dimensions: D,
            power,
            n,
            radius,
            error: errors[p],
            bias: of_mean - variance / draws,
            variance,
            exact: Mise::new(Target::Gaussian, D, smoother),
            on_grid,
        }
    };
    POWERS.iter().enumerate().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tiny_findings;
    use super::*;

    /// Draws are few, so their mean is asked to lie within five standard errors.
    #[test]
    fn drawn_errors_are_those_of_equation_26() {
        let drawn = &tiny_findings().rates.drawn;
        assert_eq!(drawn.len(), 2 * RADII.len() * POWERS.len());
        for one in drawn {
            let deviation = one.deviation().unwrap();
            assert!(deviation.abs() < 5.0, "{deviation} of {one:?}");
            // The mean error is bias plus variance, exactly.
            let sum = one.bias + one.variance;
            assert!((one.error.mean - sum).abs() < 1e-12, "{one:?}");
            let exact = one.exact.variance_times_n / one.n as f64;
            assert!((one.variance / exact - 1.0).abs() < 0.6, "{one:?}");
            // What lies beyond the grid; for higher powers nothing does.
            let beyond = 1.0 - one.on_grid / one.exact.total(one.n as f64);
            let most =
                [0.3, 0.05, 1e-3, 1e-3][POWERS.iter().position(|&p| p == one.power).unwrap()];
            assert!((-1e-6..most).contains(&beyond), "{beyond} of {one:?}");
        }
    }

    #[test]
    fn exponents_are_the_sharp_ones() {
        for rate in &tiny_findings().rates.rates {
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
