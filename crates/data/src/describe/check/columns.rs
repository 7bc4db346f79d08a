//! Counts of the contents of a recording in memory.

use std::fmt;

use overtone_core::{decimal, normalization::has_spread};
use serde::{Serialize, Serializer};

use super::outliers::{Sample, Unusual};
use super::spread::{Returns, Spread};
use super::table::write_table;

/// The contents of a recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnsInspection {
    /// Name of the file, without its folder.
    pub file: String,
    /// Its format.
    #[serde(serialize_with = "lower_case")]
    pub format: &'static str,
    /// Steps, each counted once.
    pub transitions: u64,
    /// Numbers of an observation.
    pub observation_width: usize,
    /// Numbers of a continuous action; or the number of discrete actions: the recording's own, else
    /// one more than the largest.
    pub action_width: usize,
    /// Finished episodes.
    pub episodes: u64,
    /// Finished episodes that the task ended.
    pub terminated: u64,
    /// Finished episodes that a step limit ended.
    pub truncated: u64,
    /// Episodes that the end of the recording cuts.
    pub fragments: u64,
    /// Steps in them.
    pub fragment_transitions: u64,
    /// Returns of the finished episodes.
    pub returns: Returns,
    /// Lengths of the finished episodes, in steps.
    pub lengths: Spread,
    /// `[observation_width]`, each number of the observations, in the steps of finished episodes.
    pub observations: Vec<Range>,
    /// `[action_width]`, each number of the actions; empty where they are a list.
    pub actions: Vec<Range>,
    /// Steps with a number of their action outside of its bounds.
    pub actions_outside: u64,
    /// The bounds, in words; empty if they are unknown.
    pub action_bounds: String,
    /// The rewards.
    pub rewards: Range,
}

/// Spread of one number over all steps; all 0 without steps.
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

/// Sums over one number of the steps so far, from which a [`Range`] is made.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    steps: u64,
    /// The first value: sums are of differences from it, so that a large mean costs no digits.
    first: f32,
    sum: f64,
    squares: f64,
    min: f32,
    max: f32,
    sample: Sample,
}

impl Sums {
    pub(super) fn add(&mut self, number: f32) {
        if self.steps == 0 {
            *self = Self { first: number, min: number, max: number, ..Self::default() };
        }
        let difference = f64::from(number) - f64::from(self.first);
        self.steps += 1;
        self.sum += difference;
        self.squares += difference * difference;
        self.min = self.min.min(number);
        self.max = self.max.max(number);
        self.sample.add(number);
    }

    pub(super) fn range(&self) -> Range {
        let n = self.steps.max(1) as f64;
        let mean = self.sum / n;
        Range {
            mean: f64::from(self.first) + mean,
            std: (self.squares / n - mean * mean).max(0.0).sqrt(),
            min: self.min,
            max: self.max,
        }
    }

    /// Whether there is a number.
    pub(super) fn has_any(&self) -> bool {
        self.steps > 0
    }

    /// Whether all numbers were the same.
    pub(super) fn is_constant(&self) -> bool {
        self.min == self.max
    }

    /// Whether the numbers differ by so little that agents treat them as equal.
    pub(super) fn is_negligible(&self) -> bool {
        let Range { mean, std, .. } = self.range();
        !self.is_constant() && !has_spread(mean, std)
    }

    /// Unusual properties of the numbers.
    pub(super) fn unusual(&self) -> Option<Unusual> {
        self.sample.unusual(&self.range())
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mean, std, min, max } = self;
        let [mean, std, min, max] =
            [*mean, *std, f64::from(*min), f64::from(*max)].map(|number| decimal(number, 4));
        write!(f, "mean {mean} ± {std} (std), min {min}, max {max}")
    }
}

/// The same in the program's JSON.
fn lower_case<S: Serializer>(name: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&name.to_lowercase())
}

impl fmt::Display for ColumnsInspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spread = |spread: &Spread| {
            let Spread { mean, sd, min, median, max } = *spread;
            let [mean, sd, min, median, max] =
                [mean, sd, min, median, max].map(|number| decimal(number, 1));
            format!("mean {mean} ± {sd} (sd), min {min}, median {median}, max {max}")
        };
        let Self { episodes, terminated, truncated, fragments, fragment_transitions, .. } = self;
        let acted = match (self.actions.is_empty(), self.action_bounds.is_empty()) {
            (true, _) => format!("actions one of {}", self.action_width),
            (false, true) => format!("actions of {}", self.action_width),
            (false, false) => format!(
                "actions of {}, {} actions outside {}",
                self.action_width, self.actions_outside, self.action_bounds
            ),
        };
        let not_counted = match (fragments, episodes) {
            (0, _) | (_, 0) => "",
            _ => "; not in the figures below",
        };
        let widths = format!("observations of {} numbers, {acted}", self.observation_width);
        let rows = [
            ("file", format!("{} ({} layout)", self.file, self.format)),
            ("transitions", self.transitions.to_string()),
            (
                "episodes",
                format!(
                    "{episodes} finished: {terminated} by the task's end, {truncated} by a step \
                     limit"
                ),
            ),
            (
                "fragments",
                format!(
                    "{fragments} ({fragment_transitions} steps, cut by the recording's end{not_counted})"
                ),
            ),
            ("returns", format!("{} [raw]", spread(&self.returns.spread))),
            ("lengths", format!("{} [steps]", spread(&self.lengths))),
            ("rewards", self.rewards.to_string()),
            ("widths", widths),
        ];
        let mut rows = rows.map(|(name, value)| (name.to_owned(), value)).to_vec();
        for (name, ranges) in [("observation", &self.observations), ("action", &self.actions)] {
            let numbered = ranges.iter().enumerate();
            rows.extend(numbered.map(|(i, range)| (format!("{name} {i}"), range.to_string())));
        }
        write_table(f, &rows)
    }
}
