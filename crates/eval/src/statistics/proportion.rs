//! Wilson's interval of a proportion.

use overtone_core::Interval;
use statrs::distribution::{ContinuousCDF, Normal};

use super::Estimate;

/// The fraction `k / n` and Wilson's score interval of this level. `z` is the normal quantile
/// `1 − (1 − level) / 2`:
/// `(k + z²/2 ± z √(k (n − k) / n + z²/4)) / (n + z²)` (Wilson 1927).
///
/// Unlike a bootstrap, it also has a width if all trials have the same result.
///
/// ```
/// use overtone_eval::statistics::proportion;
/// let interval = proportion(10, 10, 0.95).interval.unwrap();
/// assert!((interval.low - 0.722).abs() < 1e-3 && interval.high == 1.0);
/// ```
///
/// # Panics
/// When `n` is 0, `k` is above `n`, or `level` is not between 0 and 1: a caller's bug.
pub fn proportion(k: usize, n: usize, level: f64) -> Estimate {
    assert!(n > 0 && k <= n && level > 0.0 && level < 1.0, "{k} of {n}, level {level}");
    let z2 = Normal::standard().inverse_cdf(0.5 + level / 2.0).powi(2);
    let [k, n] = [k, n].map(|count| count as f64);
    let half = (z2 * (k * (n - k) / n + z2 / 4.0)).sqrt();
    let end = |sign: f64| ((k + z2 / 2.0 + sign * half) / (n + z2)).clamp(0.0, 1.0);
    Estimate { value: k / n, interval: Some(Interval { low: end(-1.0), high: end(1.0) }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLERANCE: f64 = 1e-12;

    /// Successes, trials, level and the ends of the interval, by statsmodels 0.15.0:
    /// `proportion_confint(k, n, 1 - level, "wilson")`.
    const WILSON: [(usize, usize, f64, [f64; 2]); 5] = [
        (0, 1, 0.95, [0.0, 0.793_450_685_622_762_7]),
        (17, 20, 0.95, [0.639_581_135_259_243_1, 0.947_631_254_103_783_5]),
        (50, 50, 0.95, [0.928_652_400_866_641_4, 1.0]),
        (333, 1000, 0.5, [0.323_025_755_659_568_9, 0.343_126_124_010_159_3]),
        (3, 7, 0.999, [0.083_854_720_089_973_74, 0.860_052_373_540_921_8]),
    ];

    #[test]
    fn intervals_equal_statsmodels() {
        for (k, n, level, expected) in WILSON {
            let Estimate { value, interval } = proportion(k, n, level);
            let interval = interval.unwrap();
            assert_eq!(value, k as f64 / n as f64);
            let ends = [interval.low, interval.high];
            let is_close = |(end, expected): (f64, f64)| (end - expected).abs() < TOLERANCE;
            assert!(ends.into_iter().zip(expected).all(is_close), "{k} of {n}: {ends:?}");
        }
    }

    #[test]
    fn failures_mirror_successes() {
        for k in 0..=7 {
            let [success, failure] = [k, 7 - k].map(|k| proportion(k, 7, 0.9).interval.unwrap());
            assert!((success.low + failure.high - 1.0).abs() < TOLERANCE, "{success:?}");
        }
    }
}
