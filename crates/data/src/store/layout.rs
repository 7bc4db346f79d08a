//! The place of each tensor in the file, and the header that describes it.

use overtone_core::Episode;
use overtone_core::picture::{FRAME, SIDE};

use crate::outcome_code::outcome_code;
use crate::store::manifest::StoreManifest;

/// Name of the finished file in its folder.
pub const STORE_FILE: &str = "frames.safetensors";
/// Name of the manifest's copy next to it.
pub const MANIFEST_FILE: &str = "manifest.json";
/// A placeholder for a hash: of the same length, so the header's size is final.
pub(super) const HASH_TO_COME: &str =
    "0000000000000000000000000000000000000000000000000000000000000000";

/// Byte ranges of the tensors, from the start of the data; in their order.
pub(crate) struct StoreLayout {
    pub(crate) rows: usize,
    pub(crate) episodes: usize,
}

impl StoreLayout {
    pub(crate) fn tensors(&self) -> [(&'static str, &'static str, Vec<usize>, usize); 6] {
        let (rows, episodes) = (self.rows, self.episodes);
        [
            ("episode_starts", "I64", vec![episodes], 8 * episodes),
            ("episode_lengths", "I64", vec![episodes], 8 * episodes),
            ("rewards", "F32", vec![rows], 4 * rows),
            ("episode_outcomes", "U8", vec![episodes], episodes),
            ("actions", "U8", vec![rows], rows),
            ("frames", "U8", vec![rows, SIDE, SIDE], FRAME * rows),
        ]
    }

    /// Bytes before tensor `name`.
    pub(super) fn offset(&self, name: &str) -> u64 {
        let before = self.tensors().into_iter().take_while(|tensor| tensor.0 != name);
        before.map(|tensor| tensor.3 as u64).sum()
    }

    pub(crate) fn data_bytes(&self) -> u64 {
        self.tensors().iter().map(|tensor| tensor.3 as u64).sum()
    }

    /// Length field and JSON header, padded with spaces to a multiple of 8.
    pub(super) fn header(&self, manifest: &StoreManifest) -> Result<Vec<u8>, serde_json::Error> {
        let mut map = serde_json::Map::new();
        let text = serde_json::to_string(manifest)?;
        map.insert("__metadata__".into(), serde_json::json!({ "manifest": text }));
        let mut at = 0;
        for (name, dtype, shape, bytes) in self.tensors() {
            let entry = serde_json::json!({
                "dtype": dtype, "shape": shape, "data_offsets": [at, at + bytes],
            });
            map.insert(name.into(), entry);
            at += bytes;
        }
        let mut json = serde_json::to_vec(&map)?;
        json.resize(json.len().next_multiple_of(8), b' ');
        let mut header = (json.len() as u64).to_le_bytes().to_vec();
        header.extend(json);
        Ok(header)
    }
}

/// The episode tensors, in the layout's order.
pub(super) fn episode_table(episodes: &[Episode]) -> [(&'static str, Vec<u8>); 3] {
    let i64s = |number: fn(&Episode) -> usize| {
        episodes.iter().flat_map(|episode| (number(episode) as i64).to_le_bytes()).collect()
    };
    [
        ("episode_starts", i64s(|episode| episode.start)),
        ("episode_lengths", i64s(|episode| episode.length)),
        ("episode_outcomes", episodes.iter().map(|e| outcome_code(e.outcome)).collect()),
    ]
}
