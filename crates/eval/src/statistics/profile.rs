//! Performance profiles: the distribution of scores.

use super::{Bootstrap, Estimate, ScoreMatrix, StatisticsError};

/// A point of a performance profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProfilePoint {
    /// The threshold.
    pub tau: f64,
    /// The fraction of runs of all tasks with a higher score. The interval is pointwise, not
    /// simultaneous for the whole curve.
    pub fraction: Estimate,
}

/// Performance profile: for each threshold the fraction of runs with a higher score,
/// `F̂(τ) = 1/(MN) Σ_m Σ_n 1[x[m][n] > τ]` (Agarwal et al. 2021, section 4.2).
/// Thresholds can be in any order.
///
/// # Errors
/// When a threshold is NaN or `bootstrap` is invalid.
pub fn performance_profile(
    scores: &ScoreMatrix,
    thresholds: &[f64],
    bootstrap: &Bootstrap,
) -> Result<Vec<ProfilePoint>, StatisticsError> {
    if let Some(&tau) = thresholds.iter().find(|tau| tau.is_nan()) {
        return Err(StatisticsError::Threshold(tau));
    }
    let fill = |scores: &ScoreMatrix, out: &mut [f64]| {
        let pooled = scores.pooled();
        for (fraction, tau) in out.iter_mut().zip(thresholds) {
            let above = pooled.iter().filter(|score| *score > tau).count();
            *fraction = above as f64 / pooled.len() as f64;
        }
    };
    let mut values = vec![0.0; thresholds.len()];
    fill(scores, &mut values);
    let intervals = bootstrap.intervals(scores, thresholds.len(), fill)?;
    let point = |(i, &tau): (usize, &f64)| {
        let interval = intervals.as_ref().map(|intervals| intervals[i]);
        ProfilePoint { tau, fraction: Estimate { value: values[i], interval } }
    };
    Ok(thresholds.iter().enumerate().map(point).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_falls_from_one_to_zero() {
        let scores = ScoreMatrix::new([("a", vec![1.0, 2.0]), ("b", vec![2.0, 4.0])]).unwrap();
        let thresholds = [f64::NEG_INFINITY, 0.0, 1.0, 2.0, 3.0, 4.0];
        let profile = performance_profile(&scores, &thresholds, &Bootstrap::default()).unwrap();
        let fractions: Vec<f64> = profile.iter().map(|point| point.fraction.value).collect();
        // Strictly higher: none of 1, 2, 2, 4 is above 4.
        assert_eq!(fractions, [1.0, 1.0, 0.75, 0.25, 0.25, 0.0]);
        for point in profile {
            let interval = point.fraction.interval.unwrap();
            assert!((interval.low..=interval.high).contains(&point.fraction.value), "{point:?}");
        }
    }

    #[test]
    fn no_thresholds_one_run_and_nan() {
        let one = ScoreMatrix::one_task("a", &[1.0]).unwrap();
        let bootstrap = Bootstrap::default();
        assert_eq!(performance_profile(&one, &[], &bootstrap), Ok(Vec::new()));
        let alone = performance_profile(&one, &[0.5], &bootstrap).unwrap();
        assert_eq!(alone[0].fraction, Estimate { value: 1.0, interval: None });
        let error = performance_profile(&one, &[f64::NAN], &bootstrap).unwrap_err();
        assert!(matches!(error, StatisticsError::Threshold(_)));
    }
}
