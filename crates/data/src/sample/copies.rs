//! Which episodes of a recording are copies of others.

use std::collections::HashMap;

use overtone_core::Episode;
use sha2::{Digest, Sha256};

use crate::hex::hash_reals;
use crate::read::column::{ActionColumn, ObservationColumn};
use crate::read::columns::Columns;

/// SHA-256 of an episode's observations, rewards and actions; `None` if a column is too short.
pub(crate) fn episode_hash(
    observations: &ObservationColumn,
    actions: &ActionColumn,
    rewards: &[f32],
    episode: &Episode,
) -> Option<[u8; 32]> {
    let rows = |width: usize| episode.start * width..episode.end() * width;
    let mut hash = Sha256::new();
    match observations {
        ObservationColumn::Vectors { width, values } => {
            hash_reals(&mut hash, values.get(rows(*width))?);
        }
        ObservationColumn::Frames { pixels, .. } => {
            hash.update(pixels.get(rows(observations.width()))?);
        }
    }
    hash_reals(&mut hash, rewards.get(rows(1))?);
    match actions {
        ActionColumn::Continuous { width, values } => {
            hash_reals(&mut hash, values.get(rows(*width))?);
        }
        ActionColumn::Discrete { values, .. } => {
            for action in values.get(rows(1))? {
                hash.update(action.to_le_bytes());
            }
        }
    }
    Some(hash.finalize().into())
}

/// Hashes of an episode that show whether it is a copy of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpisodeMark {
    /// Hash of the first observation.
    pub start: [u8; 32],
    /// Hash of all observations, rewards and actions.
    pub whole: [u8; 32],
}

impl Columns {
    /// The marks of the episodes, in order.
    ///
    /// # Panics
    /// When the columns do not belong together ([`Columns::check`]).
    pub fn episode_marks(&self) -> Vec<EpisodeMark> {
        let Self { observations, actions, rewards, .. } = self;
        let mark = |episode: &Episode| EpisodeMark {
            start: first_observation_hash(observations, episode),
            whole: episode_hash(observations, actions, rewards, episode)
                .expect("columns that were checked"),
        };
        self.episodes.iter().map(mark).collect()
    }
}

/// Largest number of episodes that share the first observation of a copy. Contexts of a shop or cells
/// of a grid are shared by many episodes that are not copies.
const MOST_COPIES: usize = 10;

/// Smallest share of equal episodes, among those that share a first observation, for which a shared
/// first observation is a mark of copies.
const LEAST_EQUAL: f64 = 0.9;

/// For each episode, the earliest episode with the same first observation if it is a copy, else itself.
///
/// A first observation is a mark of copies if at most `MOST_COPIES` episodes share it, and if, in the
/// whole recording, nearly all episodes that share one are equal to their end. The groups depend on
/// first observations alone. If rewards decided which episodes form a group, a split by groups would
/// choose episodes by their outcome.
pub fn copies(marks: &[EpisodeMark]) -> Vec<usize> {
    let mut groups: HashMap<[u8; 32], Vec<usize>> = HashMap::new();
    for (position, mark) in marks.iter().enumerate() {
        groups.entry(mark.start).or_default().push(position);
    }
    groups.retain(|_, group| (2..=MOST_COPIES).contains(&group.len()));
    let (mut n_equal, mut n_later) = (0, 0);
    for group in groups.values() {
        let first = marks[group[0]].whole;
        n_equal += group[1..].iter().filter(|&&later| marks[later].whole == first).count();
        n_later += group.len() - 1;
    }
    let mut firsts: Vec<usize> = (0..marks.len()).collect();
    if n_equal as f64 >= LEAST_EQUAL * n_later as f64 {
        groups.values().for_each(|group| group.iter().for_each(|&at| firsts[at] = group[0]));
    }
    firsts
}

/// SHA-256 of an episode's first observation.
fn first_observation_hash(observations: &ObservationColumn, episode: &Episode) -> [u8; 32] {
    let width = observations.width();
    let first = episode.start * width..(episode.start + 1) * width;
    let mut hash = Sha256::new();
    match observations {
        ObservationColumn::Vectors { values, .. } => hash_reals(&mut hash, &values[first]),
        ObservationColumn::Frames { pixels } => hash.update(&pixels[first]),
    }
    hash.finalize().into()
}
