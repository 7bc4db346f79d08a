//! [`ContinuousDataset`]: episodes of continuous control in memory, ready to be sampled.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use overtone_core::{Episodes, Normalization, returns_to_go};
use sha2::{Digest, Sha256};

use crate::continuous::log::ContinuousLog;
use crate::continuous::manifest::{ContinuousCounts, ContinuousManifest};
use crate::continuous::selection::{
    ContinuousOptions, Fragment, best_episodes, delay_rewards, keep,
};
use crate::dataset::outcome_code;
use crate::episode_index::EpisodeIndex;
use crate::error::DataError;
use crate::held_out::Split;
use crate::manifest::Kind;
use crate::npy::hex;

/// Transitions of one robot, all in memory: a million steps of 17 numbers and 6 are some
/// 100 MB.
#[derive(Debug)]
pub struct ContinuousDataset {
    path: PathBuf,
    index: Arc<EpisodeIndex>,
    /// `[episodes]`
    finished: Vec<bool>,
    observations: Vec<f32>,
    actions: Vec<f32>,
    rewards: Vec<f32>,
    returns_to_go: Vec<f32>,
    normalization: Normalization,
    split: Split,
    manifest: ContinuousManifest,
    odd: Vec<String>,
}

impl ContinuousDataset {
    /// Reads a D4RL or Minari file and makes of it what `options` say.
    ///
    /// # Errors
    /// As [`ContinuousLog::open`] and [`ContinuousDataset::of`].
    pub fn open(path: &Path, options: &ContinuousOptions) -> Result<Self, DataError> {
        Self::of(ContinuousLog::open(path)?, options)
    }

    /// Makes of a recording what `options` say.
    ///
    /// # Errors
    /// [`DataError::NothingSelected`] when no episode is left, [`DataError::Sampling`] for an
    /// option out of range, or when no episode is left to train on or to hold out.
    pub fn of(mut log: ContinuousLog, options: &ContinuousOptions) -> Result<Self, DataError> {
        options.check()?;
        let (log_rows, log_episodes) = (log.n_transitions(), log.finished_episodes().count());
        let kept = |&episode: &usize| log.finished[episode] || options.fragment == Fragment::Keep;
        let kept: Vec<usize> = (0..log.episodes.len()).filter(kept).collect();
        if kept.is_empty() {
            return Err(DataError::NothingSelected {
                path: log.path,
                reason: if log_rows == 0 {
                    "it holds no step".into()
                } else {
                    "none of its episodes is finished, and unfinished ones are dropped".into()
                },
            });
        }
        keep(&mut log, &kept);
        let whole_rows = log.n_transitions();
        if options.delayed_reward {
            delay_rewards(&mut log);
        }
        let lengths: Vec<usize> = log.episodes.iter().map(|episode| episode.length).collect();
        let returns: Vec<f64> = log.episodes.iter().map(|e| log.episode_return(e)).collect();
        let best = best_episodes(&lengths, &returns, options.best_percent);
        let split = Split::draw(best.len(), options.held_out, options.seed)?;
        // Before the worse episodes go, as in the reference: what a number means does not
        // depend on which episodes are imitated.
        let all = Normalization::of(&log.observations, log.observation_width);
        let held_out: Vec<usize> = split.held_out.iter().map(|&episode| best[episode]).collect();
        let normalization = without(&log, &held_out).unwrap_or_else(|| all.clone());
        keep(&mut log, &best);

        let wrong = |reason: String| DataError::Inconsistent { path: log.path.clone(), reason };
        let episodes = Episodes::new(log.episodes).map_err(|error| wrong(error.to_string()))?;
        let index = EpisodeIndex::new(episodes)
            .ok_or_else(|| wrong("it has more steps than can be numbered".into()))?;
        let mut to_go = Vec::with_capacity(index.n_transitions());
        for episode in index.episodes().as_slice() {
            to_go.extend(returns_to_go(&log.rewards[episode.range()], 1.0));
        }
        let name = log.path.file_name().unwrap_or_default();
        let mut dataset = Self {
            manifest: ContinuousManifest {
                file: name.to_string_lossy().into_owned(),
                format: log.format,
                origin: options.origin.clone(),
                observation_width: log.observation_width,
                action_width: log.action_width,
                fragment: options.fragment,
                best_percent: options.best_percent,
                delayed_reward: options.delayed_reward,
                content_hash: String::new(),
                counts: ContinuousCounts {
                    rows: index.n_transitions(),
                    episodes: index.episodes().as_slice().len(),
                    log_rows,
                    log_episodes,
                    fragment_rows: log_rows - whole_rows,
                    filtered_rows: whole_rows - index.n_transitions(),
                },
            },
            path: log.path,
            odd: log.odd,
            index: Arc::new(index),
            finished: log.finished,
            observations: log.observations,
            actions: log.actions,
            rewards: log.rewards,
            returns_to_go: to_go,
            normalization,
            split,
        };
        dataset.manifest.content_hash = dataset.digest(&all);
        Ok(dataset)
    }

    /// The file it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is odd about the recording, a sentence each ([`ContinuousLog::odd`]).
    pub fn odd(&self) -> &[String] {
        &self.odd
    }

    /// Number of rows.
    pub fn n_transitions(&self) -> usize {
        self.rewards.len()
    }

    /// Numbers of an observation.
    pub fn observation_width(&self) -> usize {
        self.manifest.observation_width
    }

    /// Numbers of an action.
    pub fn action_width(&self) -> usize {
        self.manifest.action_width
    }

    /// The episodes, which cover all rows in order.
    pub fn episodes(&self) -> &Episodes {
        self.index.episodes()
    }

    /// Which rows belong to which episode: what a sampler draws from.
    pub fn index(&self) -> &Arc<EpisodeIndex> {
        &self.index
    }

    /// `[rows, observation_width]`, as recorded.
    pub fn observations(&self) -> &[f32] {
        &self.observations
    }

    /// `[rows, action_width]`
    pub fn actions(&self) -> &[f32] {
        &self.actions
    }

    /// `[rows]`, raw; all but an episode's last are 0 where rewards are delayed.
    pub fn rewards(&self) -> &[f32] {
        &self.rewards
    }

    /// `[rows]`, undiscounted sums of raw rewards to the episode's end, the row's own included.
    pub fn returns_to_go(&self) -> &[f32] {
        &self.returns_to_go
    }

    /// Raw return of each finished episode.
    pub fn episode_returns(&self) -> Vec<f32> {
        let episodes = self.episodes().as_slice().iter().zip(&self.finished);
        let finished = episodes.filter(|(_, finished)| **finished);
        finished.map(|(episode, _)| self.returns_to_go[episode.start]).collect()
    }

    /// Mean and standard deviation of each number of an observation, over all episodes that
    /// [`Fragment`] leaves and that are not held out, whatever
    /// [`ContinuousOptions::best_percent`] is.
    pub fn normalization(&self) -> &Normalization {
        &self.normalization
    }

    /// Which of the episodes are held out.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// SHA-256 of the episodes and of the statistics of all of them: equal hashes, equal data.
    /// Which episodes are held out is not in it, so runs of several seeds share it.
    pub fn content_hash(&self) -> &str {
        &self.manifest.content_hash
    }

    /// Where it comes from.
    pub fn kind(&self) -> Kind {
        self.manifest.origin.kind
    }

    /// How many of everything.
    pub fn counts(&self) -> &ContinuousCounts {
        &self.manifest.counts
    }

    /// What is known of it.
    pub fn manifest(&self) -> &ContinuousManifest {
        &self.manifest
    }

    fn digest(&self, statistics: &Normalization) -> String {
        let mut hash = Sha256::new();
        for number in [self.n_transitions(), self.observation_width(), self.action_width()] {
            hash.update((number as u64).to_le_bytes());
        }
        let Normalization { mean, std } = statistics;
        for column in [&self.observations, &self.actions, &self.rewards, mean, std] {
            // In pieces that are quick to hash and small to hold.
            for piece in column.chunks(1 << 14) {
                hash.update(piece.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>());
            }
        }
        for episode in self.episodes().as_slice() {
            hash.update((episode.length as u64).to_le_bytes());
            hash.update([outcome_code(episode.outcome)]);
        }
        hex(&hash.finalize())
    }
}

/// Statistics of the observations without those of the episodes at positions `held_out`, which
/// ascend; `None` when nothing is held out.
fn without(log: &ContinuousLog, held_out: &[usize]) -> Option<Normalization> {
    held_out.first()?;
    let width = log.observation_width;
    let episodes = log.episodes.iter().enumerate();
    let rest = episodes.filter(|(position, _)| held_out.binary_search(position).is_err());
    let observations: Vec<f32> = rest
        .flat_map(|(_, episode)| &log.observations[episode.start * width..episode.end() * width])
        .copied()
        .collect();
    Some(Normalization::of(&observations, width))
}
