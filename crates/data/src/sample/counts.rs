//! [`Counts`]: how many of each a dataset has.

use serde::{Deserialize, Serialize};

/// Counts of a dataset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Rows to train on: transitions, and padding rows if the selection keeps them.
    pub rows: usize,
    /// Rows that are padding.
    pub padding_rows: usize,
    /// Episodes to train on.
    pub episodes: usize,
    /// Transitions left out because their episode is not finished.
    pub fragment_rows: usize,
    /// Transitions left out because their episode's return is not among the best.
    pub filtered_rows: usize,
}
