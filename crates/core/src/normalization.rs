//! [`Normalization`]: standardization of observations before a model reads them.

use serde::{Deserialize, Serialize};

/// Added to every standard deviation (Chen et al. 2021's code). A dimension with a deviation of at
/// most this size [has no spread](has_spread).
pub const EPSILON: f32 = 1e-6;

/// Spread relative to the mean that may be rounding error: two steps of `f32`.
const ROUNDING: f32 = 2.0 * f32::EPSILON;

/// Whether a dimension varies, from its mean and standard deviation over a training set.
///
/// A constant dimension is hidden from the model. Divided by its deviation, its smallest change
/// during acting would outweigh every other dimension.
pub fn has_spread(mean: f64, std: f64) -> bool {
    std > f64::from(EPSILON) && std > f64::from(ROUNDING) * mean.abs()
}

/// Mean and standard deviation of each observation dimension over a training set.
///
/// Stored with the weights, because the weights are only valid for these statistics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Normalization {
    /// `[width]`
    pub mean: Vec<f32>,
    /// `[width]`, of the population (`ddof` 0), non-negative; 0 for a dimension without
    /// [spread](has_spread).
    pub std: Vec<f32>,
}

impl Normalization {
    /// No change (except for [`EPSILON`]).
    pub fn identity(width: usize) -> Self {
        Self { mean: vec![0.0; width], std: vec![1.0; width] }
    }

    /// The statistics of `observations`, rows of `width` numbers. Summed in `f64`.
    ///
    /// # Panics
    /// When `width` is 0, or `observations` is empty or not a whole number of rows: a caller's bug.
    pub fn of(observations: &[f32], width: usize) -> Self {
        assert!(width > 0 && observations.len().is_multiple_of(width), "rows of {width} numbers");
        let n = (observations.len() / width) as f64;
        assert!(n > 0.0, "statistics of no observations");
        let mut mean = vec![0.0f64; width];
        let mut variance = vec![0.0f64; width];
        for row in observations.chunks_exact(width) {
            mean.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
        }
        mean.iter_mut().for_each(|sum| *sum /= n);
        for row in observations.chunks_exact(width) {
            for ((sum, &x), mean) in variance.iter_mut().zip(row).zip(&mean) {
                *sum += (f64::from(x) - mean).powi(2);
            }
        }
        let std = variance.into_iter().zip(&mean).map(|(sum, &mean)| {
            let std = (sum / n).sqrt();
            if has_spread(mean, std) { std as f32 } else { 0.0 }
        });
        Self { std: std.collect(), mean: mean.into_iter().map(|mean| mean as f32).collect() }
    }

    /// Number of observation dimensions.
    pub fn width(&self) -> usize {
        self.mean.len()
    }

    /// `(o - mean) / (std + 1e-6)` in place, for one or more rows; 0 for a dimension without
    /// spread.
    ///
    /// # Panics
    /// When `observations` is not a whole number of rows: a caller's bug.
    pub fn apply(&self, observations: &mut [f32]) {
        assert!(
            observations.len().is_multiple_of(self.width()),
            "rows of {} numbers",
            self.width()
        );
        for row in observations.chunks_exact_mut(self.width()) {
            for ((x, mean), std) in row.iter_mut().zip(&self.mean).zip(&self.std) {
                // 0 times a number that is not finite is not finite either, and acting refuses it.
                *x = if *std > 0.0 { (*x - mean) / (std + EPSILON) } else { 0.0 * *x + 0.0 };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Normalization;

    #[test]
    fn statistics_by_hand() {
        // Columns 1, 3, 5 and 7, 7, 7: means 3 and 7, variances (4 + 0 + 4)/3 and 0.
        let normalization = Normalization::of(&[1.0, 7.0, 3.0, 7.0, 5.0, 7.0], 2);
        assert_eq!(normalization.mean, [3.0, 7.0]);
        assert_eq!(normalization.std, [(8.0f32 / 3.0).sqrt(), 0.0]);
        // A dimension without spread becomes 0, whatever its value during acting.
        let mut row = [3.0, 7.0, 3.0 + normalization.std[0], 7.001];
        normalization.apply(&mut row);
        assert_eq!([row[0], row[1], row[3]], [0.0; 3]);
        assert!((row[2] - 1.0).abs() < 1e-5, "{row:?}");
    }

    /// Constants with a rounded mean, rounding itself, and deviations below 1e-6.
    #[test]
    fn rounding_is_not_spread() {
        let rows: Vec<[f32; 4]> = (0..1001)
            .map(|i| [0.1, 1e9 + 64.0 * (i % 2) as f32, 1e-7 * (i % 3) as f32, 1e-5 * i as f32])
            .collect();
        let normalization = Normalization::of(rows.as_flattened(), 4);
        assert_eq!(normalization.std[..3], [0.0; 3]);
        assert!((normalization.std[3] - 2.89e-3).abs() < 1e-5, "{normalization:?}");
        let mut seen = [0.2, 2e9, 1.0, normalization.mean[3] + normalization.std[3]];
        normalization.apply(&mut seen);
        assert_eq!(seen[..3], [0.0; 3]);
        assert!((seen[3] - 1.0).abs() < 1e-3, "{seen:?}");
    }

    #[test]
    fn normalized_numbers_have_mean_0_and_deviation_1() {
        let mut rows: Vec<f32> = (0..300).map(|i| (i as f32 * 0.7).sin() * 50.0 + 1e3).collect();
        Normalization::of(&rows, 3).apply(&mut rows);
        let again = Normalization::of(&rows, 3);
        assert!(again.mean.iter().all(|mean| mean.abs() < 1e-4), "{again:?}");
        assert!(again.std.iter().all(|std| (std - 1.0).abs() < 1e-4), "{again:?}");
    }
}
