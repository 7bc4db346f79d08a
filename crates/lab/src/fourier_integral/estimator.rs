//! The generalized Fourier integral estimators of a density and of a regression function from
//! points (FourierFormer, eq. 12 and 14).

use crate::dot::dot;

use super::kernel::{Kernel, POWERS, powers, sinc};

/// Points that are gone through at a time: their kernel values stay in the first-level cache.
const BLOCK: usize = 256;
/// Weights of a plain sum.
const ONES: [f64; BLOCK] = [1.0; BLOCK];

/// A sum for each of [`POWERS`].
pub type PerPower = [f64; POWERS.len()];

/// Points in `D` dimensions, ready to be summed over at one radius `R`.
///
/// `sin(R(k − kᵢ))` comes from the sines and cosines of `Rk` and `Rkᵢ` by the addition theorem,
/// so that no pair of points needs a sine of its own.
#[derive(Clone, Debug)]
pub struct Points<'a, const D: usize> {
    radius: f64,
    columns: &'a [Vec<f64>; D],
    /// `sin Rkᵢ` and `cos Rkᵢ`, column by column.
    waves: [[Vec<f64>; 2]; D],
}

impl<'a, const D: usize> Points<'a, D> {
    /// The points with coordinates `columns` at the radius `R` = `radius`.
    ///
    /// # Panics
    /// When the columns have different lengths or there is no point.
    pub fn new(columns: &'a [Vec<f64>; D], radius: f64) -> Self {
        let n = columns[0].len();
        assert!(n > 0 && columns.iter().all(|column| column.len() == n), "{n} points");
        let waves = columns.each_ref().map(|column| {
            [f64::sin, f64::cos].map(|wave| column.iter().map(|x| wave(radius * x)).collect())
        });
        Self { radius, columns, waves }
    }

    /// The number of points.
    fn len(&self) -> usize {
        self.columns[0].len()
    }

    /// `Σᵢ Πⱼ φ(sin(R(kⱼ − kᵢⱼ)) / (R(kⱼ − kᵢⱼ)))` at `k` = `at` for each of [`POWERS`], and the
    /// same sum with the weights `weights[w][i]` for each `w`.
    ///
    /// # Panics
    /// When there is not one weight a point.
    pub fn sums<const W: usize>(
        &self,
        at: [f64; D],
        weights: [&[f64]; W],
    ) -> (PerPower, [PerPower; W]) {
        let n = self.len();
        assert!(weights.iter().all(|weights| weights.len() == n), "one weight for each of {n}");
        let waves_at = at.map(|x| (self.radius * x).sin_cos());
        let (mut plain, mut weighted) = ([0.0; POWERS.len()], [[0.0; POWERS.len()]; W]);
        let mut product = [0.0; BLOCK];
        let mut raised = [[0.0; BLOCK]; POWERS.len()];
        for start in (0..n).step_by(BLOCK) {
            let block = start..n.min(start + BLOCK);
            let count = block.len();
            product[..count].fill(1.0);
            for j in 0..D {
                let (sine, cosine) = waves_at[j];
                let [sines, cosines] = &self.waves[j];
                let (sines, cosines) = (&sines[block.clone()], &cosines[block.clone()]);
                let column = &self.columns[j][block.clone()];
                for (i, product) in product[..count].iter_mut().enumerate() {
                    let z = self.radius * (at[j] - column[i]);
                    *product *= sinc(z, sine * cosines[i] - cosine * sines[i]);
                }
            }
            for (i, &s) in product[..count].iter().enumerate() {
                for (raised, power) in raised.iter_mut().zip(powers(s)) {
                    raised[i] = power;
                }
            }
            for (p, raised) in raised.iter().enumerate() {
                plain[p] += dot(&raised[..count], &ONES[..count]);
                for (sums, weights) in weighted.iter_mut().zip(weights) {
                    sums[p] += dot(&raised[..count], &weights[block.clone()]);
                }
            }
        }
        (plain, weighted)
    }

    /// The density at `at` for each of [`POWERS`]: equation 12.
    pub fn densities(&self, at: [f64; D]) -> PerPower {
        let (sums, []) = self.sums(at, []);
        let mut powers = POWERS.iter();
        sums.map(|sum| {
            let integral = powers.next().map_or(f64::NAN, |&p| Kernel::new(p).integral());
            (self.radius / integral).powi(D as i32) * sum / self.len() as f64
        })
    }
}

/// The Gaussian kernel estimate at `at` with one bandwidth for each dimension.
pub fn gaussian_density<const D: usize>(
    columns: &[Vec<f64>; D],
    bandwidths: [f64; D],
    at: [f64; D],
) -> f64 {
    let n = columns[0].len();
    let kernel = |i: usize| -> f64 {
        let squares: f64 = (0..D).map(|j| ((at[j] - columns[j][i]) / bandwidths[j]).powi(2)).sum();
        (-0.5 * squares).exp()
    };
    let volume: f64 = bandwidths.iter().map(|h| h / super::kernel::INVERSE_SQRT_TAU).product();
    (0..n).map(kernel).sum::<f64>() / (n as f64 * volume)
}

/// Sample standard deviation.
pub(crate) fn sample_sd(values: &[f64]) -> f64 {
    values.iter().copied().collect::<overtone_eval::Pooled>().sd().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::super::kernel::normal_density;
    use super::super::mise::expectation;
    use super::*;

    /// Largest difference seen: 3e-15, where the sums are about 40.
    const ROUNDING: f64 = 1e-13;

    fn scattered(n: usize, step: f64) -> Vec<f64> {
        (0..n).map(|i| (step * i as f64).sin() * 2.0).collect()
    }

    #[test]
    fn the_sums_are_what_equation_12_says() {
        for n in [1, 7, 8, 255, 256, 257, 601] {
            let columns = [scattered(n, 0.7), scattered(n, 1.3)];
            let weights: Vec<f64> = (0..n).map(|i| i as f64 / n as f64 - 0.3).collect();
            // The last place is on a point, the one before close to it.
            let on = [columns[0][n / 2], columns[1][n / 2]];
            for at in [[0.3, -1.2], [on[0] + 1e-9, on[1] - 1e-4], on] {
                let points = Points::new(&columns, 2.5);
                let (plain, [weighted]) = points.sums(at, [&weights]);
                for (p, &power) in POWERS.iter().enumerate() {
                    let term = |i: usize| -> f64 {
                        let factor = |j: usize| match 2.5 * (at[j] - columns[j][i]) {
                            0.0 => 1.0,
                            z => z.sin() / z,
                        };
                        (factor(0) * factor(1)).powi(power as i32)
                    };
                    let direct: f64 = (0..n).map(term).sum();
                    assert!((plain[p] - direct).abs() < ROUNDING, "{n} {power} {at:?}");
                    let direct: f64 = (0..n).map(|i| weights[i] * term(i)).sum();
                    assert!((weighted[p] - direct).abs() < ROUNDING, "{n} {power} {at:?}");
                }
            }
        }
    }

    /// Band-limited functions are integrated exactly by sums, up to where the grid ends.
    #[test]
    fn every_density_integrates_to_one() {
        let columns = [vec![-0.4, 0.1, 1.7]];
        let points = Points::new(&columns, 3.0);
        let (step, half) = (PI / 18.0, 10_000);
        let mut sums = [0.0; 4];
        for i in -half..=half {
            let densities = points.densities([step * f64::from(i)]);
            assert!(densities[1..].iter().all(|density| *density >= 0.0), "{densities:?}");
            for (sum, density) in sums.iter_mut().zip(densities) {
                *sum += step * density;
            }
        }
        // sin z / z and its square end slowly: 1/(A R L) is 6e-5 at L = 1745.
        for (sum, tolerance) in sums.into_iter().zip([1e-3, 1e-4, 1e-12, 1e-12]) {
            assert!((sum - 1.0).abs() < tolerance, "{sums:?}");
        }
    }

    /// The expectation of the estimator is equation 10; with a normal density that integral is
    /// a sum over a lattice, and by Plancherel it is `∫ p̂(t) K(t/R) cos(kt) dt / 2π`.
    #[test]
    fn the_expectation_is_the_convolution_of_plancherels_theorem() {
        let step = 0.05;
        let lattice: Vec<f64> = (-240..=240).map(|i| step * f64::from(i)).collect();
        let mass: Vec<f64> = lattice.iter().map(|&x| step * normal_density(x)).collect();
        let columns = [lattice];
        for radius in [0.8, 2.0, 5.0] {
            let points = Points::new(&columns, radius);
            for at in [0.0, 0.7, 2.5] {
                let (_, [expected]) = points.sums([at], [&mass]);
                for (p, &power) in POWERS.iter().enumerate() {
                    let kernel = Kernel::new(power);
                    let estimate = radius / kernel.integral() * expected[p];
                    let exact = expectation(kernel, radius, at);
                    let difference = (estimate - exact).abs();
                    assert!(difference < 1e-8, "{radius} {at} {power}: {difference}");
                }
            }
        }
    }

    #[test]
    fn the_gaussian_kernel_is_a_normal_density_around_each_point() {
        let at = gaussian_density(&[vec![1.0, 3.0]], [2.0], [1.0]);
        let expected = (normal_density(0.0) + normal_density(1.0)) / 2.0 / 2.0;
        assert!((at - expected).abs() < 1e-15);
        let at = gaussian_density(&[vec![0.0], vec![0.0]], [0.5, 2.0], [0.5, 2.0]);
        assert!((at - normal_density(1.0).powi(2)).abs() < 1e-15);
        assert!((sample_sd(&[1.0, 3.0]) - 2f64.sqrt()).abs() < 1e-15);
    }
}
