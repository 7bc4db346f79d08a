//! Statistics over runs and tasks: point estimates that few runs do not mislead, and intervals
//! that say how far they can be trusted.
//!
//! After Agarwal et al. 2021, *Deep Reinforcement Learning at the Edge of the Statistical
//! Precipice*; the numbers are those of its library `rliable` (1.2.0). Scores are `x[m][n]`:
//! run `n` (a training seed) of task `m`, with `N` runs of each of `M` tasks. Scores of several
//! tasks must be in common units to be put together: normalized ones.
//!
//! | what | formula |
//! | --- | --- |
//! | [`mean`] | `1/M Σ_m x̄_m` with `x̄_m = 1/N Σ_n x[m][n]` |
//! | [`median`] | the median of the task means `x̄_m` |
//! | [`iqm`] | the mean of the middle half of all `M·N` scores, pooled |
//! | [`optimality_gap`] | `γ − 1/(MN) Σ min(x[m][n], γ)` |
//! | [`profile`](performance_profile) | `F̂(τ) = 1/(MN) Σ 1[x[m][n] > τ]` |
//! | [`improvement`](probability_of_improvement) | `P(X > Y) = 1/M Σ_m 1/(NK) Σ_{n,k} S(x[m][n], y[m][k])`, `S` 1, ½, 0 for greater, equal, less |
//!
//! Intervals are percentiles of a stratified bootstrap ([`Bootstrap`]). With one run of each
//! task nothing is known about other runs: there is no interval then.

mod aggregate;
mod bootstrap;
mod improvement;
mod matrix;
mod profile;

pub use aggregate::{Aggregates, iqm, mean, median, optimality_gap};
pub use bootstrap::{Bootstrap, Estimate, Interval};
pub use improvement::{improvement, probability_of_improvement};
pub use matrix::ScoreMatrix;
pub use profile::{ProfilePoint, performance_profile};

/// Why scores have no statistics.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StatisticsError {
    /// There is no task.
    #[error("there are no scores")]
    NoTask,
    /// A task without a run.
    #[error("there is no run of `{task}`")]
    NoRun {
        /// The task.
        task: String,
    },
    /// A task that is there twice.
    #[error("`{task}` is there twice")]
    Twice {
        /// The task.
        task: String,
    },
    /// Tasks of unequal numbers of runs: pooled, those with more would count more.
    #[error("`{task}` has {got} runs, the tasks before it {expected}")]
    Unequal {
        /// The first task that differs.
        task: String,
        /// Runs of the first task.
        expected: usize,
        /// Its runs.
        got: usize,
    },
    /// A score that is no finite number.
    #[error("run {run} of `{task}` has the score {score}")]
    NotFinite {
        /// The task.
        task: String,
        /// Number of the run, from 0.
        run: usize,
        /// The score.
        score: f64,
    },
    /// A threshold that is no number.
    #[error("a threshold is {0}")]
    Threshold(f64),
    /// Two sets of scores that are not of the same tasks in the same order.
    #[error("tasks differ: {x:?} and {y:?}")]
    OtherTasks {
        /// Tasks of the one.
        x: Vec<String>,
        /// Tasks of the other.
        y: Vec<String>,
    },
    /// A bootstrap of too few replications, or too many.
    #[error("{got} bootstrap replications: there must be 1 to {most}")]
    Replications {
        /// How many were asked for.
        got: usize,
        /// How many there may be.
        most: usize,
    },
    /// A bootstrap of no share.
    #[error("a bootstrap for a level of {0}: it must lie between 0 and 1")]
    Level(f64),
}
