//! [`ActingNetwork`]: the form of the network that an agent acts with. Its policy and its exported
//! graph follow from it.

use burn::tensor::Device;
use overtone_core::{Normalization, Play, Task};
use overtone_model::{ModelConfig, head::HeadConfig, weights::NamedTensors};

use crate::value::network::Hidden;

/// The network that an agent acts with.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // one at a time
pub enum ActingNetwork<'a> {
    /// A model of recorded actions.
    Sequence(ModelConfig),
    /// The tanh of an [`Mlp`](crate::value::Mlp), for continuous actions on vectors.
    Tanh {
        /// Prefix of the names of its tensors, such as `mean.`; may be empty.
        prefix: &'static str,
        /// Its hidden layers.
        hidden: Hidden,
        /// Whether it reads normalized observations.
        is_normalized: bool,
        /// The number of actions that it chooses at once, and plays one after the other.
        chunk_size: usize,
    },
    /// A [`CategoricalActor`](crate::iql::CategoricalActor), for discrete actions.
    Categorical {
        /// The layers of its body.
        hidden: Hidden,
        /// Its head.
        head: &'a HeadConfig,
        /// Whether it reads normalized observations.
        is_normalized: bool,
    },
    /// The mean of the quantiles of each discrete action, by a
    /// [`QNetwork`](crate::value::QNetwork) on observations that are normalized as the agent's are.
    Quantiles {
        /// The layers of its body.
        hidden: Hidden,
        /// Quantiles per action.
        n_quantiles: usize,
        /// Probability of a random action when actions are sampled.
        epsilon: f64,
    },
}

impl ActingNetwork<'_> {
    /// The number of actions that it chooses at once.
    pub fn chunk_size(&self) -> usize {
        match self {
            Self::Tanh { chunk_size, .. } => *chunk_size,
            Self::Sequence(_) | Self::Categorical { .. } | Self::Quantiles { .. } => 1,
        }
    }

    /// How `play` samples its discrete actions or bins; `None`: it has one action for each
    /// observation.
    pub fn draw(&self, play: &Play) -> Option<Draw> {
        match self {
            Self::Sequence(_) | Self::Categorical { .. } => {
                Some(Draw::Softmax { temperature: play.acting.temperature })
            }
            Self::Quantiles { epsilon, .. } => Some(Draw::Greedy { epsilon: *epsilon }),
            Self::Tanh { .. } => None,
        }
    }
}

/// How a discrete action is sampled.
#[derive(Clone, Copy, Debug)]
pub enum Draw {
    /// The best action, except for a fraction of random ones.
    Greedy {
        /// The fraction of random actions.
        epsilon: f64,
    },
    /// From the softmax of the scores.
    Softmax {
        /// Divisor of the scores.
        temperature: f32,
    },
}

/// Parts of a policy besides the network.
#[derive(Clone, Copy, Debug)]
pub struct PolicyParts<'a> {
    /// The task.
    pub task: &'a Task,
    /// The trained weights.
    pub weights: &'a NamedTensors,
    /// Normalization of vector observations before the policy sees them.
    pub normalization: Option<&'a Normalization>,
    /// The acting protocol.
    pub play: &'a Play,
    /// Device of the computation.
    pub device: &'a Device,
}
