//! [`Dataset`]: recorded episodes of one task, ready to be sampled.
//!
//! Observations and actions are independent: frames or vectors, discrete or continuous, in every
//! combination. Frames of a converted log stay on disk; everything else is in memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use overtone_core::{Episode, Episodes, FirstObservations, Normalization, Outcome, returns_to_go};

use crate::describe::origin::Origin;
use crate::error::{DataError, Fault};
use crate::read::column::ActionColumn;
use crate::read::columns::Mixture;
use crate::read::optional_arrays::OptionalArrays;
use crate::sample::counts::Counts;
use crate::sample::episode_index::EpisodeIndex;
use crate::sample::episode_returns::EpisodeReturns;
use crate::sample::held_out::{Split, Subset};
use crate::sample::options::best_first;
use crate::sample::sampler::{Sampling, WindowSampler};
use crate::store::frames::FrameStore;

/// The observation at each row.
#[derive(Debug)]
pub enum StoredObservations {
    /// Pictures; an observation is a stack of them.
    Frames(FrameStore),
    /// Numbers.
    Vectors {
        /// Numbers of an observation.
        width: usize,
        /// `[rows, width]`, as recorded.
        values: Vec<f32>,
        /// Mean and standard deviation of each number over the training data.
        normalization: Normalization,
    },
}

/// Recorded episodes of one task.
#[derive(Debug)]
pub struct Dataset {
    pub(crate) path: PathBuf,
    pub(crate) index: Arc<EpisodeIndex>,
    /// `[episodes]`
    pub(crate) finished: Vec<bool>,
    pub(crate) mixture: Mixture,
    pub(crate) observations: StoredObservations,
    pub(crate) actions: ActionColumn,
    pub(crate) rewards: Vec<f32>,
    pub(crate) behavior_log_probs: Option<Vec<f32>>,
    pub(crate) optional: OptionalArrays,
    pub(crate) returns_to_go: Vec<f32>,
    pub(crate) split: Split,
    /// `[episodes]`, the first episode of which each is a copy.
    pub(crate) firsts: Vec<usize>,
    pub(crate) origin: Origin,
    pub(crate) counts: Counts,
    pub(crate) content_hash: String,
    pub(crate) odd: Vec<String>,
}

impl Dataset {
    /// The file it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of rows.
    pub fn n_transitions(&self) -> usize {
        self.rewards.len()
    }

    /// The episodes, which cover all rows in order.
    pub fn episodes(&self) -> &Episodes {
        self.index.episodes()
    }

    /// The index from rows to episodes, from which a sampler draws.
    pub fn index(&self) -> &Arc<EpisodeIndex> {
        &self.index
    }

    /// The observation at each row.
    pub fn observations(&self) -> &StoredObservations {
        &self.observations
    }

    /// The frames, if the observations are frames.
    pub fn frames(&self) -> Option<&FrameStore> {
        match &self.observations {
            StoredObservations::Frames(frames) => Some(frames),
            StoredObservations::Vectors { .. } => None,
        }
    }

    /// Mean and standard deviation of each number of an observation, if it consists of numbers:
    /// over all episodes that [`crate::Fragment`] leaves and that are not held out, for every
    /// [`crate::DatasetOptions::top_percent`].
    pub fn normalization(&self) -> Option<&Normalization> {
        match &self.observations {
            StoredObservations::Frames(_) => None,
            StoredObservations::Vectors { normalization, .. } => Some(normalization),
        }
    }

    /// The same dataset, its vector observations normalized by other statistics than its own: the
    /// statistics of an agent that continues training on it.
    #[must_use]
    pub fn with_normalization(mut self, other: &Normalization) -> Self {
        if let StoredObservations::Vectors { normalization, .. } = &mut self.observations {
            other.clone_into(normalization);
        }
        self
    }

    /// The action at each row.
    pub fn actions(&self) -> &ActionColumn {
        &self.actions
    }

    /// `[rows]`: clipped to [-1, 1] if they come from a DQN-replay log, else unchanged. With
    /// delayed rewards, all but an episode's last are 0.
    pub fn rewards(&self) -> &[f32] {
        &self.rewards
    }

    /// `[rows]`, log-probability of each recorded action under the policy that recorded it: `ln` of
    /// the probability of a discrete action, or of the density of a continuous one in the
    /// recording's units. `None` if the recording does not have them for all of its steps.
    pub fn behavior_log_probs(&self) -> Option<&[f32]> {
        self.behavior_log_probs.as_deref()
    }

    /// Whether the task is solved at a row although the trajectory goes on, so that value methods
    /// stop there.
    pub fn stops_at(&self, row: usize) -> bool {
        self.optional.stops.as_ref().is_some_and(|stops| stops[row])
    }

    /// Whether there are such rows.
    pub fn has_stops(&self) -> bool {
        self.optional.stops.is_some()
    }

    /// The discrete actions that are allowed at a row, `[n_actions]`; `None`: all.
    pub fn allowed_at(&self, row: usize) -> Option<&[bool]> {
        self.optional.action_masks.as_ref()?.at(row)
    }

    /// Whether there are masks of actions.
    pub fn has_action_masks(&self) -> bool {
        self.optional.action_masks.is_some()
    }

    /// `[rows]`, the factor of each step's loss, finite and at least 0; `None`: all are 1.
    pub fn step_weights(&self) -> Option<&[f32]> {
        self.optional.weights.as_deref()
    }

    /// `[rows]`, undiscounted sums of rewards to the episode's end, the row's own included.
    pub fn returns_to_go(&self) -> &[f32] {
        &self.returns_to_go
    }

    /// Returns of its finished episodes, in the units of the rewards. If
    /// [`Selection::Released`](crate::Selection::Released) begins an episode in the middle, this is
    /// the return of its rest.
    pub fn episode_returns(&self) -> EpisodeReturns {
        let episodes = self.episodes().as_slice().iter().zip(&self.finished);
        let finished = episodes.filter(|(_, finished)| **finished);
        EpisodeReturns::new(
            finished.map(|(episode, _)| (self.returns_to_go[episode.start], episode.range().len())),
        )
    }

    /// The observations with which its episodes begin; `None` for frames.
    pub fn first_observations(&self) -> Option<FirstObservations> {
        let StoredObservations::Vectors { width, values, .. } = &self.observations else {
            return None;
        };
        let first = |episode: &Episode| &values[episode.start * width..][..*width];
        FirstObservations::of(self.episodes().as_slice().iter().map(first), *width)
    }

    /// The episodes that the statistics of observations exclude.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// The episodes to train on and those held out in the run with seed `run_seed`.
    ///
    /// # Errors
    /// As [`Split::draw`], and [`DataError::Sampling`] if copies leave no episode to train on, or if
    /// the statistics of observations were computed for another split.
    pub fn split_for(&self, held_out: f64, run_seed: u64) -> Result<Split, DataError> {
        let split = Split::draw_groups(&self.firsts, held_out, run_seed)?;
        if self.normalization().is_some() && split != self.split {
            let reason = "the data was read for another train.held_out or seed".into();
            return Err(DataError::Sampling(reason));
        }
        Ok(split)
    }

    /// Checks that a value method can learn from it: a step that a limit ended has no target.
    ///
    /// # Errors
    /// When every episode is one such step.
    pub fn check_targets(&self) -> Result<(), DataError> {
        let episodes = self.episodes().as_slice();
        let has_target =
            |episode: &Episode| episode.length > 1 || episode.outcome == Outcome::Terminated;
        match episodes.iter().any(has_target) {
            true => Ok(()),
            false => Err(Fault::Inconsistent(
                "each of its episodes is one step that a limit ended, so no value can be learned: \
                 flag these steps as the task's end, or use algorithm=behavior_cloning"
                    .into(),
            )
            .at(self.path())),
        }
    }

    /// The sampler of the windows of `subset`, in the run with seed `run_seed`.
    ///
    /// # Errors
    /// As [`Dataset::split_for`] and [`WindowSampler::new`].
    pub fn sampler(
        &self,
        subset: Subset,
        held_out: f64,
        sampling: Sampling,
        context_length: usize,
        run_seed: u64,
    ) -> Result<WindowSampler, DataError> {
        let split = self.split_for(held_out, run_seed)?;
        let sampler = WindowSampler::new(self.index.clone(), sampling, context_length, run_seed)?;
        let sampler = split.restrict(sampler, subset)?;
        match subset {
            Subset::Training => sampler.with_shares(&self.mixture, run_seed),
            Subset::HeldOut => Ok(sampler),
        }
    }

    /// `sampler` with half of its windows drawn from the best episodes: the ones that make up one
    /// of `percents` of all. Unfinished episodes come last, as their returns are not known.
    #[must_use]
    pub fn with_top_percents(
        &self,
        sampler: WindowSampler,
        percents: &[f32],
        run_seed: u64,
    ) -> WindowSampler {
        let episodes = self.episodes().as_slice().iter();
        let returns = episodes.map(|episode| f64::from(self.returns_to_go[episode.start]));
        let order = best_first(&returns.collect::<Vec<_>>(), &self.finished);
        sampler.with_top_percents(percents, &order, run_seed)
    }

    /// SHA-256 of the rows and episodes: equal hashes, equal training data. It does not include the
    /// held-out episodes, so runs of several seeds share it, nor
    /// [`behavior_log_probs`](Self::behavior_log_probs).
    pub fn content_hash(&self) -> &str {
        &self.content_hash
    }

    /// The known facts about the recording beyond its files.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The counts.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Oddities of the recording, a sentence each.
    pub fn odd(&self) -> &[String] {
        &self.odd
    }

    /// Undiscounted sums of `rewards` to the end of each episode.
    pub(crate) fn sum_up(episodes: &Episodes, rewards: &[f32]) -> Vec<f32> {
        let mut to_go = Vec::with_capacity(rewards.len());
        for episode in episodes.as_slice() {
            to_go.extend(returns_to_go(&rewards[episode.range()], 1.0));
        }
        to_go
    }
}
