//! The stratified bootstrap: the variation of an estimate over other samples of runs.

use overtone_core::Interval;
use overtone_core::seed::{Generator, derive, derive_nth};
use rand::SeedableRng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{ScoreMatrix, StatisticsError};

/// Parameters of the stratified bootstrap (Agarwal et al. 2021, section 4.1).
///
/// In each replication, runs are sampled with replacement within each task, and the estimate is
/// computed for the sample. The number of runs stays the same. The interval lies between two
/// percentiles of these estimates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bootstrap {
    /// Number of replications.
    pub replications: usize,
    /// Fraction of the estimates inside the interval, such as 0.95.
    pub level: f64,
    /// Seed of the sampling. The result does not depend on the number of cores.
    pub seed: u64,
}

/// A number estimated from runs or episodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The value for the given runs or episodes.
    pub value: f64,
    /// The interval. Absent if a task has only one run.
    pub interval: Option<Interval>,
}

/// Data that the bootstrap can resample.
pub(super) trait Sample: Clone + Sync {
    /// Fills `other`, which has the same size, with a new sample.
    fn draw(&self, generator: &mut Generator, other: &mut Self);
    /// Minimum number of runs of a task.
    fn fewest_runs(&self) -> usize;
}

impl Sample for ScoreMatrix {
    fn draw(&self, generator: &mut Generator, other: &mut Self) {
        self.resample(generator, other);
    }

    fn fewest_runs(&self) -> usize {
        self.n_runs()
    }
}

/// Maximum number of replications. More would not be more precise but need too much memory: a
/// profile stores 101 numbers for each.
const MOST_REPLICATIONS: usize = 1_000_000;

impl Default for Bootstrap {
    /// 50,000 replications and level 95 %, as in the paper.
    fn default() -> Self {
        Self { replications: 50_000, level: 0.95, seed: 0 }
    }
}

impl Bootstrap {
    /// The level in percent, rounded for display: 57 for 0.57, not 56.99999999999999.
    pub fn percent(&self) -> f64 {
        (1e8 * self.level).round() / 1e6
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// When `replications` is 0 or too large, or `level` is not between 0 and 1.
    pub fn check(&self) -> Result<(), StatisticsError> {
        let &Self { replications, level, .. } = self;
        if !(1..=MOST_REPLICATIONS).contains(&replications) {
            return Err(StatisticsError::Replications {
                got: replications,
                most: MOST_REPLICATIONS,
            });
        }
        if !(level > 0.0 && level < 1.0) {
            return Err(StatisticsError::Level(level));
        }
        Ok(())
    }

    /// The value of `statistic` for `scores`, with its interval.
    ///
    /// # Errors
    /// The same as [`check`](Self::check).
    pub fn estimate(
        &self,
        scores: &ScoreMatrix,
        statistic: impl Fn(&ScoreMatrix) -> f64 + Sync,
    ) -> Result<Estimate, StatisticsError> {
        self.estimates(scores, |scores| [statistic(scores)]).map(|[estimate]| estimate)
    }

    /// Several statistics with intervals from the same samples.
    ///
    /// # Errors
    /// The same as [`estimate`](Self::estimate).
    pub fn estimates<const N: usize>(
        &self,
        scores: &ScoreMatrix,
        statistics: impl Fn(&ScoreMatrix) -> [f64; N] + Sync,
    ) -> Result<[Estimate; N], StatisticsError> {
        let fill = |scores: &ScoreMatrix, out: &mut [f64]| out.copy_from_slice(&statistics(scores));
        let values = statistics(scores);
        let intervals = self.intervals(scores, N, fill)?;
        let interval = |i: usize| intervals.as_ref().map(|intervals| intervals[i]);
        Ok(std::array::from_fn(|i| Estimate { value: values[i], interval: interval(i) }))
    }

    /// Intervals of the `n` numbers that `statistics` computes from a sample; `None` if a task has
    /// only one run.
    pub(super) fn intervals<S: Sample + Send>(
        &self,
        sample: &S,
        n: usize,
        statistics: impl Fn(&S, &mut [f64]) + Sync,
    ) -> Result<Option<Vec<Interval>>, StatisticsError> {
        self.check()?;
        let &Self { replications, level, seed } = self;
        if sample.fewest_runs() < 2 || n == 0 {
            return Ok(None);
        }
        let seed = derive(seed, "bootstrap");
        // [replication, statistic]. Each replication has its own seed, so the order of the threads
        // does not affect the result.
        let mut drawn = vec![0.0; replications * n];
        drawn.par_chunks_mut(n).with_min_len(256).enumerate().for_each_init(
            || sample.clone(),
            |other, (i, out)| {
                let mut generator = Generator::seed_from_u64(derive_nth(seed, i as u64));
                sample.draw(&mut generator, other);
                statistics(other, out);
            },
        );
        let interval = |i: usize| {
            let drawn = drawn.iter().skip(i).step_by(n).copied().collect();
            Interval::central(drawn, level)
        };
        Ok(Some((0..n).into_par_iter().map(interval).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::mean;

    fn runs(n: usize) -> ScoreMatrix {
        // 0, 1, 2, 3, 4 repeated, so the spread does not depend on n.
        let scores: Vec<f64> = (0..n).map(|i| (i % 5) as f64).collect();
        ScoreMatrix::one_task("a", &scores).unwrap()
    }

    fn interval(n: usize, bootstrap: Bootstrap) -> Interval {
        bootstrap.estimate(&runs(n), mean).unwrap().interval.unwrap()
    }

    #[test]
    fn the_interval_of_a_mean_agrees_with_theory() {
        // A mean of 100 scores of variance 2 (0, 1, 2, 3, 4): nearly normal with a standard
        // deviation of √(2/100) = 0.1414, so 2 ± 1.96 · 0.1414.
        let Interval { low, high } = interval(100, Bootstrap::default());
        assert!((low - 1.7228).abs() < 0.01 && (high - 2.2772).abs() < 0.01, "{low} {high}");
        let half = Bootstrap { level: 0.5, ..Bootstrap::default() };
        let Interval { low, high } = interval(100, half);
        assert!((low - 1.9046).abs() < 0.011 && (high - 2.0954).abs() < 0.011, "{low} {high}");
    }

    #[test]
    fn more_runs_make_the_interval_narrower() {
        let width = |n| {
            let Interval { low, high } = interval(n, Bootstrap::default());
            assert!(low <= 2.0 && 2.0 <= high, "the estimate lies inside");
            high - low
        };
        let [few, more, most] = [5, 20, 80].map(width);
        assert!(few > 1.5 * more && more > 1.5 * most, "{few} {more} {most}");
    }

    #[test]
    fn the_interval_depends_only_on_the_seed() {
        let seeded = |seed| Bootstrap { replications: 1000, seed, ..Bootstrap::default() };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let alone = pool.install(|| interval(7, seeded(3)));
        assert_eq!(interval(7, seeded(3)), alone, "on any number of cores");
        assert_ne!(interval(7, seeded(4)), alone);
    }

    #[test]
    fn one_run_has_no_interval_and_equal_runs_have_an_empty_one() {
        let estimate = Bootstrap::default().estimate(&runs(1), mean).unwrap();
        assert_eq!(estimate, Estimate { value: 0.0, interval: None });
        let same = ScoreMatrix::one_task("a", &[2.5; 4]).unwrap();
        let estimate = Bootstrap::default().estimate(&same, mean).unwrap();
        assert_eq!(estimate.interval, Some(Interval { low: 2.5, high: 2.5 }));
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        let error = |replications, level| {
            let bootstrap = Bootstrap { replications, level, seed: 0 };
            bootstrap.estimate(&runs(5), mean).unwrap_err()
        };
        for replications in [0, 1_000_001, usize::MAX] {
            let error = error(replications, 0.95);
            assert!(matches!(error, StatisticsError::Replications { .. }), "{error}");
        }
        for level in [0.0, 1.0, f64::NAN] {
            let error = error(10, level);
            assert!(matches!(error, StatisticsError::Level(_)), "{error}");
        }
    }

    #[test]
    fn a_level_is_shown_in_percent() {
        let percent = |level| Bootstrap { level, ..Bootstrap::default() }.percent().to_string();
        assert_eq!([0.57, 0.95, 0.999].map(percent), ["57", "95", "99.9"]);
    }
}
