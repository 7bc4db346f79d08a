//! Bins: how a range of real values is cut into the categories of a head on bins.
//!
//! Two strategies (Gillman et al. 2025, Section 2.3, "Binning strategy"):
//!
//! - [`Binning::uniform`]: bins of one width.
//! - [`Binning::mixed`]: where most values are, the *dense* interval, bins are narrower than
//!   in the rest of the range. Of m bins, `⌊d·m⌋` are for the sparse part and the others for
//!   the dense interval, which lies between two [`quantile`]s of the training data.
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

/// A range cut into bins.
#[derive(Clone, Debug, PartialEq)]
pub struct Binning {
    /// m + 1 of them, rising.
    edges: Vec<f64>,
}

impl Binning {
    /// `bins` bins of one width.
    ///
    /// # Panics
    /// When there is no bin, or the range does not rise.
    pub fn uniform(bins: usize, range: [f64; 2]) -> Self {
        Self::of(&[(range, bins)])
    }

    /// `⌊sparse · bins⌋` bins in the rest of the range, or none with less than one on each side
    /// of the dense interval, and the others in the dense interval.
    ///
    /// # Panics
    /// When there is no bin, or the dense interval does not rise within the range.
    pub fn mixed(bins: usize, range: [f64; 2], sparse: f64, dense: [f64; 2]) -> Self {
        assert!(range[0] <= dense[0] && dense[1] <= range[1], "{dense:?} within {range:?}");
        let sides = [[range[0], dense[0]], [dense[1], range[1]]];
        let [below, above] = sides.map(|[low, high]| high - low);
        let n_sides = usize::from(below > 0.0) + usize::from(above > 0.0);
        let n_sparse = (sparse * bins as f64).floor() as usize;
        if n_sides == 0 || n_sparse < n_sides {
            return Self::uniform(bins, dense);
        }
        let n_below = match n_sides {
            2 => {
                let share = (n_sparse as f64 * below / (below + above)).round() as usize;
                share.clamp(1, n_sparse - 1)
            }
            _ if below > 0.0 => n_sparse,
            _ => 0,
        };
        Self::of(&[(sides[0], n_below), (dense, bins - n_sparse), (sides[1], n_sparse - n_below)])
    }

    /// Neighbouring intervals and the bins of each.
    fn of(parts: &[([f64; 2], usize)]) -> Self {
        let mut edges = vec![];
        for &([low, high], n) in parts {
            edges.extend((0..n).map(|i| low + (high - low) * i as f64 / n as f64));
        }
        edges.extend(parts.iter().rev().find(|(_, n)| *n > 0).map(|([_, high], _)| *high));
        assert!(edges.len() > 1 && edges.is_sorted_by(|a, b| a < b), "no bins of {parts:?}");
        Self { edges }
    }

    /// m.
    pub fn n_bins(&self) -> usize {
        self.edges.len() - 1
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

    /// A bin's width, in units of values.
    ///
    /// # Panics
    /// When there is no such bin.
    pub fn width(&self, bin: usize) -> f64 {
        self.edges[bin + 1] - self.edges[bin]
    }

    /// The bin of a value, which begins at its lower edge; beyond the edges the nearest one.
    /// NaN is in the first.
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

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: [f64; 2] = [-15.0, 15.0];

    fn mixed(bins: usize, sparse: f64, dense: [f64; 2]) -> Binning {
        Binning::mixed(bins, RANGE, sparse, dense)
    }

    fn centres(binning: &Binning) -> Vec<f64> {
        (0..binning.n_bins()).map(|bin| binning.centre(bin)).collect()
    }

    /// Bins whose middle lies within an interval.
    fn count(binning: &Binning, [low, high]: [f64; 2]) -> usize {
        centres(binning).iter().filter(|&&centre| low < centre && centre < high).count()
    }

    #[test]
    fn uniform_bins_by_hand() {
        let binning = Binning::uniform(3, [-1.0, 0.5]);
        assert_eq!(binning.edges(), [-1.0, -0.5, 0.0, 0.5]);
        assert_eq!(centres(&binning), [-0.75, -0.25, 0.25]);
        let bins = [-9.0, -1.0, -0.51, -0.5, 0.49, 0.5, 9.0, f64::NAN].map(|x| binning.bin_of(x));
        assert_eq!(bins, [0, 0, 0, 1, 2, 2, 2, 0]);
    }

    #[test]
    fn mixed_bins_by_hand() {
        // ⌊0.3 · 10⌋ = 3 sparse bins over 14 below and 5 above: 2.2 and 0.8, so 2 and 1; seven
        // of width 11/7 between.
        let binning = mixed(10, 0.3, [-1.0, 10.0]);
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
        let binning = mixed(4096, 0.2, [-1.0, 10.0]);
        // ⌊0.2 · 4096⌋ = 819; 14/19 of them below: 603.5, rounded up.
        assert_eq!(count(&binning, [-1.0, 10.0]), 4096 - 819);
        assert_eq!(count(&binning, [-15.0, -1.0]), 603);
        assert_eq!(count(&binning, [10.0, 15.0]), 216);
    }

    #[test]
    fn every_bin_comes_back_and_every_value_within_half_a_width() {
        for binning in [
            Binning::uniform(1, RANGE),
            Binning::uniform(257, RANGE),
            mixed(257, 0.2, [-1.0, 10.0]),
            mixed(64, 0.5, [-15.0, 0.0]),
            mixed(64, 0.5, [0.0, 15.0]),
            mixed(8, 0.0, RANGE),
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
            for (bin, centre) in centres(&binning).into_iter().enumerate() {
                assert_eq!(binning.bin_of(centre), bin);
            }
        }
    }

    #[test]
    fn without_sparse_bins_all_are_in_the_dense_interval() {
        let binning = mixed(4, 0.2, [-1.0, 1.0]); // ⌊0.8⌋ = 0
        assert_eq!(binning.edges(), [-1.0, -0.5, 0.0, 0.5, 1.0]);
        assert_eq!([binning.bin_of(-7.0), binning.bin_of(7.0)], [0, 3]);
    }

    #[test]
    fn without_a_place_for_sparse_bins_there_are_none() {
        assert_eq!(mixed(16, 0.2, RANGE), Binning::uniform(16, RANGE));
        // One bin for two sides.
        assert_eq!(mixed(8, 0.2, [-1.0, 1.0]), Binning::uniform(8, [-1.0, 1.0]));
    }
}
