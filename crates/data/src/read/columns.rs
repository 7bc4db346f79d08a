//! [`Columns`]: a recording in memory, as its file holds it.

use std::path::PathBuf;

use overtone_core::{ActionSpace, Episode, protocol::ReturnUnits};

use crate::error::advice::not_finite;
use crate::error::{DataError, Fault};
use crate::read::array_names::LOG_PROBS;
use crate::read::column::{ActionColumn, MOST_ACTIONS, ObservationColumn, keep_rows};
use crate::read::log_probs;
use crate::read::optional_arrays::OptionalArrays;
use crate::read::stored::Stored;

/// The recordings that a dataset is made of; empty for one recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mixture {
    /// `[episodes]`, the recording of each episode.
    pub(crate) sources: Vec<u16>,
    /// The proportion of each recording among the drawn windows; empty: in proportion to their
    /// windows.
    pub(crate) shares: Vec<f32>,
    /// The path of each recording.
    pub(crate) paths: Vec<PathBuf>,
}

/// All steps of a recording, in the file's order and units.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    /// The file.
    pub path: PathBuf,
    /// Name of its format, such as `D4RL`.
    pub format: &'static str,
    /// The observations before each action of a recording.
    pub observations: ObservationColumn,
    /// The actions.
    pub actions: ActionColumn,
    /// `[steps]`, raw.
    pub rewards: Vec<f32>,
    /// `[steps]`, log-probability of each recorded action under the policy that recorded it: `ln`
    /// of the probability of a discrete action, or of the density of a continuous one in the
    /// recording's units. `None` if unknown, also if only parts of the recording have them.
    pub behavior_log_probs: Option<Vec<f32>>,
    /// Its optional arrays.
    pub optional: OptionalArrays,
    /// Episodes, which cover all steps in order; none is empty. One that is not finished has
    /// the outcome `Truncated`: the end of the recording cut it.
    pub episodes: Vec<Episode>,
    /// `[episodes]`, whether the task or its step limit ended it. In a D4RL file all are but
    /// perhaps the last.
    pub finished: Vec<bool>,
    /// The recordings that it is made of, if there are several.
    pub mixture: Mixture,
    /// Anything that is not as the format has it, a sentence each.
    pub odd: Vec<String>,
    /// How its arrays are stored.
    pub stored: Stored,
}

impl Columns {
    /// Arrays of your own; all of their episodes are finished, and log-probabilities unknown.
    pub fn new(
        observations: ObservationColumn,
        actions: ActionColumn,
        rewards: Vec<f32>,
        episodes: Vec<Episode>,
    ) -> Self {
        Self {
            path: "memory".into(),
            format: "arrays",
            observations,
            actions,
            rewards,
            behavior_log_probs: None,
            optional: OptionalArrays::default(),
            finished: vec![true; episodes.len()],
            mixture: Mixture::default(),
            episodes,
            odd: Vec::new(),
            stored: Stored::default(),
        }
    }

    /// Number of steps.
    pub fn n_transitions(&self) -> usize {
        self.rewards.len()
    }

    /// The episodes that the task or its step limit ended.
    pub fn finished_episodes(&self) -> impl Iterator<Item = &Episode> {
        self.episodes.iter().zip(&self.finished).filter(|(_, finished)| **finished).map(|(e, _)| e)
    }

    /// Undiscounted sum of an episode's rewards.
    pub fn episode_return(&self, episode: &Episode) -> f64 {
        self.rewards[episode.range()].iter().map(|&reward| f64::from(reward)).sum()
    }

    /// Cuts rewards to [-1, 1], and says whether any was beyond.
    pub fn clip_rewards(&mut self) -> bool {
        let mut any = false;
        for reward in &mut self.rewards {
            let clipped = ReturnUnits::Clipped.of(*reward);
            any |= clipped != *reward;
            *reward = clipped;
        }
        any
    }

    /// Steps with a number of their action outside the bounds of `actions`.
    pub fn outside_of(&self, actions: &ActionSpace) -> usize {
        let ActionSpace::Continuous { low, high } = actions else { return 0 };
        let ActionColumn::Continuous { width, values } = &self.actions else { return 0 };
        let outside = |action: &&[f32]| {
            action.iter().enumerate().any(|(i, number)| !(low[i]..=high[i]).contains(number))
        };
        values.chunks_exact((*width).max(1)).filter(outside).count()
    }

    /// Keeps only the episodes at positions `kept`, which ascend; nothing is copied if all are kept.
    pub(crate) fn keep(&mut self, kept: &[usize]) {
        if kept.len() == self.episodes.len() {
            return;
        }
        let spans: Vec<Episode> = kept.iter().map(|&episode| self.episodes[episode]).collect();
        let observed = self.observations.width();
        match &mut self.observations {
            ObservationColumn::Frames { pixels, .. } => keep_rows(pixels, observed, &spans),
            ObservationColumn::Vectors { values, .. } => keep_rows(values, observed, &spans),
        }
        match &mut self.actions {
            ActionColumn::Discrete { values, .. } => keep_rows(values, 1, &spans),
            ActionColumn::Continuous { width, values } => keep_rows(values, *width, &spans),
        }
        keep_rows(&mut self.rewards, 1, &spans);
        if let Some(log_probs) = &mut self.behavior_log_probs {
            keep_rows(log_probs, 1, &spans);
        }
        self.optional.keep(&spans);
        self.finished = kept.iter().map(|&episode| self.finished[episode]).collect();
        let sources = &self.mixture.sources;
        self.mixture.sources = kept.iter().filter_map(|&i| sources.get(i).copied()).collect();
        let mut start = 0;
        self.episodes = spans;
        for episode in &mut self.episodes {
            episode.start = start;
            start = episode.end();
        }
    }

    /// Refuses columns of different lengths, and values that no recording can hold.
    ///
    /// # Errors
    /// `Fault::Inconsistent`, which says what is wrong; `Fault::DatasetValue` for a
    /// number that is not finite, or an impossible log-probability or weight; `Fault::DatasetLength` for
    /// log-probabilities that are not one for each step.
    pub fn check(&self) -> Result<(), DataError> {
        let steps = self.n_transitions();
        let refuse = |reason: String| Err(Fault::Inconsistent(reason).at(&self.path));
        let (observed, seen): (_, &[f32]) = match &self.observations {
            ObservationColumn::Frames { pixels, .. } => (pixels.len(), &[]),
            ObservationColumn::Vectors { values, .. } => (values.len(), values),
        };
        let (acted, action_width, done): (_, _, &[f32]) = match &self.actions {
            ActionColumn::Discrete { values, .. } => (values.len(), 1, &[]),
            ActionColumn::Continuous { width, values } => (values.len(), *width, values),
        };
        for (what, length, width) in [
            ("observations", observed, self.observations.width()),
            ("actions", acted, action_width),
        ] {
            if width == 0 && steps > 0 {
                return refuse(format!("its {what} have no numbers"));
            }
            if Some(length) != steps.checked_mul(width) {
                return refuse(format!(
                    "its {what} hold {length} numbers, expected {steps} rows of {width}"
                ));
            }
        }
        if self.finished.len() != self.episodes.len() {
            let (n, of) = (self.finished.len(), self.episodes.len());
            return refuse(format!(
                "it says of {n} of its {of} episodes whether they are finished"
            ));
        }
        let mut end = 0usize;
        for (at, episode) in self.episodes.iter().enumerate() {
            let Episode { start, length, .. } = *episode;
            if start != end || length == 0 {
                return refuse(format!(
                    "its episodes do not cover its steps: episode {at} has {length}, from step \
                     {start} on, where the one before ends at {end}"
                ));
            }
            end = end.saturating_add(episode.length);
        }
        if end != steps {
            return refuse(format!(
                "its episodes do not cover its steps: they have {end} of {steps}"
            ));
        }
        if let ActionColumn::Discrete { n_actions, .. } = &self.actions
            && *n_actions > MOST_ACTIONS
        {
            return refuse(format!(
                "its actions are one of {n_actions}, expected at most {MOST_ACTIONS}"
            ));
        }
        if let ActionColumn::Discrete { n_actions, values } = &self.actions
            && let Some(action) = values.iter().find(|&&action| usize::from(action) >= *n_actions)
        {
            return refuse(format!("it holds action {action} of {n_actions}"));
        }
        for (name, column, width) in [
            ("observations", seen, self.observations.width()),
            ("actions", done, action_width),
            ("rewards", &self.rewards, 1),
        ] {
            let Some(at) = column.iter().position(|number| !number.is_finite()) else { continue };
            return Err(Fault::DatasetValue {
                dataset: name.into(),
                row: at / width,
                what: not_finite(column[at], at % width),
            }
            .at(&self.path));
        }
        if let Some(fault) = self.optional.fault(&self.actions, &self.episodes) {
            return Err(fault.at(&self.path));
        }
        self.check_log_probs()
    }

    fn check_log_probs(&self) -> Result<(), DataError> {
        let Some(values) = &self.behavior_log_probs else { return Ok(()) };
        let dataset = LOG_PROBS.to_owned();
        let (got, expected) = (values.len(), self.n_transitions());
        if got != expected {
            let (other, way_out) = ("rewards".into(), "save one row a step in each array".into());
            let fault = Fault::DatasetLength { dataset, got, expected, other, way_out };
            return Err(fault.at(&self.path));
        }
        match log_probs::impossible(values, &self.actions, LOG_PROBS) {
            None => Ok(()),
            Some((row, what)) => Err(Fault::DatasetValue { dataset, row, what }.at(&self.path)),
        }
    }
}
