//! The contents of a recording, inspected part by part and reported at the end.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use overtone_core::{ActionSpace, Episode, Outcome, counted};

use super::columns::ColumnsInspection;
use super::doubts::Doubts;
use super::figures::{Figures, Sums};
use super::optional_figures::OptionalFigures;
use super::outliers;
use super::spread::{Returns, Spread};
use super::steps::{Rows, Steps};
use crate::describe::expected::Expected;
use crate::describe::findings::{Findings, Tally};
use crate::read::column::{ActionColumn, ObservationColumn};
use crate::read::hdf5_arrays::{Strange, place};
use crate::read::hdf5_layout::Hdf5Layout;
use crate::read::spaces::Space;
use crate::sample::combinations;
use crate::sample::copies::episode_hash;

/// The arrays that training needs, whose numbers must be finite.
const NEEDED: [&str; 3] = ["observations", "actions", "rewards"];

/// Statistics of a recording so far.
#[derive(Default)]
pub(super) struct Look<'a> {
    expected: Expected<'a>,
    /// Steps of all parts.
    steps: u64,
    /// Whether an array that is trained on could not be read.
    pub(super) broken: bool,
    /// Returns and lengths of the episodes that a flag ends.
    returns: Vec<f64>,
    lengths: Vec<f64>,
    /// How many of them the task ended.
    terminated: u64,
    pub(super) strange: Strange,
    /// By array.
    not_finite: BTreeMap<String, Tally>,
    /// The smallest and the largest value of each number of an action; empty if unknown.
    bounds: Vec<[f32; 2]>,
    outside: Tally,
    repeated_rows: Tally,
    repeated_episodes: Tally,
    too_long: Tally,
    unfinished: Tally,
    unfinished_steps: u64,
    /// By number of a row; empty before the first part, and of pictures.
    observations: Figures,
    /// Pixels of a frame, if the observations are pictures.
    pub(super) frame: Option<usize>,
    actions: Figures,
    rewards: Figures,
    optional: OptionalFigures,
    doubts: Doubts,
    /// Discrete actions: as many as the file describes, at least one more than the largest.
    n_actions: Option<usize>,
    n_described: usize,
    /// By its first observation, the hash of each episode and its place.
    episodes: HashMap<u64, ([u8; 32], String)>,
    /// Whether different episodes begin with the same observation: then equal ones are no copies.
    begins_alike: bool,
}

impl<'a> Look<'a> {
    /// An empty state.
    pub fn new(expected: Expected<'a>) -> Self {
        let bounds = match expected.task.map(|task| &task.actions) {
            Some(ActionSpace::Continuous { low, high }) => pairs(low, high),
            Some(ActionSpace::Discrete { .. }) | None => Vec::new(),
        };
        Self { expected, bounds, ..Self::default() }
    }

    /// Takes from their space how many actions a list has, and the bounds of numbers where the task
    /// does not say them.
    pub fn described(&mut self, actions: Option<&Space>) {
        self.n_described = actions.and_then(Space::n_actions).unwrap_or(0);
        if let (true, Some(Space::Box { low, high, .. })) = (self.bounds.is_empty(), actions) {
            self.bounds = pairs(low, high);
        }
    }

    /// Counts numbers of array `name` that are not finite.
    pub fn finite(&mut self, name: &str, prefix: &str, values: &[f32], width: usize) {
        for (at, value) in values.iter().enumerate().filter(|(_, value)| !value.is_finite()) {
            let tally = self.not_finite.entry(name.to_owned()).or_default();
            tally.add(|| format!("{}: {value}", place(prefix, at / width)));
        }
    }

    /// Inspects steps and their episodes, and whether a flag ends each.
    pub fn part(
        &mut self,
        part: &Steps<'_>,
        episodes: &[Episode],
        finished: &[bool],
        findings: &mut Findings<'_>,
    ) {
        self.broken |= part.actions.is_none() || part.rewards.is_none();
        self.steps += part.n as u64;
        self.optional.add(part.optional);
        match part.observations {
            Some(ObservationColumn::Vectors { width, values }) => {
                let wanted = self.expected.task.map(|task| task.observations.size());
                if self.fits("observations", part, *width, wanted, findings) {
                    let rows = Rows { values, width: *width };
                    self.observations.add(rows, episodes, finished, part.prefix);
                }
            }
            Some(frames @ ObservationColumn::Frames { .. }) => self.frame = Some(frames.width()),
            None => self.broken = true,
        }
        let task = self.expected.task;
        let listed =
            part.actions.zip(task).and_then(|(done, task)| combinations::listed(done, task));
        let part = &Steps { actions: listed.as_ref().or(part.actions), ..*part };
        if let Some(actions) = part.actions {
            self.actions(part, actions, (episodes, finished), findings);
        }
        if let Some(values) = part.rewards {
            self.finite("rewards", part.prefix, values, 1);
            self.rewards.add(Rows { values, width: 1 }, episodes, finished, part.prefix);
        }
        self.doubts.part(part, episodes, finished, task);
        for (episode, &finished) in episodes.iter().zip(finished) {
            self.episode(part, episode, finished);
        }
    }

    /// Whether array `name` is as wide as in the first part; reports a difference from it or from
    /// the task.
    fn fits(
        &self,
        name: &str,
        part: &Steps<'_>,
        width: usize,
        wanted: Option<usize>,
        findings: &mut Findings<'_>,
    ) -> bool {
        let first = if name == "actions" { &self.actions } else { &self.observations };
        let before = first.width();
        let Some(wanted) = wanted.or(before).filter(|&wanted| wanted != width) else { return true };
        let whose = self.expected.task.map_or("the first episode", |task| &*task.name);
        findings.tell_of(
            "wrong-width",
            &format!("{}{name}", part.prefix),
            format!("{wanted} numbers a row, as {whose}"),
            width.to_string(),
        );
        before.is_none_or(|before| before == width)
    }

    fn actions(
        &mut self,
        part: &Steps<'_>,
        actions: &ActionColumn,
        (episodes, finished): (&[Episode], &[bool]),
        findings: &mut Findings<'_>,
    ) {
        let wanted = self.expected.task.map(|task| match &task.actions {
            ActionSpace::Discrete { .. } => 1,
            ActionSpace::Continuous { low, .. } => low.len(),
        });
        match actions {
            ActionColumn::Discrete { n_actions, values } => {
                self.n_actions = self.n_actions.max(Some(*n_actions));
                if self.fits("actions", part, 1, wanted, findings) {
                    let values: Vec<f32> = values.iter().map(|&action| f32::from(action)).collect();
                    self.actions.add(
                        Rows { values: &values, width: 1 },
                        episodes,
                        finished,
                        part.prefix,
                    );
                }
            }
            ActionColumn::Continuous { width, values } => {
                self.finite("actions", part.prefix, values, *width);
                if self.fits("actions", part, *width, wanted, findings) {
                    self.actions.add(
                        Rows { values, width: *width },
                        episodes,
                        finished,
                        part.prefix,
                    );
                }
                let bounds = &self.bounds;
                let outside = |&(at, number): &(usize, &f32)| {
                    let is_outside = |[low, high]: &[f32; 2]| !(low..=high).contains(&number);
                    number.is_finite() && bounds.get(at).is_some_and(is_outside)
                };
                for (row, action) in values.chunks_exact((*width).max(1)).enumerate() {
                    if let Some((_, number)) = action.iter().enumerate().find(outside) {
                        self.outside.add(|| format!("{}: {number}", place(part.prefix, row)));
                    }
                }
            }
        }
    }

    fn episode(&mut self, part: &Steps<'_>, episode: &Episode, finished: bool) {
        let here = || place(part.prefix, episode.start);
        let length = episode.length as u64;
        if finished {
            let rewards = part.rewards.and_then(|rewards| rewards.get(episode.range()));
            self.returns.push(rewards.into_iter().flatten().map(|&reward| f64::from(reward)).sum());
            self.lengths.push(length as f64);
            self.terminated += u64::from(episode.outcome == Outcome::Terminated);
        } else {
            self.unfinished.add(here);
            self.unfinished_steps += length;
        }
        // Without timeouts episodes run into one another, which is reported already.
        let limit = self.expected.horizon.filter(|_| part.limited);
        if limit.is_some_and(|limit| length > limit) {
            self.too_long.add(|| format!("{}, {length} steps long", here()));
        }
        // A game's picture may stay the same from step to step; numbers of a robot do not.
        if let Some(ObservationColumn::Vectors { width, values }) = part.observations {
            let row = |row: usize| values.get(row * width..(row + 1) * width);
            for at in episode.range().skip(1).filter(|&at| row(at) == row(at - 1)) {
                self.repeated_rows.add(|| place(part.prefix, at));
            }
        }
        let (Some(observations), Some(actions), Some(rewards)) =
            (part.observations, part.actions, part.rewards)
        else {
            return;
        };
        let Some(hash) = episode_hash(observations, actions, rewards, episode) else { return };
        let first_observation = row_hash(observations, episode.start);
        match self.episodes.get(&first_observation) {
            Some((copied, first)) if *copied == hash && episode.length > 1 => {
                self.repeated_episodes.add(|| format!("{}, as the one in {first}", here()));
            }
            Some(_) => self.begins_alike = true,
            None => {
                self.episodes.insert(first_observation, (hash, here()));
            }
        }
    }

    /// Adds the results to the findings.
    pub fn tell(&self, layout: Hdf5Layout, findings: &mut Findings<'_>) {
        self.tell_numbers(findings);
        self.tell_episodes(layout, findings);
        let acted = if self.n_actions.is_some() { Vec::new() } else { self.actions.doubted() };
        let observed = self.observations.doubted();
        self.doubts.tell(&observed, &acted, self.expected.task, findings);
    }

    fn tell_numbers(&self, findings: &mut Findings<'_>) {
        for (array, tally) in &self.not_finite {
            let rule = match NEEDED.contains(&array.as_str()) {
                true => "non-finite",
                false => "non-finite-elsewhere",
            };
            findings.tally(rule, array, tally, ["value", "not finite"]);
        }
        if let (Some(n), Some(ActionSpace::Discrete { names })) =
            (self.n_actions, self.expected.task.map(|task| &task.actions))
            && n > names.len()
        {
            let found = format!("actions 0 to {}", n - 1);
            findings.tell_of("action-beyond-set", "actions", names.len() - 1, found);
        }
        if let Some(found) = self.outside.counted(["step", "outside"]) {
            findings.tell_of("actions-outside", "actions", self.told_bounds(), found);
        }
        for (array, figures) in [("observations", &self.observations), ("actions", &self.actions)] {
            let sums = figures.sums().into_iter().enumerate();
            let constant = sums.filter(|(_, sums)| sums.is_constant());
            let places: Vec<_> = constant.map(|(place, _)| place.to_string()).collect();
            if self.steps > 1 && !places.is_empty() {
                findings.tell(
                    "constant-dimension",
                    array,
                    format!("the same in every step at place {}", places.join(", ")),
                );
            }
        }
        let actions = if self.n_actions.is_some() { Vec::new() } else { self.actions.sums() };
        let all = [self.observations.sums(), actions, self.rewards.sums()];
        outliers::tell(all, findings);
        // A state of whole numbers may stay the same.
        let are_whole = self.observations.doubted().iter().all(|number| number.is_whole());
        if !self.doubts.has_padding() && !are_whole {
            findings.tally(
                "repeated-observations",
                "observations",
                &self.repeated_rows,
                ["row", "equal to the row before"],
            );
        }
    }

    /// The bounds of actions, in words; empty if they are unknown.
    fn told_bounds(&self) -> String {
        match &self.bounds[..] {
            [] => String::new(),
            [[low, high], others @ ..] if others.iter().all(|other| other == &[*low, *high]) => {
                format!("[{low}, {high}]")
            }
            _ => "the bounds of each number".into(),
        }
    }

    fn tell_episodes(&self, layout: Hdf5Layout, findings: &mut Findings<'_>) {
        if let Some(limit) = self.expected.horizon {
            let found = (&self.too_long, ["longer episode", ""]);
            findings.tally_of("episode-too-long", limit, found);
        }
        if !self.begins_alike {
            let repeated = &self.repeated_episodes;
            findings.tally("repeated-episodes", "", repeated, ["episode", "there already"]);
        }
        findings.tally("early-flag", "", &self.strange.early, ["episode", "flagged earlier"]);
        findings.tally("empty-episode", "", &self.strange.empty, ["episode", "without a step"]);
        if self.unfinished.count > 0 {
            let (n, steps) =
                (self.unfinished.count, counted(self.unfinished_steps as usize, "step"));
            let found = format!("{n} without an end, {steps}, from {}", self.unfinished.first);
            let rule = match layout {
                Hdf5Layout::D4rl => "trailing-fragment",
                Hdf5Layout::Minari => "trailing-fragment-in-minari",
            };
            findings.tell(rule, "", found);
        }
        if !self.broken && self.returns.is_empty() {
            findings.tell("no-episode", "", "none");
        }
    }

    /// The contents of the recording at `path`.
    pub fn inspection(&self, path: &Path, format: &'static str) -> ColumnsInspection {
        let ranges = |figures: &Figures| figures.sums().into_iter().map(Sums::range).collect();
        let episodes = self.returns.len() as u64;
        ColumnsInspection {
            file: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            format,
            transitions: self.steps,
            observation_width: self.frame.or(self.observations.width()).unwrap_or(0),
            action_width: self
                .n_actions
                .map(|n| n.max(self.n_described))
                .or(self.actions.width())
                .unwrap_or(0),
            episodes,
            terminated: self.terminated,
            truncated: episodes - self.terminated,
            fragments: self.unfinished.count,
            fragment_transitions: self.unfinished_steps,
            returns: Returns { units: "raw", spread: Spread::of(self.returns.clone()) },
            lengths: Spread::of(self.lengths.clone()),
            observations: ranges(&self.observations),
            actions: if self.n_actions.is_some() { Vec::new() } else { ranges(&self.actions) },
            actions_outside: self.outside.count,
            action_bounds: self.told_bounds(),
            rewards: self.rewards.sums().first().map(|sums| sums.range()).unwrap_or_default(),
            optional: self.optional.words(),
        }
    }
}

/// A hash of the observation in a row, which exists.
fn row_hash(observations: &ObservationColumn, row: usize) -> u64 {
    let width = observations.width();
    let mut hasher = DefaultHasher::new();
    match observations {
        ObservationColumn::Vectors { values, .. } => {
            let numbers = &values[row * width..(row + 1) * width];
            numbers.iter().for_each(|number| number.to_bits().hash(&mut hasher));
        }
        ObservationColumn::Frames { pixels } => {
            pixels[row * width..(row + 1) * width].hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Both bounds of each number, where there are as many of both.
fn pairs(low: &[f32], high: &[f32]) -> Vec<[f32; 2]> {
    match low.len() == high.len() {
        true => low.iter().zip(high).map(|(&low, &high)| [low, high]).collect(),
        false => Vec::new(),
    }
}
