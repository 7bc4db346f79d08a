//! How good a probabilistic forecast is: MASE and WQL, as Chronos is measured by them
//! (Ansari et al. 2024, Section 5.2 and Appendix D), and the seasonal naive forecast.

use overtone_eval::Pooled;

/// The quantiles that WQL weighs.
pub const QUANTILES: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
/// Where the median stands among [`QUANTILES`].
pub const MEDIAN: usize = 4;

/// Repeats the last cycle of `history` for `horizon` values; the last value where the history
/// is shorter than a cycle.
///
/// ```
/// use overtone_lab::forecast::metrics::seasonal_naive;
/// assert_eq!(seasonal_naive(&[9.0, 1.0, 2.0, 3.0], 3, 5), [1.0, 2.0, 3.0, 1.0, 2.0]);
/// ```
///
/// # Panics
/// When there is no history.
pub fn seasonal_naive(history: &[f64], season: usize, horizon: usize) -> Vec<f64> {
    let season = if season <= history.len() { season.max(1) } else { 1 };
    let cycle = &history[history.len() - season..];
    cycle.iter().copied().cycle().take(horizon).collect()
}

/// What errors are divided by in MASE: how far values one cycle apart in `history` differ, on
/// average. `None` where there are none, or all are equal.
pub fn seasonal_error(history: &[f64], season: usize) -> Option<f64> {
    let season = season.max(1);
    let n = history.len().checked_sub(season).filter(|&n| n > 0)?;
    let sum: f64 = history.iter().zip(&history[season..]).map(|(a, b)| (a - b).abs()).sum();
    (sum > 0.0).then(|| sum / n as f64)
}

/// Both metrics over many forecasts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores {
    /// Of each forecast.
    mase: Pooled,
    /// Sum over values of `2·ρ_q`, by quantile.
    quantile_losses: [f64; QUANTILES.len()],
    /// Sum of absolute values.
    absolute: f64,
}

impl Scores {
    /// Adds a forecast: what came, and `quantiles[i][t]`, the quantile `QUANTILES[i]` for
    /// value `t`. A history whose seasonal error is zero does not count for MASE.
    ///
    /// # Panics
    /// When a quantile has another length than `truth`.
    pub fn add(&mut self, history: &[f64], season: usize, truth: &[f64], quantiles: &[Vec<f64>]) {
        assert!(quantiles.len() == QUANTILES.len(), "{} quantiles", quantiles.len());
        assert!(quantiles.iter().all(|forecast| forecast.len() == truth.len()));
        if let Some(scale) = seasonal_error(history, season) {
            let errors = truth.iter().zip(&quantiles[MEDIAN]).map(|(x, f)| (x - f).abs());
            self.mase.add(errors.sum::<f64>() / truth.len() as f64 / scale);
        }
        for ((sum, q), forecast) in self.quantile_losses.iter_mut().zip(QUANTILES).zip(quantiles) {
            // ρ_q(x, f) = q (x − f) above the quantile, (1 − q)(f − x) below.
            let loss = |(x, f): (&f64, &f64)| (q * (x - f)).max((1.0 - q) * (f - x));
            *sum += 2.0 * truth.iter().zip(forecast).map(loss).sum::<f64>();
        }
        self.absolute += truth.iter().map(|x| x.abs()).sum::<f64>();
    }

    /// Mean absolute scaled error of the median forecast: each forecast's mean absolute error
    /// over its history's seasonal error, averaged over forecasts; no number where no history has
    /// such an error.
    pub fn mase(&self) -> f64 {
        if self.mase.n == 0 { f64::NAN } else { self.mase.mean }
    }

    /// Weighted quantile loss: `2 Σ ρ_q / Σ |x|` over all values, averaged over
    /// [`QUANTILES`].
    pub fn wql(&self) -> f64 {
        self.quantile_losses.iter().sum::<f64>() / QUANTILES.len() as f64 / self.absolute
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, expected: f64) {
        assert!((got - expected).abs() < 1e-12, "{got}, not {expected}");
    }

    #[test]
    fn seasonal_errors_by_hand() {
        // |4−1|, |2−2|, |7−4|: 2 on average.
        assert_eq!(seasonal_error(&[1.0, 2.0, 4.0, 2.0, 7.0], 2), Some(2.0));
        assert_eq!(seasonal_error(&[1.0, 3.0], 1), Some(2.0));
        for (history, season) in [(&[1.0, 2.0][..], 2), (&[3.0; 5], 2), (&[], 1)] {
            assert_eq!(seasonal_error(history, season), None);
        }
        assert_eq!(seasonal_naive(&[1.0, 2.0], 5, 3), [2.0; 3]);
    }

    #[test]
    fn scores_by_hand() {
        let history = [0.0, 2.0, 0.0, 2.0]; // seasonal error 2 with season 1
        let truth = [1.0, -3.0];
        // The median is (2, 1); each other quantile is 0 at both values.
        let mut quantiles = vec![vec![0.0; 2]; 9];
        quantiles[MEDIAN] = vec![2.0, 1.0];
        let mut scores = Scores::default();
        // A history of one cycle has no seasonal error.
        scores.add(&history, 4, &truth, &quantiles);
        assert!(scores.mase().is_nan());
        scores = Scores::default();
        scores.add(&history, 1, &truth, &quantiles);
        // (1 + 4)/2 / 2
        close(scores.mase(), 1.25);
        // Of 0: 2 (q·1 + (1 − q)·3) = 6 − 4q, over the eight q without ½ it sums to
        // 48 − 4·4 = 32; of the median |1 − 2| + |−3 − 1| = 5. Σ|x| = 4.
        close(scores.wql(), 37.0 / 9.0 / 4.0);

        // A second forecast without an error, on a history without one: MASE leaves it out.
        scores.add(&[5.0; 4], 1, &[4.0], &vec![vec![4.0]; 9]);
        close(scores.mase(), 1.25);
        close(scores.wql(), 37.0 / 9.0 / 8.0);
        scores.add(&history, 1, &[4.0], &vec![vec![4.0]; 9]);
        close(scores.mase(), 0.625);
    }

    #[test]
    fn the_true_quantiles_of_a_distribution_cost_least() {
        // 1 … 99 and its quantiles 10, 20 … 90, against the same moved or widened.
        let truth: Vec<f64> = (1..100).map(f64::from).collect();
        let wql = |change: fn(f64) -> f64| {
            let mut scores = Scores::default();
            let quantiles: Vec<Vec<f64>> =
                QUANTILES.iter().map(|q| vec![change(100.0 * q); truth.len()]).collect();
            scores.add(&[0.0, 1.0], 1, &truth, &quantiles);
            scores.wql()
        };
        let least = wql(|x| x);
        assert!(wql(|x| x + 5.0) > least && wql(|x| x - 5.0) > least);
        assert!(wql(|x| 50.0 + 0.5 * (x - 50.0)) > least);
        assert!(wql(|x| 50.0 + 1.5 * (x - 50.0)) > least);
    }
}
