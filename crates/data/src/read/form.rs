//! [`Form`]: how a recording is to be read, as far as its files do not say it.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// What the user says about a recording's files.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Form {
    /// The name of its format; empty: as the files say.
    pub layout: String,
    /// The columns of a table.
    pub columns: TableColumns,
}

impl Form {
    /// The format called `layout`.
    pub fn of(layout: &str) -> Self {
        Self { layout: layout.into(), columns: TableColumns::default() }
    }
}

/// The columns of a table (.csv, .tsv, .parquet) with a row for each step, by their names. A list in each
/// cell (state) is one column for each of its numbers; state.0 is the first. LeRobot's data has names of
/// its own where none is given here. In robomimic's files, observation names parts of obs.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, DocumentedFields,
)]
#[serde(default, deny_unknown_fields)]
pub struct TableColumns {
    /// Column with the episode of each row. The rows of an episode are adjacent and in order.
    pub episode: String,
    /// Columns of the observation (temperature,pressure).
    pub observation: String,
    /// Column of the action: words or whole numbers are discrete actions, other numbers continuous.
    /// Several columns are one continuous action.
    pub action: String,
    /// Column of the reward.
    pub reward: String,
    /// Column that is 1 or true where the task ended, in the last row of an episode. Empty: every
    /// episode was cut by a limit.
    pub termination: String,
    /// Column of the log-probability of each action under the policy that recorded it.
    pub behavior_log_probs: String,
    /// Column that is 0 where the task is solved although the episode goes on, else 1.
    pub masks: String,
    /// Column of the factor of each step's loss.
    pub weights: String,
    /// Columns that are 1 or true where a discrete action is allowed, one for each action.
    pub action_mask: String,
}

impl TableColumns {
    /// Whether no column is named.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
