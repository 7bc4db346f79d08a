//! Statistics over episodes.

use serde::{Deserialize, Serialize};

use crate::statistics::Estimate;

/// Summary statistics of a list of numbers, such as the returns of all episodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Count of the numbers.
    pub n: usize,
    /// Mean.
    pub mean: f64,
    /// Sample standard deviation (`ddof` 1: divided by `n - 1`); absent for fewer than two.
    pub sd: Option<f64>,
    /// Median; the mean of the middle two for an even count.
    pub median: f64,
    /// Interquartile mean: the mean without the `⌊n/4⌋` smallest and the `⌊n/4⌋` largest numbers
    /// (Agarwal et al. 2021).
    pub iqm: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

impl Summary {
    /// The summary of `values`; `None` if `values` is empty or contains a non-finite number.
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
            median: middle(&sorted),
            iqm: interquartile_mean(&sorted),
            min: sorted[0],
            max: sorted[n - 1],
        })
    }

    /// `mean ± sd` with [`digits`] decimals; the mean alone for one number.
    pub fn with_spread(&self) -> String {
        spread(self.mean, self.sd, digits([self]))
    }
}

/// Decimals for a table's numbers: three significant digits of the largest number, and at least one
/// decimal.
pub fn digits<'a>(summaries: impl IntoIterator<Item = &'a Summary>) -> usize {
    let ends = summaries.into_iter().flat_map(|summary| [summary.min.abs(), summary.max.abs()]);
    let largest = ends.fold(0.0, f64::max);
    let before = if largest > 0.0 { largest.log10().floor() } else { 1.0 };
    (2.0 - before).clamp(1.0, 9.0) as usize
}

/// A number with `digits` decimals. Numbers that round to zero have no sign.
pub fn fixed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    match text.strip_prefix('-') {
        Some(zero) if zero.chars().all(|c| matches!(c, '0' | '.')) => zero.to_owned(),
        _ => text,
    }
}

/// `mean ± sd`, or the mean alone without a deviation.
pub fn spread(mean: f64, sd: Option<f64>, digits: usize) -> String {
    match sd {
        Some(sd) => format!("{} ± {sd:.digits$}", fixed(mean, digits)),
        None => fixed(mean, digits),
    }
}

/// `value [low, high]`, or the value alone without an interval.
pub fn estimate(estimate: &Estimate, digits: usize) -> String {
    let value = fixed(estimate.value, digits);
    match estimate.interval {
        Some(interval) => {
            let [low, high] = [interval.low, interval.high].map(|bound| fixed(bound, digits));
            format!("{value} [{low}, {high}]")
        }
        None => value,
    }
}

/// The median of a non-empty list in ascending order.
pub(crate) fn middle(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0
}

/// Interquartile mean: the mean without the `⌊n/4⌋` smallest and the `⌊n/4⌋` largest of `n` numbers
/// (Agarwal et al. 2021). It is the 25 % trimmed mean, `scipy.stats.trim_mean(x, 0.25)`.
///
/// `sorted` must be in ascending order and not empty.
pub(crate) fn interquartile_mean(sorted: &[f64]) -> f64 {
    let cut = sorted.len() / 4;
    let middle = &sorted[cut..sorted.len() - cut];
    middle.iter().sum::<f64>() / middle.len() as f64
}

#[cfg(test)]
mod tests {
    use super::{Summary, digits, fixed, spread};

    #[test]
    fn zero_has_no_sign() {
        assert_eq!([-0.0, -0.049, -0.051].map(|value| fixed(value, 1)), ["0.0", "0.0", "-0.1"]);
        assert_eq!([-0.4, -0.6, 7.0].map(|value| fixed(value, 0)), ["0", "-1", "7"]);
        assert_eq!(spread(-0.001, Some(0.07), 2), "0.00 ± 0.07");
        assert_eq!(spread(-0.001, None, 2), "0.00");
    }

    #[test]
    fn small_numbers_have_more_decimals() {
        let text = |values: &[f64]| Summary::of(values).unwrap().with_spread();
        assert_eq!(text(&[480.0, 520.0]), "500.0 ± 28.3");
        assert_eq!(text(&[1.0, 0.5]), "0.75 ± 0.35");
        assert_eq!(text(&[-0.012, -0.008]), "-0.0100 ± 0.0028");
        assert_eq!(text(&[0.0]), "0.0");
        let summary = |value: f64| Summary::of(&[value]).unwrap();
        assert_eq!(
            digits([&summary(0.1), &summary(-30.0)]),
            1,
            "all numbers of a table share the decimals"
        );
    }

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
    fn the_deviation_is_the_sample_deviation() {
        // Deviations from 4: -2, -1, 0, 3; squares sum to 14; 14 / 3.
        let summary = Summary::of(&[2.0, 3.0, 4.0, 7.0]).unwrap();
        assert!((summary.sd.unwrap() - (14.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!((summary.min, summary.max, summary.median), (2.0, 7.0, 3.5));
    }

    #[test]
    fn the_interquartile_mean_omits_whole_numbers_at_both_ends() {
        // n = 6 omits one number at each end: (2 + 3 + 4 + 50) / 4. n = 3 omits none.
        let iqm = |values: &[f64]| Summary::of(values).unwrap().iqm;
        assert!((iqm(&[50.0, 4.0, 3.0, 2.0, 1.0, 60.0]) - 14.75).abs() < 1e-12);
        assert!((iqm(&[9.0, 1.0, 2.0]) - 4.0).abs() < 1e-12);
        assert_eq!(iqm(&[7.0; 13]), 7.0);
    }
}
