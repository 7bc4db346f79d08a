//! Smoothness of a categorical distribution over ordered bins (Fourier head, eq. 3.1, 3.2).
//!
//! `s(y) = Σ_{σ=1}^{100} 6/(π²σ²) · ‖y − g_σ ∗ y‖`: the distance to the distribution's own
//! blurred copies, for blurs of 1 to 100 bins. Lower is smoother, and the uniform distribution has
//! smoothness 0. Only values for the same number of bins can be compared, because the same shape
//! has smaller values with more bins.
//!
//! The paper leaves some details open. They follow the released code:
//! - the sum ends at σ = 100 and the weights are not renormalized: they sum to 0.99395;
//! - `g_σ` is the Gaussian `exp(−x²/2σ²)` sampled at `x = −(m−1) ..= m−1` and divided by its
//!   sum, for `m` bins;
//! - bins lie on a ring: bin 0 and bin `m−1` are neighbours, and the kernel's tails wrap around it;
//! - the norm is L²; the paper compares it with L¹;
//! - over many distributions: the mean and the sample standard deviation are computed over all of
//!   them pooled, not over means of seeds or episodes.
//!
//! All computations use `f64`. The released code uses the type of its input.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

use crate::fourier_transform::{Complex, FourierTransform};

/// The widest blur, in bins.
pub const MAX_SIGMA: usize = 100;

/// `6/(π²σ²)`. The infinite sum over σ is 1.
pub fn weight(sigma: usize) -> f64 {
    6.0 / (PI * PI * (sigma * sigma) as f64)
}

/// The metric for distributions over `m` bins, with precomputed factors.
///
/// A blur on the ring is a circulant matrix, so it is diagonal in Fourier space. The factor
/// `1 − ĝ_σ(k)` that `y − g_σ ∗ y` applies to frequency `k` is stored for each σ. By Parseval's
/// theorem the L² norm is then a sum over frequencies.
#[derive(Clone, Debug)]
pub struct Smoothness {
    transform: FourierTransform,
    /// `1 − ĝ_σ(k)` for each σ and `k = 0 ..= m/2`. The kernel is symmetric, so the factors are real
    /// and equal for `k` and `m − k`.
    removed: Vec<Vec<f64>>,
}

impl Smoothness {
    /// The metric for distributions over `m` bins.
    ///
    /// # Panics
    /// When `m` is 0.
    pub fn new(m: usize) -> Self {
        assert!(m > 0, "a distribution has at least one bin");
        let transform = FourierTransform::new(m);
        let removed = (1..=MAX_SIGMA)
            .map(|sigma| {
                let spectrum = transform.real(&kernel_on_ring(m, sigma));
                spectrum[..=m / 2].iter().map(|[re, _]| 1.0 - re).collect()
            })
            .collect();
        Self { transform, removed }
    }

    /// The number of bins.
    pub fn m(&self) -> usize {
        self.transform.n()
    }

    /// `s(y)` with the L² norm: the metric of the paper.
    ///
    /// ```
    /// use overtone_eval::Smoothness;
    /// let metric = Smoothness::new(4);
    /// assert!(metric.l2(&[0.25; 4]) < 1e-15);
    /// assert!(metric.l2(&[1.0, 0.0, 0.0, 0.0]) > metric.l2(&[0.4, 0.3, 0.2, 0.1]));
    /// ```
    ///
    /// # Panics
    /// When `pmf` does not have `m` bins.
    pub fn l2(&self, pmf: &[f64]) -> f64 {
        self.total(|sigma, spectrum| self.l2_of(sigma, spectrum), pmf)
    }

    /// `s(y)` with the L¹ norm.
    ///
    /// # Panics
    /// When `pmf` does not have `m` bins.
    pub fn l1(&self, pmf: &[f64]) -> f64 {
        self.total(|sigma, spectrum| self.l1_of(sigma, spectrum), pmf)
    }

    /// `‖y − g_σ ∗ y‖₂` for one σ, without its weight.
    ///
    /// # Panics
    /// When `pmf` does not have `m` bins, or `sigma` is not in `1 ..= 100`.
    pub fn l2_at(&self, sigma: usize, pmf: &[f64]) -> f64 {
        self.l2_of(sigma, &self.transform.real(pmf))
    }

    fn total(&self, norm: impl Fn(usize, &[Complex]) -> f64, pmf: &[f64]) -> f64 {
        let spectrum = self.transform.real(pmf);
        (1..=MAX_SIGMA).map(|sigma| weight(sigma) * norm(sigma, &spectrum)).sum()
    }

    fn l2_of(&self, sigma: usize, spectrum: &[Complex]) -> f64 {
        let m = self.m();
        let squares: f64 = self.removed[sigma - 1]
            .iter()
            .zip(spectrum)
            .enumerate()
            .map(|(k, (removed, [re, im]))| {
                // Frequencies k and m − k have equal magnitudes.
                let copies = if k == 0 || 2 * k == m { 1.0 } else { 2.0 };
                copies * removed * removed * (re * re + im * im)
            })
            .sum();
        (squares / m as f64).sqrt()
    }

    fn l1_of(&self, sigma: usize, spectrum: &[Complex]) -> f64 {
        let (m, removed) = (self.m(), &self.removed[sigma - 1]);
        let left: Vec<Complex> = spectrum
            .iter()
            .enumerate()
            .map(|(k, [re, im])| {
                let removed = removed[k.min(m - k)];
                [removed * re, removed * im]
            })
            .collect();
        self.transform.inverse_real(&left).into_iter().map(f64::abs).sum()
    }
}

/// The sampled Gaussian of radius `m − 1`, folded onto a ring of `m` bins; sums to 1.
fn kernel_on_ring(m: usize, sigma: usize) -> Vec<f64> {
    let mut ring = vec![0.0; m];
    for x in 1 - m as i64..m as i64 {
        let at = x as f64 / sigma as f64;
        ring[x.rem_euclid(m as i64) as usize] += (-0.5 * at * at).exp();
    }
    let sum: f64 = ring.iter().sum();
    ring.iter_mut().for_each(|weight| *weight /= sum);
    ring
}

/// Spectral entropy in bits (Inouye et al. 1991; Fourier head, eq. B.2): the Shannon entropy
/// of the power spectrum `S_k`, divided by its sum, over the frequencies `k = 0 ..= m/2`.
///
/// Frequency 0 is included, and for a distribution it is by far the strongest. Including it
/// reproduces Table 4 of the paper, with one difference: that table uses the natural logarithm,
/// although the paper writes `log₂`. Multiply by `ln 2` to compare with it.
///
/// ```
/// use overtone_eval::smoothness::spectral_entropy;
/// assert!(spectral_entropy(&[0.25; 4]).abs() < 1e-12); // frequency 0 alone
/// // The frequencies 0, 1 and 2 have equal power: log₂ 3.
/// assert!((spectral_entropy(&[1.0, 0.0, 0.0, 0.0]) - 3f64.log2()).abs() < 1e-12);
/// ```
pub fn spectral_entropy(signal: &[f64]) -> f64 {
    let spectrum = FourierTransform::new(signal.len()).real(signal);
    let half = signal.len() / 2;
    let power: Vec<f64> =
        spectrum.iter().take(half + 1).map(|[re, im]| re * re + im * im).collect();
    let total: f64 = power.iter().sum();
    let shares = power.iter().map(|power| power / total).filter(|&share| share > 0.0);
    shares.map(|share| share * share.recip().log2()).sum()
}

/// Running mean and sample standard deviation of many numbers.
///
/// Joining the parts of a list gives the same result as the whole list, up to rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pooled {
    /// Count of the numbers.
    pub n: u64,
    /// Their mean; 0 if there are none.
    pub mean: f64,
    /// Sum of the squared deviations from the mean.
    pub squares: f64,
}

impl Pooled {
    /// Sample standard deviation (`ddof` 1); `None` for fewer than two numbers.
    pub fn sd(&self) -> Option<f64> {
        (self.n > 1).then(|| (self.squares / (self.n - 1) as f64).sqrt())
    }

    /// Adds one number.
    pub fn add(&mut self, value: f64) {
        self.join(&Self { n: 1, mean: value, squares: 0.0 });
    }

    /// Adds the numbers of another list (Chan, Golub and LeVeque 1979).
    pub fn join(&mut self, other: &Self) {
        if other.n == 0 {
            return;
        }
        let n = self.n + other.n;
        let apart = other.mean - self.mean;
        let share = other.n as f64 / n as f64;
        self.squares += other.squares + apart * apart * self.n as f64 * share;
        self.mean += apart * share;
        self.n = n;
    }
}

impl FromIterator<f64> for Pooled {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut pooled = Self::default();
        values.into_iter().for_each(|value| pooled.add(value));
        pooled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some irregular distribution.
    fn pmf(m: usize) -> Vec<f64> {
        let raw: Vec<f64> = (0..m).map(|j| ((j * j + 7) as f64).sin().abs()).collect();
        let sum: f64 = raw.iter().sum();
        raw.iter().map(|x| x / sum).collect()
    }

    /// `y − g_σ ∗ y` by its definition, tap by tap.
    fn left_by_blur(pmf: &[f64], sigma: f64) -> Vec<f64> {
        let m = pmf.len() as i64;
        let tap = |x: i64| (-(x * x) as f64 / (2.0 * sigma * sigma)).exp();
        let sum: f64 = (1 - m..m).map(tap).sum();
        let at = |j: i64| pmf[j.rem_euclid(m) as usize];
        let blurred = |j: i64| (1 - m..m).map(|x| tap(x) / sum * at(j - x)).sum::<f64>();
        (0..m).map(|j| at(j) - blurred(j)).collect()
    }

    #[test]
    fn the_norms_equal_their_definition() {
        for m in [1, 2, 5, 18, 32] {
            let (metric, pmf) = (Smoothness::new(m), pmf(m));
            let (mut l2, mut l1) = (0.0, 0.0);
            for sigma in 1..=MAX_SIGMA {
                let left = left_by_blur(&pmf, sigma as f64);
                let norm = left.iter().map(|x| x * x).sum::<f64>().sqrt();
                assert!((metric.l2_at(sigma, &pmf) - norm).abs() < 1e-14, "m={m}, σ={sigma}");
                l2 += weight(sigma) * norm;
                l1 += weight(sigma) * left.iter().map(|x| x.abs()).sum::<f64>();
            }
            assert!((metric.l2(&pmf) - l2).abs() < 1e-14, "m={m}");
            assert!((metric.l1(&pmf) - l1).abs() < 1e-14, "m={m}");
        }
    }

    #[test]
    fn rotation_and_reflection_change_nothing_and_scaling_scales() {
        let (metric, mut pmf) = (Smoothness::new(18), pmf(18));
        let (l2, l1) = (metric.l2(&pmf), metric.l1(&pmf));
        let check = |pmf: &[f64], factor: f64| {
            assert!((metric.l2(pmf) - factor * l2).abs() < 1e-14);
            assert!((metric.l1(pmf) - factor * l1).abs() < 1e-14);
        };
        pmf.rotate_left(5);
        check(&pmf, 1.0);
        pmf.reverse();
        check(&pmf, 1.0);
        pmf.iter_mut().for_each(|x| *x *= 3.0);
        check(&pmf, 3.0);
    }

    #[test]
    fn one_hot_has_the_published_values() {
        for (m, expected) in [(18, 0.7764), (50, 0.7756)] {
            let mut pmf = vec![0.0; m];
            pmf[m / 3] = 1.0;
            assert!((Smoothness::new(m).l2(&pmf) - expected).abs() < 5e-5);
        }
        let weights: f64 = (1..=MAX_SIGMA).map(weight).sum();
        assert!((weights - 0.993951).abs() < 5e-7);
    }

    #[test]
    fn pooling_parts_equals_pooling_the_whole() {
        // Deviations from 4: -2, -1, 0, 3; squares sum to 14.
        let values = [2.0, 3.0, 4.0, 7.0];
        let whole: Pooled = values.into_iter().collect();
        assert_eq!((whole.n, whole.mean), (4, 4.0));
        assert!((whole.squares - 14.0).abs() < 1e-12);
        for cut in 0..=values.len() {
            let mut joined: Pooled = values[..cut].iter().copied().collect();
            joined.join(&values[cut..].iter().copied().collect());
            assert_eq!(joined.n, 4);
            assert!((joined.mean - 4.0).abs() < 1e-12 && (joined.squares - 14.0).abs() < 1e-12);
        }
        assert_eq!(Pooled::from_iter([5.0]).sd(), None);
        assert_eq!(Pooled::default().sd(), None);
        assert!((whole.sd().unwrap() - (14f64 / 3.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn spectral_entropy_of_two_frequencies() {
        // 1 + cos at frequency 1 of 8 has powers 64 and 16, or 4/5 and 1/5 of the total.
        let signal: Vec<f64> = (0..8).map(|j| 1.0 + (PI * f64::from(j) / 4.0).cos()).collect();
        let expected = -(0.8 * 0.8f64.log2() + 0.2 * 0.2f64.log2());
        assert!((spectral_entropy(&signal) - expected).abs() < 1e-12);
    }
}
