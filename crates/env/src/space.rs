//! Spaces: what an environment shows and what it takes.

use overtone_core::Actions;

/// What one environment's observation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObservationSpace {
    /// Bytes of this shape; for Atari `[4, 84, 84]`, oldest frame first.
    Pixels {
        /// Shape of one observation.
        shape: Vec<usize>,
    },
    /// So many numbers, in the environment's own units.
    Vectors {
        /// Numbers per observation.
        width: usize,
    },
}

impl ObservationSpace {
    /// Values in one observation.
    pub fn size(&self) -> usize {
        match self {
            Self::Pixels { shape } => shape.iter().product(),
            Self::Vectors { width } => *width,
        }
    }
}

/// What one environment takes as an action.
#[derive(Clone, Debug, PartialEq)]
pub enum ActionSpace {
    /// One of a list of actions, by index.
    Discrete {
        /// A name for each action, in the order of their indices.
        names: Vec<String>,
    },
    /// So many numbers, each in `[-bound, bound]`.
    Continuous {
        /// Numbers per action.
        width: usize,
        /// Largest magnitude of each.
        bound: f32,
    },
}

impl ActionSpace {
    /// The space in words, for messages.
    pub fn describe(&self) -> String {
        match self {
            Self::Discrete { names } => format!("one of {} indices", names.len()),
            Self::Continuous { width, .. } => format!("vectors of {width} numbers"),
        }
    }
}

/// A batch of actions in words, for messages.
pub(crate) fn describe(actions: &Actions) -> String {
    match actions {
        Actions::Discrete(_) => "indices".into(),
        Actions::Continuous { width, .. } => format!("vectors of {width} numbers"),
    }
}
