//! Aggregate statistics over all runs and tasks.

use super::{Bootstrap, Estimate, ScoreMatrix, StatisticsError};
use crate::summary::{interquartile_mean, middle};

/// The four aggregates of the paper, with their intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aggregates {
    /// [`mean()`], which is sensitive to single tasks with high scores.
    pub mean: Estimate,
    /// [`median()`], which ignores the scores of half of the tasks.
    pub median: Estimate,
    /// [`iqm`], which the paper recommends.
    pub iqm: Estimate,
    /// [`optimality_gap`]; lower is better.
    pub optimality_gap: Estimate,
    /// Reference score of the optimality gap. Higher scores do not reduce the gap further.
    pub gamma: f64,
}

impl Aggregates {
    /// All four aggregates, with intervals from the same bootstrap samples. `gamma` has the units of
    /// the scores: 1, or 100 if normalized scores are percentages.
    ///
    /// # Errors
    /// When `bootstrap` is invalid or `gamma` is not finite.
    pub fn of(
        scores: &ScoreMatrix,
        gamma: f64,
        bootstrap: &Bootstrap,
    ) -> Result<Self, StatisticsError> {
        if !gamma.is_finite() {
            return Err(StatisticsError::Threshold(gamma));
        }
        let all = |scores: &ScoreMatrix| {
            [mean(scores), median(scores), iqm(scores), optimality_gap(scores, gamma)]
        };
        let [mean, median, iqm, optimality_gap] = bootstrap.estimates(scores, all)?;
        Ok(Self { mean, median, iqm, optimality_gap, gamma })
    }
}

fn task_means(scores: &ScoreMatrix) -> impl Iterator<Item = f64> {
    scores.rows().map(|runs| runs.iter().sum::<f64>() / runs.len() as f64)
}

/// Mean of the task means, `1/M Σ_m x̄_m`.
pub fn mean(scores: &ScoreMatrix) -> f64 {
    task_means(scores).sum::<f64>() / scores.tasks().len() as f64
}

/// Median of the task means `x̄_m`; the mean of the middle two for an even number of tasks. For one
/// task this is the mean of its runs. [`Summary`](crate::Summary) has the median of the runs.
pub fn median(scores: &ScoreMatrix) -> f64 {
    let mut means: Vec<f64> = task_means(scores).collect();
    means.sort_unstable_by(f64::total_cmp);
    middle(&means)
}

/// Interquartile mean: the mean of all `M·N` pooled scores without the `⌊MN/4⌋` lowest and the
/// `⌊MN/4⌋` highest.
///
/// ```
/// use overtone_eval::statistics::{ScoreMatrix, iqm};
/// let scores = ScoreMatrix::new([("a", vec![0.0, 10.0]), ("b", vec![20.0, 900.0])]).unwrap();
/// assert_eq!(iqm(&scores), 15.0);
/// ```
pub fn iqm(scores: &ScoreMatrix) -> f64 {
    let mut sorted = scores.pooled().to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    interquartile_mean(&sorted)
}

/// Average distance of the scores below `gamma`: `γ − 1/(MN) Σ min(x, γ)`. Scores above `gamma` do
/// not compensate for lower scores.
pub fn optimality_gap(scores: &ScoreMatrix, gamma: f64) -> f64 {
    let pooled = scores.pooled();
    gamma - pooled.iter().map(|score| score.min(gamma)).sum::<f64>() / pooled.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores() -> ScoreMatrix {
        let tasks = [
            ("a", vec![1.0, 3.0, 5.0]),
            ("b", vec![-2.0, 0.0, 2.0]),
            ("c", vec![90.0, 10.0, 20.0]),
        ];
        ScoreMatrix::new(tasks).unwrap()
    }

    #[test]
    fn values_by_hand() {
        // Task means 3, 0, 40.
        assert!((mean(&scores()) - 43.0 / 3.0).abs() < 1e-12);
        assert_eq!(median(&scores()), 3.0);
        // -2 0 | 1 2 3 5 10 | 20 90: ⌊9/4⌋ = 2 scores are omitted at each end; 21 / 5.
        assert!((iqm(&scores()) - 4.2).abs() < 1e-12);
        // γ = 4: 1 + 3 + 4 - 2 + 0 + 2 + 4 + 4 + 4 = 20; 4 - 20/9.
        assert!((optimality_gap(&scores(), 4.0) - 16.0 / 9.0).abs() < 1e-12);
    }

    #[test]
    fn equal_scores_are_their_own_mean_median_and_iqm() {
        let same = ScoreMatrix::new([("a", vec![6.5; 3]), ("b", vec![6.5; 3])]).unwrap();
        assert_eq!([mean(&same), median(&same), iqm(&same)], [6.5; 3]);
        assert_eq!([optimality_gap(&same, 10.0), optimality_gap(&same, 6.0)], [3.5, 0.0]);
    }

    #[test]
    fn aggregates_are_equivariant_to_shift_and_scale() {
        let moved = scores();
        let tasks = moved.tasks().iter().zip(moved.rows());
        let moved = ScoreMatrix::new(
            tasks.map(|(task, runs)| (task.clone(), runs.iter().map(|x| 2.0 * x - 7.0).collect())),
        )
        .unwrap();
        for statistic in [mean, median, iqm] {
            assert!((statistic(&moved) - (2.0 * statistic(&scores()) - 7.0)).abs() < 1e-12);
        }
    }

    #[test]
    fn intervals_contain_their_estimates() {
        let aggregates = Aggregates::of(&scores(), 4.0, &Bootstrap::default()).unwrap();
        for estimate in
            [aggregates.mean, aggregates.median, aggregates.iqm, aggregates.optimality_gap]
        {
            let interval = estimate.interval.unwrap();
            assert!(
                interval.low < estimate.value && estimate.value < interval.high,
                "{aggregates:?}"
            );
        }
        let alone = ScoreMatrix::new([("a", vec![1.0]), ("b", vec![2.0])]).unwrap();
        let aggregates = Aggregates::of(&alone, 4.0, &Bootstrap::default()).unwrap();
        assert_eq!((aggregates.iqm.value, aggregates.iqm.interval), (1.5, None));
        assert!(matches!(
            Aggregates::of(&alone, f64::NAN, &Bootstrap::default()),
            Err(StatisticsError::Threshold(gamma)) if gamma.is_nan()
        ));
    }
}
