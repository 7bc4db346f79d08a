//! The Fourier head at its best: the parameters with the least cross-entropy to a symmetric
//! distribution over bins, and a proof that no others have less.
//!
//! The head's density is `p(z) = |A(z)|² / (2 Σ a_k²)` with `A(z) = Σ_{k=0}^N a_k e^{ikπz}`
//! (Fourier head, Algorithm 1). By the Fejér–Riesz theorem these are all nonnegative sums of the
//! frequencies up to `N` with integral 1, a convex set in which the cross-entropy is convex.
//! For a symmetric target the best density is symmetric and the `a_k` may be real.
//!
//! Parameters are improved by `a ← R a`, where `R` is the Toeplitz matrix with the Fourier
//! coefficients of `y/p` (the RρR algorithm of Hradil 1997, on a state of rank one). At the
//! optimum `R a = a`, and `R` has no eigenvalue above 1. If all lie under `1 + ε`, then for any
//! other density `q` of the head `Σ y q/p ≤ 1 + ε`, so by Jensen's inequality its cross-entropy
//! is at most `ln(1 + ε)` less: that is the proof.

use std::f64::consts::PI;

use crate::dot::dot;

/// A fitted head.
#[derive(Clone, Debug, PartialEq)]
pub struct BestFit {
    /// The parameters `a_0 ..= a_N`, with `Σ a_k² = 1`.
    pub parameters: Vec<f64>,
    /// `c_1 ..= c_N` of its density `1/2 + Σ c_k cos(kπz)`.
    pub coefficients: Vec<f64>,
    /// Kullback–Leibler divergence of the fit from the target, in nats.
    pub divergence: f64,
    /// No parameters have a divergence lower by more than this.
    pub excess: f64,
    /// Steps taken.
    pub steps: usize,
}

/// Fits heads to one distribution.
#[derive(Clone, Debug)]
pub struct Fitter {
    /// The target over the left half of the bins, summing to 1.
    y: Vec<f64>,
    /// `cos(kπb_j)` over the same bins, for `k = 0 ..= N` of the largest head.
    cosines: Vec<Vec<f64>>,
}

/// No step changes the parameters by more than this at the end.
const STILL: f64 = 1e-15;
/// Steps after which the end is not waited for.
const MOST_STEPS: usize = 5_000;
/// The smallest excess that is asked for, near the rounding of `R`.
const LEAST_EXCESS: f64 = 1e-14;

impl Fitter {
    /// For the distribution `pmf`, with heads of up to `most` frequencies.
    ///
    /// # Panics
    /// When the bins are odd in number or the distribution is not symmetric, not positive, or
    /// has no more than `2·most` bins.
    pub fn new(pmf: &[f64], most: usize) -> Self {
        let m = pmf.len();
        assert!(m.is_multiple_of(2) && 2 * most < m, "{m} bins for {most} frequencies");
        let mirrored = pmf.iter().zip(pmf.iter().rev());
        assert!(mirrored.clone().all(|(a, b)| (a - b).abs() < 1e-12), "not symmetric");
        assert!(pmf.iter().all(|&y| y > 0.0), "not positive");
        let half = &pmf[..m / 2];
        let sum: f64 = half.iter().sum();
        let centre = |j: usize| -1.0 + (1 + 2 * j) as f64 / m as f64;
        let cosines = (0..=most)
            .map(|k| (0..m / 2).map(|j| (PI * k as f64 * centre(j)).cos()).collect())
            .collect();
        Self { y: half.iter().map(|y| y / sum).collect(), cosines }
    }

    /// The best head with `n` frequencies.
    ///
    /// # Panics
    /// When `n` is more than this was made for.
    pub fn fit(&self, n: usize) -> BestFit {
        assert!(n < self.cosines.len(), "{n} frequencies");
        let mut a: Vec<f64> = (0..=n).map(|k| 1.0 / (k + 1) as f64).collect();
        normalize(&mut a);
        let mut steps = 0;
        let mut change = f64::INFINITY;
        while change > STILL && steps < MOST_STEPS {
            let row = self.correction(&self.probs(&coefficients(&a)), n);
            let mut next = toeplitz(&row, &a);
            normalize(&mut next);
            change = a.iter().zip(&next).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            a = next;
            steps += 1;
        }
        let c = coefficients(&a);
        let probs = self.probs(&c);
        let divergence = self.y.iter().zip(&probs).map(|(&y, &p)| {
            let off = (p - y) / y;
            y * (off - off.ln_1p())
        });
        BestFit {
            divergence: divergence.sum(),
            excess: excess(&self.correction(&probs, n)),
            parameters: a,
            coefficients: c,
            steps,
        }
    }

    /// The head's probabilities of the left half of the bins, summing to 1.
    fn probs(&self, coefficients: &[f64]) -> Vec<f64> {
        let bins = self.y.len() as f64;
        let mut probs = vec![1.0 / bins; self.y.len()];
        for (c, cosines) in coefficients.iter().zip(&self.cosines[1..]) {
            let c = 2.0 * c / bins;
            probs.iter_mut().zip(cosines).for_each(|(p, cosine)| *p += c * cosine);
        }
        probs
    }

    /// The first row of `R`: `Σ_j (y_j/p_j) cos(kπb_j)` over as many bins, for `k = 0 ..= n`.
    fn correction(&self, probs: &[f64], n: usize) -> Vec<f64> {
        let ratio: Vec<f64> = self.y.iter().zip(probs).map(|(y, p)| y / p).collect();
        let mean = |cosines: &Vec<f64>| dot(&ratio, cosines) / ratio.len() as f64;
        self.cosines[..=n].iter().map(mean).collect()
    }
}

/// `c_1 ..= c_N` from the parameters: their autocorrelation over its value at 0.
pub fn coefficients(a: &[f64]) -> Vec<f64> {
    let at = |k: usize| a.iter().zip(&a[k..]).map(|(x, y)| x * y).sum::<f64>();
    let zero = at(0);
    (1..a.len()).map(|k| at(k) / zero).collect()
}

fn normalize(a: &mut [f64]) {
    let norm = dot(a, a).sqrt();
    a.iter_mut().for_each(|a| *a /= norm);
}

fn toeplitz(row: &[f64], a: &[f64]) -> Vec<f64> {
    let at = |k: usize| (0..a.len()).map(|l| row[k.abs_diff(l)] * a[l]).sum();
    (0..a.len()).map(at).collect()
}

/// A power of ten times [`LEAST_EXCESS`] that every eigenvalue of the symmetric Toeplitz matrix
/// with this row lies under, above 1; infinite when there is none under 1.
fn excess(row: &[f64]) -> f64 {
    let candidates = (0..=14).map(|tens| LEAST_EXCESS * 10f64.powi(tens));
    candidates.into_iter().find(|&excess| all_under(row, 1.0 + excess)).unwrap_or(f64::INFINITY)
}

/// Whether every eigenvalue is less than `bound`: whether `bound − R` has a Cholesky factor.
fn all_under(row: &[f64], bound: f64) -> bool {
    let n = row.len();
    let mut factor: Vec<Vec<f64>> = Vec::with_capacity(n);
    for i in 0..n {
        let mut line: Vec<f64> = Vec::with_capacity(i + 1);
        for j in 0..=i {
            let entry = if i == j { bound - row[0] } else { -row[i - j] };
            if i == j {
                let square = entry - dot(&line, &line);
                if square <= 0.0 {
                    return false;
                }
                line.push(square.sqrt());
            } else {
                let value = (entry - dot(&line, &factor[j][..j])) / factor[j][j];
                line.push(value);
            }
        }
        factor.push(line);
    }
    true
}

#[cfg(test)]
mod tests {
    use overtone_eval::FourierTransform;

    use super::super::target::{Shape, Target, on_bins};
    use super::*;

    fn pmf(m: usize, coefficients: &[f64]) -> Vec<f64> {
        on_bins(&FourierTransform::new(m), 0.5, 1, coefficients)
    }

    #[test]
    fn a_head_finds_itself() {
        let truth = [0.9, -0.4, 0.3, 0.2];
        let c = coefficients(&truth);
        // The autocorrelation at 3 is 0.9 · 0.2, at 0 it is 0.81 + 0.16 + 0.09 + 0.04.
        assert!((c[2] - 0.18 / 1.1).abs() < 1e-15);
        let fit = Fitter::new(&pmf(64, &c), 5).fit(3);
        assert!(fit.divergence < 1e-13 && fit.excess < 1e-9, "{fit:?}");
        for (seen, c) in fit.coefficients.iter().zip(&c) {
            assert!((seen - c).abs() < 1e-6, "{fit:?}");
        }
    }

    /// The best head with one frequency is `1/2 + c cos(πz)`: one number, found by a search.
    #[test]
    fn one_frequency_is_a_search_of_one_number() {
        let target = Target { shape: Shape::Triangle, floor: 0.1 };
        let target = pmf(128, &target.coefficients(63));
        let fit = Fitter::new(&target, 1).fit(1);
        let divergence = |c: f64| -> f64 {
            target.iter().zip(pmf(128, &[c])).map(|(y, p)| y * (y / p).ln()).sum()
        };
        let best = (0..500).map(|i| 0.001 * f64::from(i));
        let best = best.min_by(|&a, &b| divergence(a).total_cmp(&divergence(b))).unwrap();
        assert!((fit.coefficients[0] - best).abs() < 1e-3, "{best} {fit:?}");
        assert!((divergence(fit.coefficients[0]) - fit.divergence).abs() < 1e-14);
    }

    /// The proof holds against densities of the same class: mixtures of the fit with others.
    #[test]
    fn no_other_head_is_better() {
        let target = Target { shape: Shape::Power(2.0), floor: 0.05 };
        let target = pmf(256, &target.coefficients(127));
        let fitter = Fitter::new(&target, 8);
        let fit = fitter.fit(8);
        assert!(fit.excess <= 1e-12 && fit.steps < MOST_STEPS, "{fit:?}");
        for seed in 0..20 {
            let other: Vec<f64> = (0..9).map(|k| (f64::from(seed * 9 + k) * 1.7).sin()).collect();
            let mixed: Vec<f64> = coefficients(&other)
                .iter()
                .zip(&fit.coefficients)
                .map(|(other, fit)| fit + 0.01 * (other - fit))
                .collect();
            let divergence: f64 =
                target.iter().zip(pmf(256, &mixed)).map(|(y, p)| y * (y / p).ln()).sum();
            assert!(divergence > fit.divergence, "{seed}");
        }
        assert!(fitter.fit(7).divergence > fit.divergence);
    }

    #[test]
    fn eigenvalues_are_bounded() {
        // [[1, ½], [½, 1]] has the eigenvalues ½ and 3/2.
        assert!(all_under(&[1.0, 0.5], 1.5 + 1e-12) && !all_under(&[1.0, 0.5], 1.5 - 1e-12));
        assert!((excess(&[1.0, 0.5]) - 1.0).abs() < 1e-12);
        assert_eq!(excess(&[1.0, 3.0]), f64::INFINITY);
    }
}
