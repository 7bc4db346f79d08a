//! [`Normalization`]: what is done to an observation's numbers before a model sees them.

use serde::{Deserialize, Serialize};

/// Added to every standard deviation, so that a number that never changes becomes 0 (Chen et
/// al. 2021's code).
pub const EPSILON: f32 = 1e-6;

/// Mean and standard deviation of each number of an observation over a training set.
///
/// Stored with the weights: a model means nothing without them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Normalization {
    /// `[width]`
    pub mean: Vec<f32>,
    /// `[width]`, of the population (`ddof` 0), none negative.
    pub std: Vec<f32>,
}

impl Normalization {
    /// Changes nothing (but for [`EPSILON`]).
    pub fn identity(width: usize) -> Self {
        Self { mean: vec![0.0; width], std: vec![1.0; width] }
    }

    /// Of `observations`, row by row `width` numbers. Summed in `f64`.
    ///
    /// # Panics
    /// When `width` is 0, or there is not a whole number of rows, or none: a caller's bug.
    pub fn of(observations: &[f32], width: usize) -> Self {
        assert!(width > 0 && observations.len().is_multiple_of(width), "rows of {width} numbers");
        let n = (observations.len() / width) as f64;
        assert!(n > 0.0, "statistics of nothing");
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
        Self {
            mean: mean.into_iter().map(|mean| mean as f32).collect(),
            std: variance.into_iter().map(|sum| (sum / n).sqrt() as f32).collect(),
        }
    }

    /// Numbers of an observation.
    pub fn width(&self) -> usize {
        self.mean.len()
    }

    /// `(o - mean) / (std + 1e-6)` in place, for one or more rows.
    ///
    /// # Panics
    /// When there is not a whole number of rows: a caller's bug.
    pub fn apply(&self, observations: &mut [f32]) {
        assert!(
            observations.len().is_multiple_of(self.width()),
            "rows of {} numbers",
            self.width()
        );
        for row in observations.chunks_exact_mut(self.width()) {
            for ((x, mean), std) in row.iter_mut().zip(&self.mean).zip(&self.std) {
                *x = (*x - mean) / (std + EPSILON);
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
        let of = Normalization::of(&[1.0, 7.0, 3.0, 7.0, 5.0, 7.0], 2);
        assert_eq!(of.mean, [3.0, 7.0]);
        assert_eq!(of.std, [(8.0f32 / 3.0).sqrt(), 0.0]);
        let mut row = [3.0, 7.0, 3.0 + of.std[0], 7.0];
        of.apply(&mut row);
        assert_eq!([row[0], row[1], row[3]], [0.0; 3]);
        assert!((row[2] - 1.0).abs() < 1e-5, "{row:?}");
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
