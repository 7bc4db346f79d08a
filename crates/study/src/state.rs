//! Status of a study and of its cells.

use std::{collections::BTreeMap, fmt, path::Path};

use serde::Serialize;

/// State of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// Not started.
    Waiting,
    /// In a Slurm queue.
    Queued {
        /// The job, such as `12_3`.
        job: String,
    },
    /// A process is working on it.
    Running {
        /// The last step in its metrics.
        step: u64,
        /// Steps of the whole run, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        of: Option<u64>,
    },
    /// Started but unfinished, and no process is working on it.
    Stopped {
        /// The last step in its metrics.
        step: u64,
        /// Steps of the whole run, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        of: Option<u64>,
    },
    /// Trained, and no evaluation was requested.
    Trained,
    /// Trained and evaluated.
    Played,
    /// The last process ended with an error.
    Failed {
        /// The error.
        error: String,
    },
}

/// A cell and its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CellStatus {
    /// The cell's id.
    pub cell: String,
    /// The settings that distinguish the cell, without the seed.
    pub label: String,
    /// The state.
    #[serde(flatten)]
    pub state: State,
    /// The run, if it has started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// Status of a study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Name of the study.
    pub study: String,
    /// Number of cells by the name of their state.
    pub counts: BTreeMap<&'static str, usize>,
    /// All cells.
    pub cells: Vec<CellStatus>,
}

impl State {
    /// Name of the state, as in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Queued { .. } => "queued",
            Self::Running { .. } => "running",
            Self::Stopped { .. } => "stopped",
            Self::Trained => "trained",
            Self::Played => "played",
            Self::Failed { .. } => "failed",
        }
    }

    /// Whether the cell is finished.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Trained | Self::Played)
    }

    /// Whether the cell is running or queued.
    pub fn is_under_way(&self) -> bool {
        matches!(self, Self::Running { .. } | Self::Queued { .. })
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = |f: &mut fmt::Formatter<'_>, what: &str, step: &u64, of: &Option<u64>| match of {
            Some(of) if step == of => write!(f, "{what} after its last step, {of}"),
            Some(of) => write!(f, "{what}, step {step} of {of}"),
            None => write!(f, "{what}, step {step}"),
        };
        match self {
            Self::Queued { job } => write!(f, "queued (job {job})"),
            Self::Running { step: at, of } => step(f, "running", at, of),
            Self::Stopped { step: at, of } => step(f, "stopped", at, of),
            Self::Failed { error } => write!(f, "failed: {error}"),
            Self::Waiting | Self::Trained | Self::Played => f.write_str(self.name()),
        }
    }
}

impl Status {
    /// The status of the study `study` with these cells.
    pub fn new(study: &str, cells: Vec<CellStatus>) -> Self {
        let mut counts = BTreeMap::new();
        for cell in &cells {
            *counts.entry(cell.state.name()).or_default() += 1;
        }
        Self { study: study.to_owned(), counts, cells }
    }

    /// Number of cells in each state: `3 cells: 1 failed, 2 played`.
    pub fn summary(&self) -> String {
        let counts: Vec<String> =
            self.counts.iter().map(|(name, n)| format!("{n} {name}")).collect();
        let cells = if self.cells.len() == 1 { "cell" } else { "cells" };
        format!("{} {cells}: {}", self.cells.len(), counts.join(", "))
    }

    /// The status as indented JSON.
    ///
    /// # Errors
    /// When serialization fails, which does not happen for any state.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widest = self.cells.iter().map(|cell| cell.cell.len()).max().unwrap_or(0);
        for cell in &self.cells {
            write!(f, "{:widest$}  {}", cell.cell, cell.state)?;
            match &cell.run {
                Some(run) => writeln!(f, "  {run}")?,
                None => writeln!(f)?,
            }
        }
        write!(f, "{}: {}", self.study, self.summary())
    }
}

/// The last step in a run's metrics; 0 without metrics.
pub fn last_step(run: &Path) -> u64 {
    let text = std::fs::read_to_string(run.join("metrics.csv")).unwrap_or_default();
    // A last line without a line break is incomplete.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let step = |line: &str| line.split(',').next().and_then(|cell| cell.parse().ok());
    whole.lines().next_back().and_then(step).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_shown_and_counted() {
        let cell = |id: &str, state| CellStatus {
            cell: id.into(),
            label: "all".into(),
            state,
            run: (id == "b").then(|| "runs/x".into()),
        };
        let status = Status::new(
            "a",
            vec![
                cell("one", State::Waiting),
                cell("b", State::Running { step: 3, of: Some(9) }),
                cell("c", State::Failed { error: "no data".into() }),
                cell("d", State::Failed { error: "no disk".into() }),
                cell("e", State::Stopped { step: 9, of: Some(9) }),
            ],
        );
        let text = status.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "b    running, step 3 of 9  runs/x");
        assert_eq!(lines[2], "c    failed: no data");
        assert_eq!(lines[4], "e    stopped after its last step, 9");
        assert_eq!(lines[5], "a: 5 cells: 2 failed, 1 running, 1 stopped, 1 waiting");
        let json: serde_json::Value = serde_json::from_str(&status.to_json().unwrap()).unwrap();
        assert_eq!(json["counts"]["failed"], 2);
        assert_eq!(json["cells"][1]["state"], "running");
        assert_eq!(json["cells"][1]["step"], 3);
        assert_eq!(json["cells"][2]["error"], "no data");
        assert!(json["cells"][0].get("run").is_none());
    }

    #[test]
    fn the_last_complete_row_has_the_step() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(last_step(folder.path()), 0);
        let metrics = folder.path().join("metrics.csv");
        for (text, step) in [("step,loss\n", 0), ("step,loss\n4,1\n8,1\n12,", 8)] {
            std::fs::write(&metrics, text).unwrap();
            assert_eq!(last_step(folder.path()), step);
        }
    }
}
