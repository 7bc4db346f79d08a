//! The three toy datasets (Fourier head, Appendix C.2): triples `(x, y, z)` of which the
//! distribution of `z` given `x` and `y` is known.
//!
//! As in the released code, and unlike the paper's formula, the true distribution of a test
//! row is that of its `x` and `y` *before* they are put into bins.

use std::fmt;
use std::str::FromStr;

use super::random::{Beta, Pcg64, Ziggurats, permutation};

/// Rows of a dataset.
pub const ROWS: usize = 5000;
/// Rows of its test set: the first 20 % of the permutation.
pub const TEST_ROWS: usize = 1000;
/// Equal bins on [-1, 1].
pub const BINS: usize = 50;
/// `x` is uniform on [-0.8, 0.8].
const REACH: f64 = 0.8;
/// σ of every normal distribution: σ² = 0.01.
const SIGMA: f64 = 0.1;
/// What `|x|` and `|y|` are multiplied by to be the beta distribution's shapes.
const SHAPE: f64 = 100.0;
/// scikit-learn's `random_state` of the split, the same for every dataset.
const SPLIT_SEED: u32 = 42;

/// How `y` and `z` are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dataset {
    /// `y ~ N(x, σ²)`, `z ~ N(y, σ²)`.
    Gaussian,
    /// `y` as `x`; `z` from `N(x, σ²)` or `N(y, σ²)`, alike likely.
    Gmm2,
    /// `y ~ N(x, σ²)`; `z` is `±Beta(100|x|, 100|y|)`, both signs alike likely.
    Beta,
}

impl Dataset {
    /// All of them, in the paper's order.
    pub const ALL: [Self; 3] = [Self::Gaussian, Self::Gmm2, Self::Beta];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gaussian => "gaussian",
            Self::Gmm2 => "gmm2",
            Self::Beta => "beta",
        }
    }

    /// Gaussians of a mixture head for it, as in the released code.
    pub fn components(self) -> usize {
        match self {
            Self::Gaussian => 1,
            Self::Gmm2 | Self::Beta => 2,
        }
    }

    /// The dataset of a seed: the reference's numbers.
    pub fn draw(self, seed: u64) -> Samples {
        let (mut generator, ziggurats) = (Pcg64::new(seed), Ziggurats::default());
        let generator = &mut generator;
        let uniform = |generator: &mut Pcg64| -REACH + 2.0 * REACH * generator.uniform();
        let normal = |mean: f64, generator: &mut Pcg64| mean + SIGMA * ziggurats.normal(generator);
        // Column by column, except that what belongs to one z is drawn together.
        let x: Vec<f64> = (0..ROWS).map(|_| uniform(generator)).collect();
        let y: Vec<f64> = match self {
            Self::Gmm2 => (0..ROWS).map(|_| uniform(generator)).collect(),
            Self::Gaussian | Self::Beta => x.iter().map(|&x| normal(x, generator)).collect(),
        };
        let pairs = x.iter().copied().zip(y.iter().copied());
        let z: Vec<f64> = match self {
            Self::Gaussian => y.iter().map(|&y| normal(y, generator)).collect(),
            Self::Gmm2 => pairs
                .map(|(x, y)| {
                    let mean = if generator.uniform() < 0.5 { x } else { y };
                    normal(mean, generator)
                })
                .collect(),
            Self::Beta => {
                let signs = generator.signs(ROWS);
                let beta = Beta::default();
                let draw = |((x, y), sign): ((f64, f64), f64)| {
                    sign * beta.draw(SHAPE * x.abs(), SHAPE * y.abs(), generator)
                };
                pairs.zip(signs).map(draw).collect()
            }
        };
        let rows = x.into_iter().zip(y).zip(z).map(|((x, y), z)| [x, y, z]).collect();
        Samples { dataset: self, rows }
    }

    /// The distribution of `z` given `x` and `y`, read at the centres of `m` equal bins on
    /// [-1, 1] and divided by the sum.
    pub fn truth(self, [x, y]: [f64; 2], m: usize) -> Vec<f64> {
        let logs = |z: f64| -> [f64; 2] {
            let bell = |mean: f64| -0.5 * ((z - mean) / SIGMA).powi(2);
            match self {
                Self::Gaussian => [bell(y), f64::NEG_INFINITY],
                Self::Gmm2 => [bell(x), bell(y)],
                Self::Beta => {
                    let (a, b) = (SHAPE * x.abs(), SHAPE * y.abs());
                    let size = z.abs();
                    [(a - 1.0) * size.ln() + (b - 1.0) * (-size).ln_1p(), f64::NEG_INFINITY]
                }
            }
        };
        let logs: Vec<[f64; 2]> = (0..m).map(|bin| logs(bin_centre(bin, m))).collect();
        // Far from the bins every density would underflow.
        let largest = logs.iter().flatten().fold(f64::NEG_INFINITY, |most, log| most.max(*log));
        let weights: Vec<f64> =
            logs.iter().map(|logs| logs.iter().map(|log| (log - largest).exp()).sum()).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / sum).collect()
    }
}

impl fmt::Display for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Not the name of a dataset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no toy dataset; there are gaussian, gmm2 and beta")]
pub struct UnknownDataset(String);

impl FromStr for Dataset {
    type Err = UnknownDataset;

    fn from_str(name: &str) -> Result<Self, UnknownDataset> {
        let named = Self::ALL.into_iter().find(|dataset| dataset.name() == name);
        named.ok_or_else(|| UnknownDataset(name.to_owned()))
    }
}

/// The rows of one dataset.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// What they were drawn from.
    pub dataset: Dataset,
    /// `[x, y, z]`.
    pub rows: Vec<[f64; 3]>,
}

impl Samples {
    /// The bins of a row's `x`, `y` and `z`.
    pub fn bins(&self, row: usize) -> [usize; 3] {
        self.rows[row].map(|value| bin_holding(value, BINS))
    }
}

/// Rows of the test set and of the training set, in this order; the same for every dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// 1,000 rows.
    pub test: Vec<usize>,
    /// 4,000 rows.
    pub train: Vec<usize>,
}

impl Default for Split {
    fn default() -> Self {
        let mut test = permutation(SPLIT_SEED, ROWS as u32);
        let train = test.split_off(TEST_ROWS);
        Self { test, train }
    }
}

/// The centre of a bin, `-1 + (2 bin + 1)/m`.
pub fn bin_centre(bin: usize, m: usize) -> f64 {
    -1.0 + (2 * bin + 1) as f64 / m as f64
}

/// The bin of `value` among `m` equal ones on [-1, 1], its lower edge included. Values outside
/// belong to the first and last bin.
pub fn bin_holding(value: f64, m: usize) -> usize {
    let edge = |j: usize| -1.0 + j as f64 * (2.0 / m as f64);
    let mut bin = (((value + 1.0) * 0.5 * m as f64).max(0.0) as usize).min(m - 1);
    // The product may round across an edge.
    if bin + 1 < m && value >= edge(bin + 1) {
        bin += 1;
    } else if bin > 0 && value < edge(bin) {
        bin -= 1;
    }
    bin
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_their_lower_edge_and_the_ends_hold_what_lies_outside() {
        // Four bins with edges -1, -0.5, 0, 0.5, 1.
        let got = [-7.0, -1.0, -0.51, -0.5, 0.0, 0.49, 0.5, 1.0, 3.0].map(|x| bin_holding(x, 4));
        assert_eq!(got, [0, 0, 0, 1, 2, 2, 3, 3, 3]);
    }

    #[test]
    fn every_edge_begins_its_bin() {
        for m in [1, 7, 18, 50, 4096] {
            for bin in 0..m {
                let edge = -1.0 + bin as f64 * (2.0 / m as f64);
                assert_eq!(bin_holding(edge, m), bin, "m {m}");
                assert_eq!(bin_holding(edge + 0.999 / m as f64, m), bin, "m {m}");
            }
        }
    }

    #[test]
    fn truths_are_what_the_rows_are_drawn_from() {
        // Normal: the mean of the true distribution is y, far from the ends.
        let mean = |pmf: &[f64]| -> f64 {
            pmf.iter().enumerate().map(|(bin, p)| p * bin_centre(bin, pmf.len())).sum()
        };
        let truth = Dataset::Gaussian.truth([0.7, 0.123], 1000);
        assert!((mean(&truth) - 0.123).abs() < 1e-6);
        let truth = Dataset::Gmm2.truth([0.5, -0.3], 1000);
        assert!((mean(&truth) - 0.1).abs() < 1e-6);
        // Beta: symmetric; on the positive half the mean is 30/(30 + 10).
        let truth = Dataset::Beta.truth([-0.3, 0.1], 1000);
        assert!(mean(&truth).abs() < 1e-12);
        let half: Vec<f64> = truth[500..].iter().map(|p| 2.0 * p).collect();
        let mean_of_half: f64 =
            half.iter().enumerate().map(|(i, p)| p * (2 * i + 1) as f64 / 1000.0).sum();
        assert!((mean_of_half - 0.75).abs() < 1e-4, "{mean_of_half}");
        for dataset in Dataset::ALL {
            for at in [[0.79, 1.3], [0.001, -0.004], [-0.8, -0.8]] {
                let truth = dataset.truth(at, 50);
                assert!((truth.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                assert!(truth.iter().all(|p| p.is_finite() && *p >= 0.0));
            }
        }
    }

    #[test]
    fn rows_follow_their_truth() {
        // Share of rows of the training set that fall into bins below the median.
        let split = Split::default();
        for dataset in Dataset::ALL {
            let samples = dataset.draw(3);
            let expected: f64 = split
                .train
                .iter()
                .map(|&row| {
                    let [x, y, _] = samples.rows[row];
                    dataset.truth([x, y], BINS)[..30].iter().sum::<f64>()
                })
                .sum();
            let seen = split.train.iter().filter(|&&row| samples.bins(row)[2] < 30).count();
            // Five standard deviations of 4,000 coins.
            let off = (seen as f64 - expected).abs();
            assert!(off < 5.0 * 0.5 * 4000f64.sqrt(), "{dataset}: {seen} against {expected}");
        }
    }

    #[test]
    fn the_split_parts_all_rows() {
        let Split { mut test, mut train } = Split::default();
        assert_eq!((test.len(), train.len()), (1000, 4000));
        test.append(&mut train);
        test.sort_unstable();
        assert!(test.into_iter().eq(0..ROWS));
    }

    #[test]
    fn names_are_read_back() {
        for dataset in Dataset::ALL {
            assert_eq!(dataset.to_string().parse(), Ok(dataset));
        }
        let error = "gauss".parse::<Dataset>().unwrap_err().to_string();
        assert!(error.contains("gauss") && error.contains("gmm2"), "{error}");
    }
}
