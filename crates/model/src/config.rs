//! What a Decision Transformer is made of.

use serde::{Deserialize, Serialize};

use crate::{error::ModelError, head::HeadConfig};

/// What the model is told before each observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conditioning {
    /// The return still to come: tokens `R̂, s, a` (Chen et al. 2021).
    Return,
    /// Nothing: tokens `s, a`. This is behaviour cloning with the same transformer.
    None,
}

impl Conditioning {
    /// Tokens per timestep.
    pub fn tokens_per_timestep(self) -> usize {
        match self {
            Self::Return => 3,
            Self::None => 2,
        }
    }
}

/// A Decision Transformer on Atari frames and discrete actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Transformer blocks.
    pub n_layers: usize,
    /// Attention heads; must divide `d_model`.
    pub n_heads: usize,
    /// Width of a token.
    pub d_model: usize,
    /// Timesteps the model sees.
    pub context_length: usize,
    /// Size of the action set.
    pub n_actions: usize,
    /// Largest timestep the global position table knows; later ones use its last row.
    pub max_timestep: usize,
    /// Probability of dropping an embedding, an attention weight or a residual while training.
    pub dropout: f64,
    /// What the model is told before each observation.
    pub conditioning: Conditioning,
    /// How a token becomes a distribution over actions.
    pub head: HeadConfig,
}

impl ModelConfig {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// Names the first key whose value describes no model.
    pub fn validate(&self) -> Result<(), ModelError> {
        let positive = [
            ("n_layers", self.n_layers),
            ("n_heads", self.n_heads),
            ("d_model", self.d_model),
            ("context_length", self.context_length),
            ("n_actions", self.n_actions),
        ];
        for (key, value) in positive {
            if value == 0 {
                return Err(config_error(key, value, "must be at least 1"));
            }
        }
        if !self.d_model.is_multiple_of(self.n_heads) {
            return Err(config_error("n_heads", self.n_heads, "must divide d_model"));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(config_error("dropout", self.dropout, "must lie in [0, 1)"));
        }
        self.head.validate(self.n_actions)
    }

    /// Width of one attention head.
    pub fn d_head(&self) -> usize {
        self.d_model / self.n_heads
    }
}

pub(crate) fn config_error(
    key: &'static str,
    got: impl ToString,
    expected: &'static str,
) -> ModelError {
    ModelError::Config { key, got: got.to_string(), expected }
}
