//! A dataset made of columns in memory.

use std::path::Path;
use std::sync::Arc;

use overtone_core::picture::{SIDE, STACK};
use overtone_core::{Episodes, Normalization};
use sha2::{Digest, Sha256};

use crate::error::{DataError, Fault};
use crate::hex::{hash_reals, hex};
use crate::outcome_code::outcome_code;
use crate::read;
use crate::read::column::{ActionColumn, ObservationColumn};
use crate::read::columns::Columns;
use crate::sample::copies::copies;
use crate::sample::counts::Counts;
use crate::sample::dataset::{Dataset, StoredObservations};
use crate::sample::episode_index::EpisodeIndex;
use crate::sample::held_out::Split;
use crate::sample::options::{DatasetOptions, Fragment, best_episodes, best_first, delay_rewards};
use crate::store::frames::FrameStore;

impl Dataset {
    /// Reads the recording at `path` into memory and makes of it what `options` say.
    ///
    /// # Errors
    /// As [`read::columns()`] and [`Dataset::of`].
    pub fn open(path: &Path, options: &DatasetOptions) -> Result<Self, DataError> {
        Self::of(read::columns(path)?, options)
    }

    /// Makes of a recording what `options` say.
    ///
    /// # Errors
    /// `Fault::NothingSelected` when no episode is left, [`DataError::Sampling`] for an
    /// option out of range, or when no episode is left to train on or to hold out,
    /// `Fault::Inconsistent` for columns that do not belong together.
    pub fn of(mut log: Columns, options: &DatasetOptions) -> Result<Self, DataError> {
        options.check()?;
        if let (ActionColumn::Discrete { n_actions, .. }, Some(known)) =
            (&mut log.actions, options.origin.n_actions)
        {
            *n_actions = known.max(*n_actions);
        }
        log.check()?;
        let log_rows = log.n_transitions();
        let kept = |&episode: &usize| log.finished[episode] || options.fragment == Fragment::Keep;
        let kept: Vec<usize> = (0..log.episodes.len()).filter(kept).collect();
        if kept.is_empty() {
            return Err(Fault::NothingSelected(if log_rows == 0 {
                "it holds no step".into()
            } else {
                "none of its episodes is finished, and unfinished ones are dropped; to train \
                     on them as if they ended there, say data.fragment=keep"
                    .into()
            })
            .at(log.path));
        }
        log.keep(&kept);
        for (source, path) in log.mixture.paths.iter().enumerate() {
            if !log.mixture.sources.iter().any(|&of| usize::from(of) == source) {
                log.odd.push(format!(
                    "{} gives no step: none of its episodes is finished; leave it out, or use \
                     data.fragment=keep",
                    path.display()
                ));
            }
        }
        let whole_rows = log.n_transitions();
        if options.delayed_reward {
            delay_rewards(&mut log);
        }
        let lengths: Vec<usize> = log.episodes.iter().map(|episode| episode.length).collect();
        let returns: Vec<f64> = log.episodes.iter().map(|e| log.episode_return(e)).collect();
        let order = best_first(&returns, &log.finished);
        let best = best_episodes(&lengths, order, options.top_percent);
        let firsts = if options.held_out > 0.0 {
            let marks = log.episode_marks();
            copies(&best.iter().map(|&episode| marks[episode]).collect::<Vec<_>>())
        } else {
            (0..best.len()).collect()
        };
        let split = Split::draw_groups(&firsts, options.held_out, options.seed)?;
        let n_copies = split.held_out.iter().filter(|&&episode| firsts[episode] != episode).count();
        if n_copies > 0 {
            log.odd.push(format!("copies of held-out episodes, held out too: {n_copies}"));
        }
        // Before the worse episodes go, as in the reference: what a number means does not
        // depend on which episodes are imitated.
        let all = statistics(&log);
        let held_out: Vec<usize> = split.held_out.iter().map(|&episode| best[episode]).collect();
        let trained = without(&log, &held_out).or_else(|| all.clone());
        log.keep(&best);
        if log.optional.weights.as_ref().is_some_and(|all| all.iter().all(|&weight| weight == 0.0))
        {
            let reason = "the weights of its steps are all 0. Set some of them above 0";
            return Err(Fault::NothingSelected(reason.into()).at(log.path));
        }

        let wrong = |reason: String| Fault::Inconsistent(reason).at(&log.path);
        let episodes = Episodes::new(log.episodes).map_err(|error| wrong(error.to_string()))?;
        let index = EpisodeIndex::new(episodes)
            .ok_or_else(|| wrong("it has more steps than can be numbered".into()))?;
        // Without the log-probabilities: training does not read them, and the hashes in checkpoints
        // stay valid.
        let content_hash =
            digest(&log.observations, &log.actions, &log.rewards, all.as_ref(), index.episodes());
        let content_hash = log.optional.hashed(content_hash);
        let (observations, shown_before) = match log.observations {
            ObservationColumn::Vectors { width, values } => {
                let normalization = trained.unwrap_or_else(|| Normalization::identity(width));
                (StoredObservations::Vectors { width, values, normalization }, 0)
            }
            ObservationColumn::Frames { pixels } => {
                (StoredObservations::Frames(FrameStore::in_memory(pixels)), STACK - 1)
            }
        };
        Ok(Self {
            counts: Counts {
                rows: index.n_transitions(),
                padding_rows: 0,
                episodes: index.episodes().as_slice().len(),
                fragment_rows: log_rows - whole_rows,
                filtered_rows: whole_rows - index.n_transitions(),
            },
            path: log.path,
            odd: log.odd,
            finished: log.finished,
            mixture: log.mixture,
            returns_to_go: Self::sum_up(index.episodes(), &log.rewards),
            index: Arc::new(index.showing_before(shown_before)),
            observations,
            actions: log.actions,
            rewards: log.rewards,
            behavior_log_probs: log.behavior_log_probs,
            optional: log.optional,
            split,
            firsts,
            origin: options.origin.clone(),
            content_hash,
        })
    }
}

/// Statistics of the observations, if they are numbers.
fn statistics(log: &Columns) -> Option<Normalization> {
    match &log.observations {
        ObservationColumn::Vectors { width, values } => Some(Normalization::of(values, *width)),
        ObservationColumn::Frames { .. } => None,
    }
}

/// Statistics of the observations without the episodes at positions `held_out`, which ascend;
/// `None` if `held_out` is empty.
fn without(log: &Columns, held_out: &[usize]) -> Option<Normalization> {
    held_out.first()?;
    let ObservationColumn::Vectors { width, values } = &log.observations else { return None };
    let episodes = log.episodes.iter().enumerate();
    let rest = episodes.filter(|(position, _)| held_out.binary_search(position).is_err());
    let observations: Vec<f32> = rest
        .flat_map(|(_, episode)| &values[episode.start * width..episode.end() * width])
        .copied()
        .collect();
    Some(Normalization::of(&observations, *width))
}

/// SHA-256 of the episodes and of the statistics of all of them.
pub(crate) fn digest(
    observations: &ObservationColumn,
    actions: &ActionColumn,
    rewards: &[f32],
    statistics: Option<&Normalization>,
    episodes: &Episodes,
) -> String {
    let mut hash = Sha256::new();
    for number in [rewards.len(), observations.width(), actions.size()] {
        hash.update((number as u64).to_le_bytes());
    }
    match observations {
        ObservationColumn::Vectors { values, .. } => hash_reals(&mut hash, values),
        ObservationColumn::Frames { pixels } => {
            // Vectors with continuous actions came first, so their hash does not include the kind.
            hash.update(b"frames");
            for number in [SIDE, SIDE, STACK] {
                hash.update((number as u64).to_le_bytes());
            }
            hash.update(pixels);
        }
    }
    match actions {
        ActionColumn::Continuous { values, .. } => hash_reals(&mut hash, values),
        ActionColumn::Discrete { values, .. } => {
            hash.update(b"discrete");
            hash.update(values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>());
        }
    }
    hash_reals(&mut hash, rewards);
    if let Some(Normalization { mean, std }) = statistics {
        hash_reals(&mut hash, mean);
        hash_reals(&mut hash, std);
    }
    for episode in episodes.as_slice() {
        hash.update((episode.length as u64).to_le_bytes());
        hash.update([outcome_code(episode.outcome)]);
    }
    hex(&hash.finalize())
}
