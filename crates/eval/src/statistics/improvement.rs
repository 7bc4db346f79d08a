//! Probability of improvement of one agent over another.

use overtone_core::seed::Generator;

use super::bootstrap::Sample;
use super::{Bootstrap, Estimate, ScoreMatrix, StatisticsError};

/// Probability of improvement: the probability that a run of `x` scores higher than a run of `y` on
/// the same task, averaged over tasks (Agarwal et al. 2021, appendix A.4).
///
/// The formula is `1/M Σ_m U_m/(NK)` with Mann and Whitney's `U_m`: the number of the `N·K` pairs of
/// runs in which `x` is higher. Ties count as half. The two agents can have different numbers of
/// runs.
///
/// # Errors
/// When the tasks or their order differ.
///
/// ```
/// use overtone_eval::statistics::{ScoreMatrix, probability_of_improvement};
/// let [x, y] = [[3.0, 5.0], [3.0, 4.0]].map(|runs| ScoreMatrix::one_task("a", &runs).unwrap());
/// // 3 = 3, 3 < 4, 5 > 3, 5 > 4.
/// assert_eq!(probability_of_improvement(&x, &y), Ok(2.5 / 4.0));
/// ```
pub fn probability_of_improvement(
    x: &ScoreMatrix,
    y: &ScoreMatrix,
) -> Result<f64, StatisticsError> {
    if x.tasks() != y.tasks() {
        let (x, y) = (x.tasks().to_vec(), y.tasks().to_vec());
        return Err(StatisticsError::OtherTasks { x, y });
    }
    Ok(of_same_tasks(x, y))
}

/// [`probability_of_improvement`] with its interval. Runs of `x` and `y` are resampled independently.
/// There is no interval if either agent has only one run.
///
/// # Errors
/// When the tasks differ or `bootstrap` is invalid.
pub fn improvement(
    x: &ScoreMatrix,
    y: &ScoreMatrix,
    bootstrap: &Bootstrap,
) -> Result<Estimate, StatisticsError> {
    let value = probability_of_improvement(x, y)?;
    let pair = (x.clone(), y.clone());
    let intervals = bootstrap.intervals(&pair, 1, |(x, y), out| out[0] = of_same_tasks(x, y))?;
    Ok(Estimate { value, interval: intervals.map(|intervals| intervals[0]) })
}

impl Sample for (ScoreMatrix, ScoreMatrix) {
    fn draw(&self, generator: &mut Generator, other: &mut Self) {
        self.0.resample(generator, &mut other.0);
        self.1.resample(generator, &mut other.1);
    }

    fn fewest_runs(&self) -> usize {
        self.0.n_runs().min(self.1.n_runs())
    }
}

fn of_same_tasks(x: &ScoreMatrix, y: &ScoreMatrix) -> f64 {
    let sum: f64 = x.rows().zip(y.rows()).map(|(x, y)| fraction_of_pairs(x, y)).sum();
    sum / x.tasks().len() as f64
}

/// The fraction of pairs in which `x` is higher. Ties count as half.
fn fraction_of_pairs(x: &[f64], y: &[f64]) -> f64 {
    let mut sorted = y.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let u: f64 = x
        .iter()
        .map(|x| {
            let lower = sorted.partition_point(|y| y < x);
            let up_to = sorted.partition_point(|y| y <= x);
            (lower + up_to) as f64 / 2.0
        })
        .sum();
    u / (x.len() * y.len()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(tasks: &[(&str, &[f64])]) -> ScoreMatrix {
        ScoreMatrix::new(tasks.iter().map(|(task, runs)| (*task, runs.to_vec()))).unwrap()
    }

    #[test]
    fn tasks_have_equal_weights() {
        // Task a: all 2 · 3 pairs. Task b: 0 and -0 are a tie and 0 > -1 twice, so
        // (0.5 + 1 + 1) · 2 / 6.
        let x = matrix(&[("a", &[5.0, 6.0]), ("b", &[0.0, 0.0])]);
        let y = matrix(&[("a", &[1.0, 2.0, 3.0]), ("b", &[-0.0, -1.0, -1.0])]);
        let p = probability_of_improvement(&x, &y).unwrap();
        assert!((p - (1.0 + 5.0 / 6.0) / 2.0).abs() < 1e-12, "{p}");
        let other = probability_of_improvement(&y, &x).unwrap();
        assert!((p + other - 1.0).abs() < 1e-12, "the two probabilities sum to 1");
    }

    #[test]
    fn an_agent_does_not_improve_on_itself() {
        let x = matrix(&[("a", &[3.0, 1.0, 1.0, 9.0]), ("b", &[-4.0, 0.0, 2.0, 2.5])]);
        assert_eq!(probability_of_improvement(&x, &x), Ok(0.5));
        let estimate = improvement(&x, &x, &Bootstrap::default()).unwrap();
        let interval = estimate.interval.unwrap();
        assert!(interval.low < 0.5 && 0.5 < interval.high);
        assert!((interval.low + interval.high - 1.0).abs() < 0.02, "{interval:?}");
    }

    #[test]
    fn an_interval_needs_two_runs_of_each_agent() {
        let [one, two] = [&[1.0][..], &[1.0, 2.0]].map(|runs| matrix(&[("a", runs)]));
        let interval = |x, y| improvement(x, y, &Bootstrap::default()).unwrap().interval;
        assert_eq!((interval(&one, &two), interval(&two, &one)), (None, None));
        assert!(interval(&two, &two).is_some());
    }

    #[test]
    fn different_tasks_are_rejected() {
        let [x, y] = ["a", "b"].map(|task| matrix(&[(task, &[1.0, 2.0])]));
        let error = improvement(&x, &y, &Bootstrap::default()).unwrap_err();
        assert_eq!(error.to_string(), "tasks differ: [\"a\"] and [\"b\"]");
    }
}
