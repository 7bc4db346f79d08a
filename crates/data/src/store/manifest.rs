//! The manifest of a converted dataset.

use serde::{Deserialize, Serialize};

use crate::origin::Origin;
use crate::store::selection::Selection;

/// Version of the frame store's layout.
pub const FORMAT: u32 = 1;

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// File name, without its folder.
    pub name: String,
    /// Size on disk.
    pub bytes: u64,
    /// SHA-256 of the file as it is on disk, in hexadecimal.
    pub sha256: String,
}

/// The contents of a converted dataset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreCounts {
    /// Rows: transitions, and padding rows where the selection keeps them.
    pub rows: usize,
    /// Rows that are padding.
    pub padding_rows: usize,
    /// Episodes; all of them whole, but for those that [`Selection::Released`] begins where a file
    /// does, in the middle of one.
    pub episodes: usize,
    /// Agent steps of the log it was drawn from.
    pub log_transitions: u64,
    /// Finished episodes of that log.
    pub log_episodes: u64,
}

/// The manifest of a converted dataset; stored in the file's metadata, and next to the file as
/// `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreManifest {
    /// Version of the layout, [`FORMAT`].
    pub format: u32,
    /// The game, as its folder is named (`Seaquest`).
    pub game: String,
    /// The run, as its folder is named (`1`).
    pub run: String,
    /// The known facts about the log beyond its files.
    pub origin: Origin,
    /// Units of the rewards: always `clipped`, to [-1, 1].
    pub reward_units: String,
    /// Actions are `0 .. n_actions`.
    pub n_actions: usize,
    /// How the transitions were chosen.
    pub selection: Selection,
    /// The seed they were chosen with first; another may choose the same.
    pub seed: u64,
    /// SHA-256 of the chosen slots.
    pub selection_hash: String,
    /// SHA-256 of the rows themselves: equal hashes, equal training data.
    pub content_hash: String,
    /// How many of everything.
    pub counts: StoreCounts,
    /// The files read.
    pub sources: Vec<Source>,
}
