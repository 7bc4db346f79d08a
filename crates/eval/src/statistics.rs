//! Statistics over runs and tasks: robust point estimates and their confidence intervals.
//!
//! They follow Agarwal et al. 2021, *Deep Reinforcement Learning at the Edge of the Statistical
//! Precipice*, and equal the numbers of its library `rliable` (1.2.0). Scores are `x[m][n]`: run `n`
//! (a training seed) of task `m`, with `N` runs of each of `M` tasks. Aggregates over tasks need
//! normalized scores, so that all tasks have the same units.
//!
//! | statistic | formula |
//! | --- | --- |
//! | [`mean`] | `1/M Σ_m x̄_m` with `x̄_m = 1/N Σ_n x[m][n]` |
//! | [`median`] | the median of the task means `x̄_m` |
//! | [`iqm`] | the mean of the middle half of all `M·N` scores, pooled |
//! | [`optimality_gap`] | `γ − 1/(MN) Σ min(x[m][n], γ)` |
//! | [`profile`](performance_profile) | `F̂(τ) = 1/(MN) Σ 1[x[m][n] > τ]` |
//! | [`improvement`](probability_of_improvement) | `P(X > Y) = 1/M Σ_m 1/(NK) Σ_{n,k} S(x[m][n], y[m][k])`, `S` 1, ½, 0 for greater, equal, less |
//!
//! Intervals are percentiles of a stratified bootstrap ([`Bootstrap`]). With one run of each task
//! there is no interval, because the variation between runs is unknown. A [`proportion`] of episodes
//! has Wilson's interval.

mod aggregate;
mod bootstrap;
mod improvement;
mod matrix;
mod profile;
mod proportion;
mod rank_correlation;

pub use aggregate::{Aggregates, iqm, mean, median, optimality_gap};
pub use bootstrap::{Bootstrap, Estimate};
pub use improvement::{improvement, probability_of_improvement};
pub use matrix::ScoreMatrix;
pub use profile::{ProfilePoint, performance_profile};
pub use proportion::proportion;
pub use rank_correlation::spearman;

/// Errors of statistics.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StatisticsError {
    /// There are no tasks.
    #[error("expected the scores of at least one task")]
    NoTask,
    /// A task has no runs.
    #[error("expected at least one run of `{task}`")]
    NoRun {
        /// The task.
        task: String,
    },
    /// A task appears twice.
    #[error("`{task}` appears twice")]
    Twice {
        /// The task.
        task: String,
    },
    /// Tasks have different numbers of runs. In a pool, tasks with more runs would count more.
    #[error("`{task}` has {got} runs, expected {expected} like the tasks before it")]
    Unequal {
        /// The first task that differs.
        task: String,
        /// Number of runs of the first task.
        expected: usize,
        /// Number of runs of this task.
        got: usize,
    },
    /// A score is not finite.
    #[error("run {run} of `{task}` has the score {score}, expected a finite number")]
    NotFinite {
        /// The task.
        task: String,
        /// Number of the run, from 0.
        run: usize,
        /// The score.
        score: f64,
    },
    /// A threshold is not a valid number.
    #[error("invalid threshold {0}: expected a number")]
    Threshold(f64),
    /// Two sets of scores have different tasks, or another order of tasks.
    #[error("tasks differ: {x:?} and {y:?}")]
    OtherTasks {
        /// Tasks of the first set.
        x: Vec<String>,
        /// Tasks of the second set.
        y: Vec<String>,
    },
    /// The number of bootstrap replications is out of range.
    #[error("invalid number of bootstrap replications {got}: expected 1 to {most}")]
    Replications {
        /// The given number.
        got: usize,
        /// The maximum.
        most: usize,
    },
    /// The confidence level is out of range.
    #[error("invalid confidence level {0}: expected a number between 0 and 1")]
    Level(f64),
}
