//! [`StudyCell`]: what a study compares, and when it has enough seeds for it.

use super::run_files::RunFiles;
use super::unique;

/// Minimum number of training seeds for comparing agents.
pub(super) const ENOUGH: usize = 4;

/// A cell of a study: runs that differ only in their seed.
#[derive(Clone, Debug)]
pub struct StudyCell {
    /// The settings that distinguish the cell from all others.
    pub label: String,
    /// The task and its data, such as `Hopper medium`. Cells of one task are compared.
    pub task: String,
    /// The settings that distinguish the cell within its task; empty if the task has one cell.
    pub agent: String,
    /// The evaluated and the judged runs.
    pub runs: Vec<RunFiles>,
    /// The runs that failed. One of them can have evaluations, from before it failed.
    pub failed: Vec<FailedRun>,
    /// Number of the other runs that have not been evaluated yet.
    pub missing: usize,
}

/// A run of a study that failed.
#[derive(Clone, Debug)]
pub struct FailedRun {
    /// The run's name in the study.
    pub name: String,
    /// The reason.
    pub error: String,
}

/// The note in a heading about too few seeds for a comparison of `agents`, which have these numbers
/// of seeds.
pub(super) fn caveat(agents: &str, seeds: &[usize]) -> Option<String> {
    let fewest = seeds.iter().min().filter(|fewest| **fewest < ENOUGH)?;
    let n_compared = seeds.iter().filter(|n| **n >= ENOUGH).count();
    Some(match (n_compared, fewest) {
        (2.., _) => format!("not all {agents} have {ENOUGH} seeds"),
        (_, 1) => "one seed, no comparison".into(),
        (_, n) => format!("{n} seeds, no comparison"),
    })
}

/// The tasks of cells, each once.
pub(super) fn tasks(cells: &[StudyCell]) -> Vec<&str> {
    unique(cells.iter().map(|cell| cell.task.as_str()))
}
