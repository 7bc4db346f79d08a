//! [`Interval`]: the two ends of an interval, such as percentiles of a bootstrap.

use serde::{Deserialize, Serialize};

/// Ends of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// The central interval that holds the fraction `level` of `numbers`.
    ///
    /// # Panics
    /// When there are no numbers: a caller's bug.
    pub fn central(mut numbers: Vec<f64>, level: f64) -> Self {
        numbers.sort_unstable_by(f64::total_cmp);
        let tail = (1.0 - level) / 2.0;
        Self { low: quantile(&numbers, tail), high: quantile(&numbers, 1.0 - tail) }
    }

    /// Whether `number` lies inside, ends included.
    pub fn contains(self, number: f64) -> bool {
        self.low <= number && number <= self.high
    }
}

/// The quantile `q` of sorted numbers, with linear interpolation.
///
/// # Panics
/// When there are no numbers: a caller's bug.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    assert!(!sorted.is_empty(), "a quantile of no numbers");
    let place = q * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_interpolated_linearly() {
        // The quantile 0.25 of 3 numbers is half-way between the first and the second.
        assert_eq!(quantile(&[1.0, 3.0, 10.0], 0.25), 2.0);
        assert_eq!([0.0, 0.5, 1.0].map(|q| quantile(&[1.0, 3.0, 10.0], q)), [1.0, 3.0, 10.0]);
        assert_eq!(quantile(&[7.0], 0.3), 7.0);
    }

    #[test]
    fn the_central_half_of_five_numbers() {
        let half = Interval::central(vec![5.0, 1.0, 4.0, 2.0, 3.0], 0.5);
        assert_eq!(half, Interval { low: 2.0, high: 4.0 });
        assert_eq!([1.9, 2.0, 4.0, 4.1].map(|x| half.contains(x)), [false, true, true, false]);
    }
}
