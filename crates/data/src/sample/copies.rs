//! Which episodes of a recording are copies of others.

use std::collections::HashMap;

use overtone_core::Episode;
use sha2::{Digest, Sha256};

use crate::columns::{ActionColumn, Columns, ObservationColumn};
use crate::hex::hash_reals;

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

impl Columns {
    /// A hash of each episode's observations, rewards and actions; equal for copies.
    ///
    /// # Panics
    /// When the columns do not belong together ([`Columns::check`]).
    pub fn episode_hashes(&self) -> Vec<[u8; 32]> {
        let Self { observations, actions, rewards, .. } = self;
        let of = |episode: &Episode| episode_hash(observations, actions, rewards, episode);
        self.episodes
            .iter()
            .map(|episode| of(episode).expect("columns that were checked"))
            .collect()
    }
}

/// For each hash, the position of the first equal one.
pub(crate) fn firsts(hashes: &[[u8; 32]]) -> Vec<usize> {
    let mut first = HashMap::new();
    let of = |(position, hash)| *first.entry(hash).or_insert(position);
    hashes.iter().enumerate().map(of).collect()
}
