//! The manifest of a converted dataset.

use serde::{Deserialize, Serialize};

use crate::describe::origin::Origin;
use crate::sample::counts::Counts;
use crate::store::selection::Selection;

/// Version of the frame store's layout.
pub const FORMAT: u32 = 2;

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
    pub counts: Counts,
}
