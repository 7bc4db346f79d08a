//! Bins: how a range of real values is cut into the categories of a head on bins.
//!
//! Two strategies (Gillman et al. 2025, Section 2.3, "Binning strategy"):
//!
//! - [`Precision::Uniform`]: bins of one width.
//! - [`Precision::Mixed`]: where most values are, the *dense* interval, bins are narrower than
//!   in the rest of the range. Of m bins, `⌊d·m⌋` are for the sparse part and the others for
//!   the dense interval, which [`Precision::fit`] estimates from training data.
//!
//! **A head never sees these edges.** The Fourier head's density lives on a latent [-1, 1]
//! that is cut into m bins of one width, and bin j is read at `-1 + (2j + 1)/m` by its
//! *position*, whatever values it holds. So a value's place in the latent domain is the map
//! [`Binning::bin_of`], piecewise linear and steeper in the dense interval: a distribution
//! inside that interval is spread over more of [-1, 1], and its Fourier coefficients fall off
//! faster. That is what mixed precision is for, and why the same forecast lies elsewhere on
//! the latent axis with uniform and with mixed bins (the caption of the paper's Figure 17).
//! A density over values is the probability of a bin divided by [`Binning::width`].
//!
//! Differs from the released code (`MeanScaleMixedUniformBins`; -15 to 15, 4096 bins, d = 0.2,
//! dense from -1 to 10):
//! - There the first two positions of the latent domain belong to the tokens for padding and
//!   for the end of a text; here every bin holds values.
//! - There each sparse side's count is cut off on its own, so one bin may change sides; here
//!   the sparse bins are exactly `⌊d·m⌋`, shared by the lengths of the two sides.
//! - There reading a bin back gives a value two bins higher than was put in inside the dense
//!   interval and about four above it (found by repeating its arithmetic); here a value comes
//!   back at most half a bin away.

use overtone_model::{ModelError, error::config_error};

/// How wide the bins of a range are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Precision {
    /// All the same.
    Uniform,
    /// Narrower in one interval.
    Mixed {
        /// d in [0, 1): the share of bins outside the dense interval. With no bin there
        /// (`⌊d·m⌋ = 0`) the bins cover the dense interval alone.
        sparse: f64,
        /// The dense interval, within the range.
        dense: [f64; 2],
    },
}

impl Precision {
    /// Mixed precision whose dense interval lies between two quantiles of `values`, cut to
    /// `range`.
    ///
    /// # Errors
    /// When a value is not finite, the range is empty, the quantiles do not rise within [0, 1],
    /// or there is no interval between them.
    pub fn fit(
        sparse: f64,
        quantiles: [f64; 2],
        range: [f64; 2],
        values: &[f64],
    ) -> Result<Self, ModelError> {
        if !(0.0 <= quantiles[0] && quantiles[0] < quantiles[1] && quantiles[1] <= 1.0) {
            let got = format!("{quantiles:?}");
            return Err(config_error("binning.quantiles", got, "must rise within [0, 1]"));
        }
        check_range(range)?;
        let mut sorted = values.to_vec();
        if sorted.is_empty() || !sorted.iter().all(|value| value.is_finite()) {
            let got = format!("{} values", sorted.len());
            return Err(config_error("binning.values", got, "must be finite, and at least one"));
        }
        sorted.sort_by(f64::total_cmp);
        let dense = quantiles.map(|q| quantile(&sorted, q).clamp(range[0], range[1]));
        check_dense(dense, range)?;
        Ok(Self::Mixed { sparse, dense })
    }
}

/// How a range is cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BinningConfig {
    /// m.
    pub bins: usize,
    /// Lowest and highest value with a bin of its own.
    pub range: [f64; 2],
    /// How wide the bins are.
    pub precision: Precision,
}

/// A range cut into bins.
#[derive(Clone, Debug, PartialEq)]
pub struct Binning {
    config: BinningConfig,
    /// m + 1 of them, rising.
    edges: Vec<f64>,
}

impl Binning {
    /// # Errors
    /// When there is no bin, the range or the dense interval is empty or not finite, the dense
    /// interval leaves the range, the sparse share leaves [0, 1), or a part of the range would
    /// be left without a bin.
    pub fn new(config: BinningConfig) -> Result<Self, ModelError> {
        let BinningConfig { bins, range, precision } = config;
        if bins == 0 {
            return Err(config_error("binning.bins", 0, "must be at least 1"));
        }
        check_range(range)?;
        let parts = match precision {
            Precision::Uniform => vec![(range, bins)],
            Precision::Mixed { sparse, dense } => mixed_parts(bins, range, sparse, dense)?,
        };
        let mut edges = vec![parts[0].0[0]];
        for ([low, high], n) in parts {
            edges.extend((1..n).map(|i| low + (high - low) * i as f64 / n as f64));
            edges.push(high);
        }
        if !edges.is_sorted_by(|a, b| a < b) {
            return Err(config_error("binning.bins", bins, "too many for so short a range"));
        }
        Ok(Self { config, edges })
    }

    /// m.
    pub fn n_bins(&self) -> usize {
        self.config.bins
    }

    /// What it was made from.
    pub fn config(&self) -> &BinningConfig {
        &self.config
    }

    /// The m + 1 edges, rising.
    pub fn edges(&self) -> &[f64] {
        &self.edges
    }

    /// The middle of a bin: the value it is read back as.
    ///
    /// # Panics
    /// When there is no such bin.
    pub fn centre(&self, bin: usize) -> f64 {
        0.5 * (self.edges[bin] + self.edges[bin + 1])
    }

    /// The middles of all bins, rising.
    pub fn centres(&self) -> Vec<f64> {
        (0..self.n_bins()).map(|bin| self.centre(bin)).collect()
    }

    /// A bin's width, in units of values.
    ///
    /// # Panics
    /// When there is no such bin.
    pub fn width(&self, bin: usize) -> f64 {
        self.edges[bin + 1] - self.edges[bin]
    }

    /// The bin of a value, which begins at its lower edge; beyond the edges the nearest one.
    /// What is not a number is in the first.
    pub fn bin_of(&self, value: f64) -> usize {
        self.edges[1..self.n_bins()].partition_point(|&edge| edge <= value)
    }
}

/// The quantile `q` in [0, 1] of values in rising order, linear between neighbours.
///
/// ```
/// use overtone_lab::forecast::binning::quantile;
/// assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.25), 1.5);
/// ```
///
/// # Panics
/// When there is no value.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = q * (sorted.len() - 1) as f64;
    let below = (place.floor() as usize).min(sorted.len() - 1);
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

fn rises([low, high]: [f64; 2]) -> bool {
    low.is_finite() && high.is_finite() && low < high
}

fn check_range(range: [f64; 2]) -> Result<(), ModelError> {
    if rises(range) {
        return Ok(());
    }
    let got = format!("{range:?}");
    Err(config_error("binning.range", got, "must be two rising finite numbers"))
}

fn check_dense(dense: [f64; 2], range: [f64; 2]) -> Result<(), ModelError> {
    if rises(dense) && range[0] <= dense[0] && dense[1] <= range[1] {
        return Ok(());
    }
    let got = format!("{dense:?}");
    Err(config_error("binning.dense", got, "must be an interval within the range"))
}

/// The intervals of a range with mixed precision from left to right, and the bins of each.
fn mixed_parts(
    bins: usize,
    range: [f64; 2],
    sparse: f64,
    dense: [f64; 2],
) -> Result<Vec<([f64; 2], usize)>, ModelError> {
    if !(0.0..1.0).contains(&sparse) {
        return Err(config_error("binning.sparse", sparse, "must lie in [0, 1)"));
    }
    check_dense(dense, range)?;
    let n_sparse = (sparse * bins as f64).floor() as usize;
    let sides = [[range[0], dense[0]], [dense[1], range[1]]];
    let [below, above] = sides.map(|[low, high]| high - low);
    if n_sparse == 0 {
        return Ok(vec![(dense, bins)]);
    }
    if below + above == 0.0 {
        let expected = "must be below 1/bins when the dense interval is the whole range";
        return Err(config_error("binning.sparse", sparse, expected));
    }
    let n_below = match (below > 0.0, above > 0.0) {
        (true, true) if n_sparse < 2 => {
            let expected = "must give a bin to each side of the dense interval, or none to both";
            return Err(config_error("binning.sparse", sparse, expected));
        }
        (true, true) => {
            let share = (n_sparse as f64 * below / (below + above)).round() as usize;
            share.clamp(1, n_sparse - 1)
        }
        (true, false) => n_sparse,
        _ => 0,
    };
    let parts = [(sides[0], n_below), (dense, bins - n_sparse), (sides[1], n_sparse - n_below)];
    Ok(parts.into_iter().filter(|(_, n)| *n > 0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: [f64; 2] = [-15.0, 15.0];

    fn uniform(bins: usize) -> Binning {
        Binning::new(BinningConfig { bins, range: RANGE, precision: Precision::Uniform }).unwrap()
    }

    fn mixed(bins: usize, sparse: f64, dense: [f64; 2]) -> Result<Binning, ModelError> {
        let precision = Precision::Mixed { sparse, dense };
        Binning::new(BinningConfig { bins, range: RANGE, precision })
    }

    /// Bins whose middle lies within an interval.
    fn count(binning: &Binning, [low, high]: [f64; 2]) -> usize {
        binning.centres().iter().filter(|&&centre| low < centre && centre < high).count()
    }

    #[test]
    fn uniform_bins_by_hand() {
        let config = BinningConfig { bins: 3, range: [-1.0, 0.5], precision: Precision::Uniform };
        let binning = Binning::new(config).unwrap();
        assert_eq!(binning.edges(), [-1.0, -0.5, 0.0, 0.5]);
        assert_eq!(binning.centres(), [-0.75, -0.25, 0.25]);
        let bins = [-9.0, -1.0, -0.51, -0.5, 0.49, 0.5, 9.0, f64::NAN].map(|x| binning.bin_of(x));
        assert_eq!(bins, [0, 0, 0, 1, 2, 2, 2, 0]);
    }

    #[test]
    fn mixed_bins_by_hand() {
        // ⌊0.3 · 10⌋ = 3 sparse bins over 14 below and 5 above: 2.2 and 0.8, so 2 and 1; seven
        // of width 11/7 between.
        let binning = mixed(10, 0.3, [-1.0, 10.0]).unwrap();
        let edges = binning.edges();
        assert_eq!([edges[0], edges[1], edges[2]], [-15.0, -8.0, -1.0]);
        assert_eq!([edges[9], edges[10]], [10.0, 15.0]);
        assert!((binning.width(2) - 11.0 / 7.0).abs() < 1e-12);
        assert_eq!(
            [-20.0, -8.0, -1.0, 9.99, 10.0, 20.0].map(|x| binning.bin_of(x)),
            [0, 1, 2, 8, 9, 9]
        );
    }

    #[test]
    fn the_published_bins_are_counted_as_the_paper_says() {
        let binning = mixed(4096, 0.2, [-1.0, 10.0]).unwrap();
        // ⌊0.2 · 4096⌋ = 819; 14/19 of them below: 603.5, rounded up.
        assert_eq!(count(&binning, [-1.0, 10.0]), 4096 - 819);
        assert_eq!(count(&binning, [-15.0, -1.0]), 603);
        assert_eq!(count(&binning, [10.0, 15.0]), 216);
    }

    #[test]
    fn every_bin_comes_back_and_every_value_within_half_a_width() {
        for binning in [
            uniform(1),
            uniform(257),
            mixed(257, 0.2, [-1.0, 10.0]).unwrap(),
            mixed(64, 0.5, [-15.0, 0.0]).unwrap(),
            mixed(64, 0.5, [0.0, 15.0]).unwrap(),
            mixed(8, 0.0, RANGE).unwrap(),
        ] {
            assert_eq!(binning.edges().len(), binning.n_bins() + 1);
            assert!(binning.edges().is_sorted_by(|a, b| a < b));
            let mut last = 0;
            for step in -1500..1500 {
                let value = f64::from(step) / 100.0 + 0.003;
                let bin = binning.bin_of(value);
                let off = (binning.centre(bin) - value).abs();
                assert!(off <= 0.5 * binning.width(bin) + 1e-12, "{value} in {binning:?}");
                assert!(bin >= last, "{value}");
                last = bin;
            }
            for (bin, centre) in binning.centres().into_iter().enumerate() {
                assert_eq!(binning.bin_of(centre), bin);
            }
        }
    }

    #[test]
    fn without_sparse_bins_all_are_in_the_dense_interval() {
        let binning = mixed(4, 0.2, [-1.0, 1.0]).unwrap(); // ⌊0.8⌋ = 0
        assert_eq!(binning.edges(), [-1.0, -0.5, 0.0, 0.5, 1.0]);
        assert_eq!([binning.bin_of(-7.0), binning.bin_of(7.0)], [0, 3]);
    }

    #[test]
    fn the_dense_interval_lies_between_quantiles() {
        let values: Vec<f64> = (0..=100).map(|i| f64::from(i * i) / 100.0).rev().collect();
        let fitted = Precision::fit(0.25, [0.1, 0.5], RANGE, &values).unwrap();
        assert_eq!(fitted, Precision::Mixed { sparse: 0.25, dense: [1.0, 15.0] }); // of 25
        let got = Precision::fit(0.25, [0.1, 0.305], RANGE, &values).unwrap();
        let Precision::Mixed { dense, .. } = got else { panic!("{got:?}") };
        // Half way between 30²/100 and 31²/100.
        assert!((dense[1] - 9.305).abs() < 1e-12, "{dense:?}");
    }

    #[track_caller]
    fn refused<T: std::fmt::Debug>(result: Result<T, ModelError>, key: &str) {
        let error = result.unwrap_err();
        assert!(matches!(error, ModelError::Config { .. }), "{error}");
        assert!(error.to_string().starts_with(&format!("{key} = ")), "{error}");
    }

    #[test]
    fn what_is_no_binning_is_refused() {
        let of = |bins, range| {
            Binning::new(BinningConfig { bins, range, precision: Precision::Uniform })
        };
        refused(of(0, RANGE), "binning.bins");
        refused(of(100, [1.0, 1.0 + 1e-15]), "binning.bins");
        for range in [[1.0, 1.0], [2.0, 1.0], [f64::NAN, 1.0], [0.0, f64::INFINITY]] {
            refused(of(5, range), "binning.range");
        }
        for dense in [[1.0, 1.0], [2.0, 1.0], [-16.0, 1.0], [1.0, 16.0], [f64::NAN, 1.0]] {
            refused(mixed(16, 0.2, dense), "binning.dense");
        }
        for sparse in [-0.1, 1.0, f64::NAN] {
            refused(mixed(16, sparse, [-1.0, 1.0]), "binning.sparse");
        }
        refused(mixed(16, 0.2, RANGE), "binning.sparse"); // three bins for no place
        refused(mixed(8, 0.2, [-1.0, 1.0]), "binning.sparse"); // one bin for two sides
        refused(Precision::fit(0.2, [0.5, 0.5], RANGE, &[1.0, 2.0]), "binning.quantiles");
        refused(Precision::fit(0.2, [0.1, 0.9], [1.0, -1.0], &[1.0, 2.0]), "binning.range");
        refused(Precision::fit(0.2, [0.1, 0.9], RANGE, &[3.0; 9]), "binning.dense");
        refused(Precision::fit(0.2, [0.1, 0.9], RANGE, &[20.0, 30.0]), "binning.dense");
        refused(Precision::fit(0.2, [0.1, 0.9], RANGE, &[]), "binning.values");
        refused(Precision::fit(0.2, [0.1, 0.9], RANGE, &[0.0, f64::NAN]), "binning.values");
    }
}
