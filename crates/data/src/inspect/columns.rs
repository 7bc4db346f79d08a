//! What a recording in memory holds, counted.

use std::fmt;

use overtone_core::Outcome;
use serde::{Serialize, Serializer};

use crate::columns::{Columns, Seen};
use crate::dataset::Acted;
use crate::inspect::spread::{Returns, Spread};

/// What a recording holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnsInspection {
    /// Name of the file, without its folder.
    pub file: String,
    /// How it is laid out.
    #[serde(serialize_with = "lower_case")]
    pub format: &'static str,
    /// Steps, each counted once.
    pub transitions: u64,
    /// Numbers of an observation.
    pub observation_width: usize,
    /// Numbers of an action.
    pub action_width: usize,
    /// Finished episodes.
    pub episodes: u64,
    /// Of them, those that the task ended.
    pub terminated: u64,
    /// Of them, those that a step limit ended.
    pub truncated: u64,
    /// Episodes that the end of the recording cuts.
    pub fragments: u64,
    /// Steps in them.
    pub fragment_transitions: u64,
    /// Returns of the finished episodes.
    pub returns: Returns,
    /// Lengths of the finished episodes, in steps.
    pub lengths: Spread,
    /// `[observation_width]`, each number of the observations.
    pub observations: Vec<Range>,
    /// `[action_width]`, each number of the actions.
    pub actions: Vec<Range>,
    /// Steps with a number of their action outside [-1, 1].
    pub actions_outside: u64,
    /// The rewards.
    pub rewards: Range,
    /// Anything that is not as the format has it, or that training would stumble over.
    pub odd: Vec<String>,
}

/// How one number of every step is spread; all 0 where there is no step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Range {
    /// Its mean.
    pub mean: f64,
    /// Its standard deviation over the steps (n, not n - 1: as observations are normalized).
    pub std: f64,
    /// The smallest.
    pub min: f32,
    /// The largest.
    pub max: f32,
}

impl Range {
    /// Of number `place` of every row of `column`, whose rows are `width` wide.
    fn of(column: &[f32], width: usize, place: usize) -> Self {
        let numbers = || column.iter().skip(place).step_by(width).copied();
        let Some(first) = numbers().next() else { return Self::default() };
        let n = (column.len() / width) as f64;
        let mean = numbers().map(f64::from).sum::<f64>() / n;
        let squares: f64 = numbers().map(|x| (f64::from(x) - mean).powi(2)).sum();
        Self {
            mean,
            std: (squares / n).sqrt(),
            min: numbers().fold(first, f32::min),
            max: numbers().fold(first, f32::max),
        }
    }

    /// Of every number of a row.
    fn of_each(column: &[f32], width: usize) -> Vec<Self> {
        (0..width).map(|place| Self::of(column, width, place)).collect()
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mean, std, min, max } = self;
        write!(f, "mean {mean:.4} ± {std:.4} (std), min {min:.4}, max {max:.4}")
    }
}

impl ColumnsInspection {
    /// Counts what is in `log`.
    pub fn of(log: &Columns) -> Self {
        let mut odd = log.odd.clone();
        let observation_width = log.observations.width();
        let observations = match &log.observations {
            Seen::Vectors { width, values } => Range::of_each(values, *width),
            Seen::Frames { .. } => Vec::new(),
        };
        let actions = match &log.actions {
            Acted::Continuous { width, values } => Range::of_each(values, *width),
            Acted::Discrete { .. } => Vec::new(),
        };
        for (place, range) in observations.iter().enumerate() {
            if range.min == range.max && log.n_transitions() > 0 {
                odd.push(format!("number {place} of the observations is always {}", range.min));
            }
        }
        let episodes = log.finished_episodes().count() as u64;
        if episodes == 0 {
            odd.push("no episode is finished".into());
        }
        let terminated =
            log.finished_episodes().filter(|e| e.outcome == Outcome::Terminated).count();
        let finished_transitions: usize =
            log.finished_episodes().map(|episode| episode.length).sum();
        Self {
            file: log.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            format: log.format,
            transitions: log.n_transitions() as u64,
            observation_width,
            action_width: log.actions.size(),
            episodes,
            terminated: terminated as u64,
            truncated: episodes - terminated as u64,
            fragments: log.episodes.len() as u64 - episodes,
            fragment_transitions: (log.n_transitions() - finished_transitions) as u64,
            returns: Returns {
                units: "raw",
                spread: Spread::of(
                    log.finished_episodes().map(|e| log.episode_return(e)).collect(),
                ),
            },
            lengths: Spread::of(log.finished_episodes().map(|e| e.length as f64).collect()),
            observations,
            actions,
            actions_outside: log.actions_outside() as u64,
            rewards: Range::of(&log.rewards, 1, 0),
            odd,
        }
    }
}

/// As it is in the program's JSON.
fn lower_case<S: Serializer>(name: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&name.to_lowercase())
}

impl fmt::Display for ColumnsInspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spread = |spread: &Spread| {
            let Spread { mean, sd, min, median, max } = spread;
            format!("mean {mean:.1} ± {sd:.1} (sd), min {min:.1}, median {median:.1}, max {max:.1}")
        };
        let mut rows = vec![
            ("file".into(), format!("{} ({} layout)", self.file, self.format)),
            ("transitions".into(), self.transitions.to_string()),
            (
                "episodes".into(),
                format!(
                    "{} finished: {} by the task's end, {} by a step limit",
                    self.episodes, self.terminated, self.truncated
                ),
            ),
            (
                "fragments".into(),
                format!(
                    "{} ({} steps, cut by the recording's end)",
                    self.fragments, self.fragment_transitions
                ),
            ),
            ("returns".into(), format!("{} [raw]", spread(&self.returns.spread))),
            ("lengths".into(), format!("{} [steps]", spread(&self.lengths))),
            ("rewards".into(), self.rewards.to_string()),
            (
                "widths".into(),
                format!(
                    "observations of {} numbers, actions of {}, {} actions outside [-1, 1]",
                    self.observation_width, self.action_width, self.actions_outside
                ),
            ),
        ];
        for (name, ranges) in [("observation", &self.observations), ("action", &self.actions)] {
            let numbered = ranges.iter().enumerate();
            rows.extend(numbered.map(|(i, range)| (format!("{name} {i}"), range.to_string())));
        }
        for (name, value) in rows {
            writeln!(f, "{name:<14} {value}")?;
        }
        if self.odd.is_empty() {
            return write!(f, "{:<14} nothing", "odd");
        }
        let lines: Vec<_> = self.odd.iter().map(|line| format!("{:<14} {line}", "odd")).collect();
        f.write_str(&lines.join("\n"))
    }
}
