//! The three toy datasets (Fourier head, Appendix C.2): triples `(x, y, z)` of which the
//! distribution of `z` given `x` and `y` is known.
//!
//! The rows are those that the released code draws; `datasets/lab/toy.safetensors` holds them. As
//! in that code, and unlike the paper's formula, the true distribution of a test row is that of
//! its `x` and `y` *before* they are put into bins.

use std::fmt;
use std::path::Path;

use safetensors::SafeTensors;

use crate::data_file::{DataFileError, read_bytes};

/// Equal bins on [-1, 1].
pub const BINS: usize = 50;
/// σ of every normal distribution: σ² = 0.01.
const SIGMA: f64 = 0.1;
/// What `|x|` and `|y|` are multiplied by to be the beta distribution's shapes.
const SHAPE: f64 = 100.0;

/// How `y` and `z` are drawn; `x` is uniform on [-0.8, 0.8].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Dataset {
    /// `y ~ N(x, σ²)`, `z ~ N(y, σ²)`.
    Gaussian,
    /// `y` as `x`; `z` from `N(x, σ²)` or `N(y, σ²)`, equally likely.
    Gmm2,
    /// `y ~ N(x, σ²)`; `z` is `±Beta(100|x|, 100|y|)`, both signs equally likely.
    Beta,
}

impl Dataset {
    /// Gaussians of a mixture head for it, as in the released code.
    pub fn components(self) -> usize {
        if self == Self::Gaussian { 1 } else { 2 }
    }

    /// The distribution of `z` given `x` and `y`, read at the centres of `m` equal bins on
    /// [-1, 1] and divided by the sum.
    pub fn truth(self, [x, y]: [f64; 2], m: usize) -> Vec<f64> {
        let bell = |z: f64, mean: f64| -0.5 * ((z - mean) / SIGMA).powi(2);
        let logs = |z: f64| match self {
            Self::Gaussian => [bell(z, y), f64::NEG_INFINITY],
            Self::Gmm2 => [bell(z, x), bell(z, y)],
            Self::Beta => {
                let (a, b) = (SHAPE * x.abs(), SHAPE * y.abs());
                let size = z.abs();
                [(a - 1.0) * size.ln() + (b - 1.0) * (-size).ln_1p(), f64::NEG_INFINITY]
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
        f.write_str(match self {
            Self::Gaussian => "gaussian",
            Self::Gmm2 => "gmm2",
            Self::Beta => "beta",
        })
    }
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// `[x, y, z]`
    pub values: [f32; 3],
    /// Their bins.
    pub bins: [u8; 3],
}

impl Row {
    /// Its `x` and `y`.
    pub fn at(&self) -> [f64; 2] {
        [self.values[0].into(), self.values[1].into()]
    }
}

/// One draw of a dataset.
#[derive(Clone, Debug, PartialEq)]
pub struct Draw {
    /// The dataset.
    pub dataset: Dataset,
    /// The seed of the released code.
    pub seed: u64,
    /// 4,000 rows.
    pub train: Vec<Row>,
    /// 1,000 rows.
    pub test: Vec<Row>,
}

impl Draw {
    /// Reads draws from the file, for each of `datasets` those of all `seeds`.
    ///
    /// # Errors
    /// When the file cannot be read, or has no such draw.
    pub fn read(
        path: &Path,
        datasets: &[Dataset],
        seeds: &[u64],
    ) -> Result<Vec<Self>, DataFileError> {
        let refused = |reason: String| DataFileError::Content { path: path.to_owned(), reason };
        let bytes = read_bytes(path)?;
        let file = SafeTensors::deserialize(&bytes).map_err(|error| refused(error.to_string()))?;
        let data = |name: String| match file.tensor(&name) {
            Ok(tensor) => Ok(tensor.data()),
            Err(_) => Err(refused(format!("it has no `{name}`"))),
        };
        let indices = |name: &str| -> Result<Vec<usize>, DataFileError> {
            let numbers = data(name.to_owned())?.as_chunks().0.iter();
            Ok(numbers.map(|&bytes| u16::from_le_bytes(bytes).into()).collect())
        };
        let (test, train) = (indices("test_idx")?, indices("train_idx")?);
        let mut draws = Vec::new();
        for &dataset in datasets {
            for &seed in seeds {
                let values: Vec<f32> = data(format!("{dataset}_seed{seed}_xyz"))?
                    .as_chunks()
                    .0
                    .iter()
                    .map(|&bytes| f32::from_le_bytes(bytes))
                    .collect();
                let bins = data(format!("{dataset}_seed{seed}_bins"))?.as_chunks::<3>().0;
                let rows: Vec<Row> = values
                    .as_chunks::<3>()
                    .0
                    .iter()
                    .zip(bins)
                    .map(|(&values, &bins)| Row { values, bins })
                    .collect();
                let part = |indices: &[usize]| indices.iter().map(|&row| rows[row]).collect();
                draws.push(Self { dataset, seed, train: part(&train), test: part(&test) });
            }
        }
        Ok(draws)
    }

    /// The first test row whose `x` is neither near 0 nor near an end, and for the mixture is far
    /// from `y`: one where two modes can be told apart.
    pub fn example(&self) -> usize {
        let shows = |row: &Row| {
            let [x, y] = row.at();
            let apart = self.dataset != Dataset::Gmm2 || (x - y).abs() > 0.4;
            (0.2..0.6).contains(&x.abs()) && apart
        };
        self.test.iter().position(shows).unwrap_or(0)
    }
}

/// The centre of a bin, `-1 + (2 bin + 1)/m`.
pub fn bin_centre(bin: usize, m: usize) -> f64 {
    -1.0 + (2 * bin + 1) as f64 / m as f64
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::data_file::shipped;

    fn draws(seeds: &[u64]) -> Result<Vec<Draw>, DataFileError> {
        let datasets = [Dataset::Gaussian, Dataset::Gmm2, Dataset::Beta];
        Draw::read(&shipped("lab/toy.safetensors"), &datasets, seeds)
    }

    #[test]
    fn truths_have_the_means_of_their_distributions() {
        let mean = |pmf: &[f64]| -> f64 {
            pmf.iter().enumerate().map(|(bin, p)| p * bin_centre(bin, pmf.len())).sum()
        };
        assert!((mean(&Dataset::Gaussian.truth([0.7, 0.123], 1000)) - 0.123).abs() < 1e-6);
        assert!((mean(&Dataset::Gmm2.truth([0.5, -0.3], 1000)) - 0.1).abs() < 1e-6);
        // Symmetric; on the positive half the mean is 30/(30 + 10).
        let truth = Dataset::Beta.truth([-0.3, 0.1], 1000);
        assert!(mean(&truth).abs() < 1e-12);
        let half: f64 = (500..1000).map(|bin| 2.0 * truth[bin] * bin_centre(bin, 1000)).sum();
        assert!((half - 0.75).abs() < 1e-4, "{half}");
    }

    #[test]
    fn rows_follow_their_truth() {
        for draw in draws(&[3]).unwrap() {
            assert_eq!((draw.train.len(), draw.test.len()), (4000, 1000));
            // Rows of the training set in bins below 30.
            let below = |row: &Row| draw.dataset.truth(row.at(), BINS)[..30].iter().sum::<f64>();
            let expected: f64 = draw.train.iter().map(below).sum();
            let seen = draw.train.iter().filter(|row| row.bins[2] < 30).count() as f64;
            // Five standard deviations of 4,000 coins.
            assert!((seen - expected).abs() < 5.0 * 0.5 * 4000f64.sqrt(), "{}", draw.dataset);
        }
    }

    #[test]
    fn other_draws_are_refused() {
        let error = draws(&[5]).unwrap_err().to_string();
        assert!(error.contains("gaussian_seed5_xyz"), "{error}");
    }
}
