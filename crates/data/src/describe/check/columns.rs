//! Counts of the contents of a recording in memory.

use std::fmt;

use overtone_core::decimal;
use serde::{Serialize, Serializer};

use super::range::Range;
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
    /// The optional arrays that it has, by name, in words.
    #[serde(serialize_with = "by_name", skip_serializing_if = "Vec::is_empty")]
    pub optional: Vec<(&'static str, String)>,
}

/// The same in the program's JSON.
fn lower_case<S: Serializer>(name: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&name.to_lowercase())
}

/// A map in place of a list of pairs.
fn by_name<S: Serializer>(words: &[(&'static str, String)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(words.iter().map(|(name, words)| (name, words)))
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
        rows.extend(self.optional.iter().map(|(name, words)| ((*name).to_owned(), words.clone())));
        for (name, ranges) in [("observation", &self.observations), ("action", &self.actions)] {
            let numbered = ranges.iter().enumerate();
            rows.extend(numbered.map(|(i, range)| (format!("{name} {i}"), range.to_string())));
        }
        write_table(f, &rows)
    }
}
