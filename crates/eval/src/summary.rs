//! Statistics over episodes.

use serde::{Deserialize, Serialize};

/// What is said about a list of numbers, such as the returns of all episodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// How many numbers.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// Sample standard deviation (`ddof` 1: divided by `n - 1`); absent for fewer than two.
    pub sd: Option<f64>,
    /// Median; between the middle two for an even count.
    pub median: f64,
    /// Interquartile mean: the mean of the middle half, with fractional weights at its ends
    /// (Agarwal et al. 2021).
    pub iqm: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

impl Summary {
    /// Summarizes `values`; `None` when there is none, or one is not finite.
    ///
    /// ```
    /// use overtone_eval::Summary;
    /// let summary = Summary::of(&[4.0, 1.0, 3.0, 100.0]).unwrap();
    /// assert_eq!((summary.mean, summary.median, summary.iqm), (27.0, 3.5, 3.5));
    /// ```
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            n,
            mean,
            sd: (n > 1).then(|| (squares / (n - 1) as f64).sqrt()),
            median: (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0,
            iqm: interquartile_mean(&sorted),
            min: sorted[0],
            max: sorted[n - 1],
        })
    }
}

/// Each sorted value stands for an interval of length 1; the middle half is
/// `n/4 .. 3n/4`, and a value counts by the length of its interval inside.
fn interquartile_mean(sorted: &[f64]) -> f64 {
    let n = sorted.len() as f64;
    let (low, high) = (n / 4.0, 3.0 * n / 4.0);
    let total: f64 = sorted
        .iter()
        .enumerate()
        .map(|(i, value)| {
            let inside = (i as f64 + 1.0).min(high) - (i as f64).max(low);
            value * inside.max(0.0)
        })
        .sum();
    total / (high - low)
}

#[cfg(test)]
mod tests {
    use super::Summary;

    #[test]
    fn one_number_has_no_spread() {
        let summary = Summary::of(&[5.0]).unwrap();
        let expected =
            Summary { n: 1, mean: 5.0, sd: None, median: 5.0, iqm: 5.0, min: 5.0, max: 5.0 };
        assert_eq!(summary, expected);
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn the_deviation_is_the_samples() {
        // Deviations from 4: -2, -1, 0, 3; squares sum to 14; 14 / 3.
        let summary = Summary::of(&[2.0, 3.0, 4.0, 7.0]).unwrap();
        assert!((summary.sd.unwrap() - (14.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!((summary.min, summary.max, summary.median), (2.0, 7.0, 3.5));
    }

    #[test]
    fn the_interquartile_mean_takes_fractions_at_its_ends() {
        // n = 6: the middle half is 1.5 .. 4.5, that is half of 2, all of 3 and 4, half of 50:
        // (1 + 3 + 4 + 25) / 3.
        let summary = Summary::of(&[50.0, 4.0, 3.0, 2.0, 1.0, 60.0]).unwrap();
        assert!((summary.iqm - 11.0).abs() < 1e-12);
    }
}
