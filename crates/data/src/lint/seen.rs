//! What a D4RL or Minari file holds, looked at part by part and told at the end.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use overtone_core::{ActionSpace, Task};
use sha2::{Digest, Sha256};

use super::arrays::Arrays;
use crate::columns::ACTION_RANGE;
use crate::findings::{Findings, Tally};
use crate::read::hdf5_file::Matrix;
use crate::read::hdf5_layout::Layout;

/// How far, relative to its size, a number of the next observation may lie from the row after
/// it: rounding, where one of them was kept as a double.
const ROUNDING: f32 = 1e-5;
/// The arrays that training needs, whose numbers must be finite.
const NEEDED: [&str; 3] = ["observations", "actions", "rewards"];

/// What was seen of a recording so far.
pub(crate) struct Seen {
    /// Steps of all parts.
    pub steps: u64,
    /// Episodes that a flag ends.
    pub finished: u64,
    /// Whether all arrays that are trained on could be read.
    pub whole: bool,
    /// Most steps of an episode, where it is known.
    limit: Option<u64>,
    task: Option<Task>,
    /// By array.
    not_finite: BTreeMap<String, Tally>,
    outside: Tally,
    doubled: Tally,
    jumps: Tally,
    repeated_rows: Tally,
    repeated_episodes: Tally,
    early_flags: Tally,
    empty: Tally,
    too_long: Tally,
    unfinished: Tally,
    unfinished_steps: u64,
    observations: Extremes,
    actions: Extremes,
    /// Where each episode was seen first, by the hash of its arrays.
    episodes: HashMap<[u8; 32], String>,
}

/// The smallest and the largest of each number of a row; empty before the first part.
type Extremes = Vec<(f32, f32)>;

impl Seen {
    /// Nothing yet, of a recording of `task` where it is known.
    pub fn new(limit: Option<u64>, task: Option<&Task>) -> Self {
        Self {
            steps: 0,
            finished: 0,
            whole: true,
            limit,
            task: task.cloned(),
            not_finite: BTreeMap::new(),
            outside: Tally::default(),
            doubled: Tally::default(),
            jumps: Tally::default(),
            repeated_rows: Tally::default(),
            repeated_episodes: Tally::default(),
            early_flags: Tally::default(),
            empty: Tally::default(),
            too_long: Tally::default(),
            unfinished: Tally::default(),
            unfinished_steps: 0,
            observations: Extremes::new(),
            actions: Extremes::new(),
            episodes: HashMap::new(),
        }
    }

    /// Counts numbers that are not finite.
    pub fn finite(&mut self, part: &Arrays) {
        let mut look = |name: &str, width: usize, values: &[f32]| {
            for (at, value) in values.iter().enumerate().filter(|(_, value)| !value.is_finite()) {
                let tally = self.not_finite.entry(name.to_owned()).or_default();
                tally.add(|| format!("{}: {value}", part.place(at / width)));
            }
        };
        let matrices = [
            ("observations", &part.observations),
            ("actions", &part.actions),
            ("next_observations", &part.next_observations),
        ];
        for (name, matrix) in matrices {
            if let Some(Matrix { values, width, .. }) = matrix {
                look(name, *width, values);
            }
        }
        if let Some(rewards) = &part.rewards {
            look("rewards", 1, rewards);
        }
        for (name, width, values) in &part.others {
            look(name, *width, values);
        }
    }

    /// The span of one of Minari's episodes, and whether it is ended by a flag; `None` of an
    /// empty or unreadable one.
    pub fn episode(&mut self, part: &Arrays, name: &str) -> Option<(Range<usize>, bool)> {
        let (Some(terminals), Some(timeouts)) = (&part.terminals, &part.timeouts) else {
            return None;
        };
        let steps = terminals.len().min(timeouts.len());
        let Some(last) = steps.checked_sub(1) else {
            self.empty.add(|| name.to_owned());
            return None;
        };
        let ends = |row: usize| terminals[row] || timeouts[row];
        if let Some(row) = (0..last).find(|&row| ends(row)) {
            self.early_flags.add(|| part.place(row));
        }
        Some((0..steps, ends(last)))
    }

    /// Looks at one part of a file and at its episodes, `spans`, each with whether it is ended
    /// by a flag.
    pub fn look(&mut self, part: &Arrays, spans: &[(Range<usize>, bool)], findings: &mut Findings) {
        self.whole &= part.whole();
        self.steps += part.steps().unwrap_or(0) as u64;
        self.widths(part, findings);
        self.actions(part);
        if let (Some(terminals), Some(timeouts)) = (&part.terminals, &part.timeouts) {
            let flags = terminals.iter().zip(timeouts).enumerate();
            for (row, _) in flags.filter(|(_, (terminal, timeout))| **terminal && **timeout) {
                self.doubled.add(|| part.place(row));
            }
        }
        for row in jumps(part) {
            self.jumps.add(|| part.place(row));
        }
        for (span, finished) in spans {
            self.span(part, span, *finished);
        }
    }

    fn widths(&mut self, part: &Arrays, findings: &mut Findings) {
        let task = self.task.as_ref();
        let observed = task.map(|task| task.observations.size());
        let acted = task.map(|task| match &task.actions {
            ActionSpace::Discrete { .. } => 1,
            ActionSpace::Continuous { low, .. } => low.len(),
        });
        for (array, matrix, seen, width) in [
            ("observations", &part.observations, &mut self.observations, observed),
            ("actions", &part.actions, &mut self.actions, acted),
        ] {
            let Some(matrix) = matrix else { continue };
            // The first part says how wide all are, where the task is unknown.
            let width = width.or((!seen.is_empty()).then_some(seen.len()));
            if let Some(width) = width.filter(|&width| width != matrix.width) {
                let whose = task.map_or("the first episode", |task| &*task.name);
                findings.error(
                    "wrong-width",
                    &format!("{}{array}", part.prefix),
                    format!("{width} numbers a row, as {whose} has"),
                    matrix.width.to_string(),
                    "Name the environment it is of: this is another robot's.",
                );
                continue;
            }
            seen.resize(matrix.width, (f32::INFINITY, f32::NEG_INFINITY));
            for row in matrix.values.chunks_exact(matrix.width) {
                for ((smallest, largest), &number) in seen.iter_mut().zip(row) {
                    *smallest = smallest.min(number);
                    *largest = largest.max(number);
                }
            }
        }
    }

    fn actions(&mut self, part: &Arrays) {
        let Some(Matrix { values, width, .. }) = part.actions.as_ref().filter(|_| !part.chosen)
        else {
            return;
        };
        let outside = |number: &&f32| number.is_finite() && !ACTION_RANGE.contains(*number);
        for (row, action) in values.chunks_exact(*width).enumerate() {
            if let Some(number) = action.iter().find(outside) {
                self.outside.add(|| format!("{}: {number}", part.place(row)));
            }
        }
    }

    fn span(&mut self, part: &Arrays, span: &Range<usize>, finished: bool) {
        let length = span.len() as u64;
        if finished {
            self.finished += 1;
        } else {
            self.unfinished.add(|| part.place(span.start));
            self.unfinished_steps += length;
        }
        // Without timeouts episodes run into one another, which is told already.
        let limited = self.limit.filter(|_| part.timeouts.is_some());
        if limited.is_some_and(|limit| length > limit) {
            self.too_long.add(|| format!("{}, {length} steps long", part.place(span.start)));
        }
        if let Some(Matrix { values, width, .. }) = &part.observations {
            let row = |row: usize| values.get(row * width..(row + 1) * width);
            for at in span.clone().skip(1).filter(|&at| row(at) == row(at - 1)) {
                self.repeated_rows.add(|| part.place(at));
            }
        }
        let here = part.place(span.start);
        let Some(hash) = hash(part, span) else { return };
        match self.episodes.get(&hash) {
            Some(first) => self.repeated_episodes.add(|| format!("{here}, as the one in {first}")),
            None => {
                self.episodes.insert(hash, here);
            }
        }
    }

    /// Adds what was seen.
    pub fn tell(&self, format: Layout, findings: &mut Findings) {
        self.tell_numbers(findings);
        self.tell_episodes(format, findings);
    }

    fn tell_numbers(&self, findings: &mut Findings) {
        for (array, tally) in &self.not_finite {
            let Some(found) = tally.told("that are not") else { continue };
            if NEEDED.contains(&array.as_str()) {
                findings.error(
                    "non-finite",
                    array,
                    "finite numbers",
                    found,
                    "Fetch the file again, or take these episodes out: it is refused as it is.",
                );
            } else {
                findings.warning(
                    "non-finite",
                    array,
                    "finite numbers",
                    found,
                    "Nothing need be done to train: this array is not read.",
                );
            }
        }
        if let Some(found) = self.outside.told("steps outside") {
            findings.warning(
                "actions-outside",
                "actions",
                "actions within [-1, 1]",
                found,
                "Scale or clip them: the environment clips what is played, and the model cannot.",
            );
        }
        for (array, extremes) in [("observations", &self.observations), ("actions", &self.actions)]
        {
            let constant = extremes.iter().enumerate().filter(|(_, (low, high))| low == high);
            let places: Vec<_> = constant.map(|(place, _)| place.to_string()).collect();
            if self.steps > 1 && !places.is_empty() {
                findings.warning(
                    "constant-dimension",
                    array,
                    "numbers that change",
                    format!("the same in every step at place {}", places.join(", ")),
                    "Check the recording: nothing can be learnt from a constant.",
                );
            }
        }
        if let Some(found) = self.repeated_rows.told("rows equal to the row before") {
            findings.warning(
                "repeated-observations",
                "observations",
                "an observation that changes with each step",
                found,
                "Check the recording: steps may have been stored twice.",
            );
        }
    }

    fn tell_episodes(&self, format: Layout, findings: &mut Findings) {
        if let Some(found) = self.doubled.told("steps with both") {
            findings.warning(
                "doubled-flag",
                "",
                "the task's end or a limit's, never both",
                found,
                "Clear one of the two: they are taken as the task's end.",
            );
        }
        if let Some(found) = self.jumps.told("steps that lead elsewhere without a flag") {
            findings.error(
                "unflagged-jump",
                "next_observations",
                "the observation of the row after, unless a flag ends the episode",
                found,
                "Set a timeout in these rows: episodes that are not told apart have wrong returns.",
            );
        }
        if let (Some(found), Some(limit)) = (self.too_long.told("longer episodes"), self.limit) {
            findings.error(
                "episode-too-long",
                "",
                format!("at most {limit} steps an episode"),
                found,
                "Check the timeouts there: episodes that are not told apart have wrong returns.",
            );
        }
        if let Some(found) = self.repeated_episodes.told("episodes there already") {
            findings.warning(
                "repeated-episodes",
                "",
                "each episode once",
                found,
                "Take the copies out, or they weigh as much again.",
            );
        }
        if let Some(found) = self.early_flags.told("episodes flagged earlier") {
            findings.warning(
                "early-flag",
                "",
                "flags at an episode's last step alone",
                found,
                "Check the recording: the episode is taken as whole.",
            );
        }
        if let Some(found) = self.empty.told("episodes without a step") {
            findings.warning(
                "empty-episode",
                "",
                "at least one step an episode",
                found,
                "Nothing need be done: they are left out.",
            );
        }
        if self.unfinished.count > 0 {
            let (n, steps) = (self.unfinished.count, self.unfinished_steps);
            let found =
                format!("{n} without an end, {steps} steps, from {}", self.unfinished.first);
            let (code, expected) = ("trailing-fragment", "finished episodes alone");
            let advice = "Nothing need be done: it is left out, unless it is asked for.";
            match format {
                Layout::D4rl => findings.note(code, "", expected, found, advice),
                Layout::Minari => findings.warning(code, "", expected, found, advice),
            }
        }
        if self.whole && self.finished == 0 {
            findings.error(
                "no-episode",
                "",
                "at least one finished episode",
                "none",
                "Check the flags, or fetch the file again: nothing here can be trained on.",
            );
        }
    }
}

/// Rows whose next observation is not the observation of the row after, and that no flag ends.
fn jumps(part: &Arrays) -> Vec<usize> {
    let (Some(observations), Some(next), Some(terminals)) =
        (&part.observations, &part.next_observations, &part.terminals)
    else {
        return Vec::new();
    };
    let width = observations.width;
    if next.width != width {
        return Vec::new();
    }
    let flagged = |row: usize| {
        let timeout = |timeouts: &Vec<bool>| timeouts[row];
        terminals[row] || part.timeouts.as_ref().is_some_and(timeout)
    };
    // What is not finite is told elsewhere.
    let differ =
        |(a, b): (&f32, &f32)| (a - b).abs() > ROUNDING * (1.0 + a.abs()) && (a - b).is_finite();
    let rows = next.values.chunks_exact(width).zip(observations.values.chunks_exact(width).skip(1));
    let leads_elsewhere = |(led, row): (&[f32], &[f32])| led.iter().zip(row).any(differ);
    let jumps = rows.enumerate().filter(|(row, pair)| !flagged(*row) && leads_elsewhere(*pair));
    jumps.map(|(row, _)| row).collect()
}

/// A hash of the steps `span`; `None` where an array could not be read.
fn hash(part: &Arrays, span: &Range<usize>) -> Option<[u8; 32]> {
    let mut hash = Sha256::new();
    for Matrix { values, width, .. } in [part.observations.as_ref()?, part.actions.as_ref()?] {
        for number in values.get(span.start * width..span.end * width)? {
            hash.update(number.to_le_bytes());
        }
    }
    for number in part.rewards.as_ref()?.get(span.clone())? {
        hash.update(number.to_le_bytes());
    }
    Some(hash.finalize().into())
}
