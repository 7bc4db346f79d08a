//! Scores by task and run.

use overtone_core::seed::Generator;
use rand::RngExt;

use super::StatisticsError;

/// Finite scores of several tasks with the same number of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreMatrix {
    tasks: Vec<String>,
    n_runs: usize,
    /// `[task, run]`, row-major.
    scores: Vec<f64>,
}

impl ScoreMatrix {
    /// A matrix of the scores of each task's runs.
    ///
    /// # Errors
    /// When `tasks` is empty, a task has no runs, the numbers of runs differ, a task appears twice, or
    /// a score is not finite.
    ///
    /// ```
    /// use overtone_eval::statistics::{ScoreMatrix, mean};
    /// let scores = ScoreMatrix::new([("hopper", vec![60.0, 80.0]), ("walker2d", vec![100.0, 40.0])]);
    /// assert_eq!(mean(&scores.unwrap()), 70.0);
    /// ```
    pub fn new<T: Into<String>>(
        tasks: impl IntoIterator<Item = (T, Vec<f64>)>,
    ) -> Result<Self, StatisticsError> {
        let mut matrix = Self { tasks: Vec::new(), n_runs: 0, scores: Vec::new() };
        for (task, runs) in tasks {
            matrix.push(task.into(), &runs)?;
        }
        if matrix.tasks.is_empty() {
            return Err(StatisticsError::NoTask);
        }
        Ok(matrix)
    }

    /// A matrix of the scores of one task's runs.
    ///
    /// # Errors
    /// When `runs` is empty or contains a non-finite score.
    pub fn one_task(task: &str, runs: &[f64]) -> Result<Self, StatisticsError> {
        Self::new([(task, runs.to_vec())])
    }

    fn push(&mut self, task: String, runs: &[f64]) -> Result<(), StatisticsError> {
        if runs.is_empty() {
            return Err(StatisticsError::NoRun { task });
        }
        if self.tasks.contains(&task) {
            return Err(StatisticsError::Twice { task });
        }
        if let Some(run) = runs.iter().position(|score| !score.is_finite()) {
            return Err(StatisticsError::NotFinite { task, run, score: runs[run] });
        }
        if self.tasks.is_empty() {
            self.n_runs = runs.len();
        } else if runs.len() != self.n_runs {
            let (expected, got) = (self.n_runs, runs.len());
            return Err(StatisticsError::Unequal { task, expected, got });
        }
        self.tasks.push(task);
        self.scores.extend(runs);
        Ok(())
    }

    /// Names of the tasks.
    pub fn tasks(&self) -> &[String] {
        &self.tasks
    }

    /// Number of runs of each task.
    pub fn n_runs(&self) -> usize {
        self.n_runs
    }

    /// The scores of each task.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.scores.chunks(self.n_runs)
    }

    /// All scores, sorted by task.
    pub fn pooled(&self) -> &[f64] {
        &self.scores
    }

    /// Fills `other`, a matrix of the same size, with runs sampled with replacement within each
    /// task.
    pub(super) fn resample(&self, generator: &mut Generator, other: &mut Self) {
        for (from, to) in self.rows().zip(other.scores.chunks_mut(self.n_runs)) {
            to.fill_with(|| from[generator.random_range(0..from.len())]);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[track_caller]
    fn rejected(tasks: &[(&str, &[f64])], expected: StatisticsError) {
        let tasks = tasks.iter().map(|(task, runs)| (*task, runs.to_vec()));
        assert_eq!(ScoreMatrix::new(tasks), Err(expected));
    }

    #[test]
    fn invalid_scores_are_rejected() {
        let task = || "b".to_owned();
        let good: (&str, &[f64]) = ("a", &[1.0, 2.0, 3.0]);
        rejected(&[], StatisticsError::NoTask);
        rejected(&[good, ("b", &[])], StatisticsError::NoRun { task: task() });
        rejected(&[good, good], StatisticsError::Twice { task: "a".into() });
        let unequal = StatisticsError::Unequal { task: task(), expected: 3, got: 2 };
        rejected(&[good, ("b", &[1.0, 2.0])], unequal);
        let infinite =
            StatisticsError::NotFinite { task: task(), run: 1, score: f64::NEG_INFINITY };
        rejected(&[good, ("b", &[1.0, f64::NEG_INFINITY, 2.0])], infinite);
        let nan = ScoreMatrix::one_task("b", &[f64::NAN]).unwrap_err();
        let expected = "run 0 of `b` has the score NaN, expected a finite number";
        assert_eq!(nan.to_string(), expected);
    }

    #[test]
    fn resampling_stays_within_a_task() {
        let scores = ScoreMatrix::new([("a", vec![1.0, 2.0, 3.0]), ("b", vec![10.0, 20.0, 30.0])]);
        let scores = scores.unwrap();
        let mut drawn = scores.clone();
        let mut seen = std::collections::BTreeSet::new();
        let mut generator = Generator::seed_from_u64(1);
        for _ in 0..100 {
            scores.resample(&mut generator, &mut drawn);
            assert!(drawn.scores[..3].iter().all(|score| scores.scores[..3].contains(score)));
            assert!(drawn.scores[3..].iter().all(|score| scores.scores[3..].contains(score)));
            seen.insert(drawn.scores.iter().map(|score| *score as u64).collect::<Vec<_>>());
        }
        // There are 27 · 27 equally likely matrices, so few of 100 samples are equal.
        assert!(seen.len() > 80, "{}", seen.len());
    }
}
