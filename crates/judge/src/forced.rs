//! [`Forced`]: the actions of a policy at every step of a recording.

/// Actions of one policy at the rows of a dataset, with the recorded actions in its history.
#[derive(Clone, Debug, PartialEq)]
pub struct Forced {
    /// The action at each row.
    pub actions: ForcedActions,
    /// `[rows]`: the return-to-go that conditioned the policy, in the units of the rewards.
    pub returns_to_go: Vec<f32>,
}

/// An action at each row of a dataset.
#[derive(Clone, Debug, PartialEq)]
pub enum ForcedActions {
    /// Discrete actions.
    Probabilities {
        /// Number of actions.
        n: usize,
        /// `[rows, n]`, each row with the sum 1.
        values: Vec<f32>,
    },
    /// Continuous actions.
    Vectors {
        /// Numbers of an action.
        width: usize,
        /// `[rows, width]`, in [-1, 1].
        values: Vec<f32>,
    },
}

impl ForcedActions {
    /// Numbers of each row.
    pub fn width(&self) -> usize {
        match self {
            Self::Probabilities { n, .. } => *n,
            Self::Vectors { width, .. } => *width,
        }
    }

    /// `[rows, width]`
    pub fn values(&self) -> &[f32] {
        match self {
            Self::Probabilities { values, .. } | Self::Vectors { values, .. } => values,
        }
    }
}
