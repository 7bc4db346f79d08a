//! The hash of a dataset's rows, which conversion and verification compute alike.
//!
//! Each row is hashed for itself, with its position, and the row hashes are added up, so that
//! shards can be hashed in any order and by any number of threads; equal training data has an
//! equal hash, however the log was split into files. It guards against damage and mix-ups, not
//! against someone who forges data.

use sha2::{Digest, Sha256};

use crate::hex::hex;

/// A sum of row hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowHashes([u64; 4]);

impl RowHashes {
    /// Adds row `row`.
    pub(crate) fn add_row(&mut self, row: usize, action: u8, reward: f32, frame: &[u8]) {
        let mut hash = Sha256::new();
        hash.update((row as u64).to_le_bytes());
        hash.update([action]);
        hash.update(reward.to_le_bytes());
        hash.update(frame);
        let digest: [u8; 32] = hash.finalize().into();
        let (lanes, _) = digest.as_chunks::<8>();
        for (sum, &lane) in self.0.iter_mut().zip(lanes) {
            *sum = sum.wrapping_add(u64::from_le_bytes(lane));
        }
    }

    /// The sum of two sums.
    pub(crate) fn plus(mut self, other: Self) -> Self {
        for (sum, lane) in self.0.iter_mut().zip(other.0) {
            *sum = sum.wrapping_add(lane);
        }
        self
    }

    /// The hash of all rows and of the episode tensors, given as they are stored.
    pub(crate) fn finish<'a>(self, episodes: impl IntoIterator<Item = &'a [u8]>) -> String {
        let mut hash = Sha256::new();
        for lane in self.0 {
            hash.update(lane.to_le_bytes());
        }
        for bytes in episodes {
            hash.update(bytes);
        }
        hex(&hash.finalize())
    }
}
