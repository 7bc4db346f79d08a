//! Spaces: the form of observations and actions.

use serde::{Deserialize, Serialize};

use crate::picture::{SIDE, STACK};
use crate::policy::Actions;

/// The form of one observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ObservationSpace {
    /// Bytes of this shape; for Atari `[4, 84, 84]`, oldest frame first.
    Pixels {
        /// Shape of one observation.
        shape: Vec<usize>,
    },
    /// Vectors of real numbers, in the environment's own units.
    Vectors {
        /// Numbers per observation.
        width: usize,
    },
}

impl ObservationSpace {
    /// Frames of Atari games: [`STACK`] of [`SIDE`] × [`SIDE`] pixels.
    pub fn frames() -> Self {
        Self::Pixels { shape: vec![STACK, SIDE, SIDE] }
    }

    /// Values in one observation.
    pub fn size(&self) -> usize {
        match self {
            Self::Pixels { shape } => shape.iter().product(),
            Self::Vectors { width } => *width,
        }
    }
}

/// The form of one action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ActionSpace {
    /// Discrete actions: an index into an action set.
    Discrete {
        /// A name for each action, in the order of their indices.
        names: Vec<String>,
    },
    /// Continuous actions: a vector of numbers, each with its own bounds.
    Continuous {
        /// The smallest value of each dimension, in the environment's own units; minus infinity if
        /// it is unbounded.
        #[serde(with = "crate::bounds")]
        low: Vec<f32>,
        /// The largest value of each dimension; as many as in `low`.
        #[serde(with = "crate::bounds")]
        high: Vec<f32>,
    },
}

impl ActionSpace {
    /// `width` numbers, each in [-1, 1].
    pub fn unit(width: usize) -> Self {
        Self::Continuous { low: vec![-1.0; width], high: vec![1.0; width] }
    }

    /// `n` discrete actions, named by their indices.
    pub fn numbered(n: usize) -> Self {
        Self::Discrete { names: (0..n).map(|action| action.to_string()).collect() }
    }

    /// Number of dimensions of a continuous action, or number of discrete actions.
    pub fn size(&self) -> usize {
        match self {
            Self::Discrete { names } => names.len(),
            Self::Continuous { low, .. } => low.len(),
        }
    }

    /// The space of `n` continuous actions, one after the other; discrete actions stay single.
    #[must_use]
    pub fn in_chunks(&self, n: usize) -> Self {
        match self {
            Self::Discrete { .. } => self.clone(),
            Self::Continuous { low, high } => {
                Self::Continuous { low: low.repeat(n), high: high.repeat(n) }
            }
        }
    }

    /// The space in words, for messages.
    pub fn describe(&self) -> String {
        match self {
            Self::Discrete { names } => format!("one of {} indices", names.len()),
            Self::Continuous { low, .. } => format!("vectors of {} numbers", low.len()),
        }
    }
}

impl Actions {
    /// A batch of actions in words, for messages.
    pub fn describe(&self) -> String {
        match self {
            Self::Discrete(_) => "indices".into(),
            Self::Continuous { width, .. } => format!("vectors of {width} numbers"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_as_they_were_written() {
        let low = vec![-1.0, f32::NEG_INFINITY, 0.1];
        let space = ActionSpace::Continuous { low, high: vec![1.0, f32::INFINITY, 2.5] };
        let text = serde_json::to_string(&space).unwrap();
        let expected = r#"{"kind":"continuous","low":[-1.0,"-inf",0.1],"high":[1.0,"inf",2.5]}"#;
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<ActionSpace>(&text).unwrap(), space);
        let wrong = r#"{"kind":"continuous","low":["low"],"high":[1]}"#;
        assert!(serde_json::from_str::<ActionSpace>(wrong).is_err());
    }
}
