//! What a Decision Transformer is made of.

use overtone_kernels::Activation;
use serde::{Deserialize, Serialize};

use crate::{error::ModelError, head::HeadConfig, transformer::TransformerConfig};

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

/// How queries are compared with keys, with its own options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum AttentionConfig {
    /// Softmax of scaled dot products.
    #[default]
    Softmax,
    /// The Fourier integral kernel (Nguyen et al. 2022).
    Fourier(FourierAttentionConfig),
}

/// Options of Fourier attention: weights `Π_d sinc(R_d (q_d − k_d))^power`, divided by their
/// sum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FourierAttentionConfig {
    /// 2, 4 or 6.
    pub power: u32,
    /// How many learned `R` each layer has.
    pub r: RShape,
    /// Every `R` before training.
    pub initial: f64,
    /// Added to the sum; 0 is the paper's formula, 1e-6 what its code does.
    pub epsilon: f64,
}

/// How many `R` a layer of Fourier attention learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RShape {
    /// One.
    Scalar,
    /// One for each head.
    PerHead,
    /// One for each dimension of a head, shared by the heads: the paper's vector `R`.
    PerDimension,
}

impl RShape {
    /// Of `[n_heads, d_head]`, with 1 where the `R` are shared.
    pub fn dims(self, n_heads: usize, d_head: usize) -> [usize; 2] {
        match self {
            Self::Scalar => [1, 1],
            Self::PerHead => [n_heads, 1],
            Self::PerDimension => [1, d_head],
        }
    }
}

impl AttentionConfig {
    /// # Errors
    /// When an option describes no kernel.
    pub fn validate(&self) -> Result<(), ModelError> {
        let Self::Fourier(fourier) = self else { return Ok(()) };
        if ![2, 4, 6].contains(&fourier.power) {
            return Err(config_error("attention.power", fourier.power, "must be 2, 4 or 6"));
        }
        if !(fourier.initial > 0.0 && fourier.initial.is_finite()) {
            return Err(config_error("attention.initial", fourier.initial, "must be positive"));
        }
        if !(fourier.epsilon >= 0.0 && fourier.epsilon.is_finite()) {
            let key = "attention.epsilon";
            return Err(config_error(key, fourier.epsilon, "must be 0 or positive"));
        }
        Ok(())
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
    /// How queries are compared with keys; dot products in models saved before there was
    /// a choice.
    #[serde(default)]
    pub attention: AttentionConfig,
    /// How a token becomes a distribution over actions.
    pub head: HeadConfig,
}

impl ModelConfig {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// Names the first key whose value describes no model.
    pub fn validate(&self) -> Result<(), ModelError> {
        self.transformer().validate()?;
        check_counts(&[("context_length", self.context_length), ("n_actions", self.n_actions)])?;
        self.head.validate(self.n_actions)
    }

    /// The transformer's part; its perceptrons have the reference's GELU.
    pub fn transformer(&self) -> TransformerConfig {
        TransformerConfig {
            n_layers: self.n_layers,
            n_heads: self.n_heads,
            d_model: self.d_model,
            dropout: self.dropout,
            conditioning: self.conditioning,
            attention: self.attention,
            activation: Activation::Gelu,
        }
    }
}

/// The most timesteps that a model of vectors may see, and bins that a number may be cut into:
/// far beyond any experiment, and small enough that a damaged configuration claims no memory.
/// No weight has their size, so nothing else bounds them.
const MOST: usize = 1 << 16;

/// # Errors
/// Names the first key whose value is 0 or beyond all measure.
pub(crate) fn check_counts(counts: &[(&'static str, usize)]) -> Result<(), ModelError> {
    match counts.iter().find(|(_, value)| !(1..=MOST).contains(value)) {
        Some(&(key, value)) => Err(config_error(key, value, "must lie in 1 to 65536")),
        None => Ok(()),
    }
}

pub(crate) fn config_error(
    key: &'static str,
    got: impl ToString,
    expected: &'static str,
) -> ModelError {
    ModelError::Config { key, got: got.to_string(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> ModelConfig {
        ModelConfig {
            n_layers: 1,
            n_heads: 2,
            d_model: 8,
            context_length: 3,
            n_actions: 5,
            max_timestep: 9,
            dropout: 0.0,
            conditioning: Conditioning::Return,
            attention: AttentionConfig::Fourier(FourierAttentionConfig {
                power: 6,
                r: RShape::PerHead,
                initial: 2.0,
                epsilon: 1e-6,
            }),
            head: HeadConfig::Linear,
        }
    }

    #[test]
    fn configurations_survive_being_stored() {
        let stored = serde_json::to_string(&config()).unwrap();
        assert!(stored.contains(r#""kind":"fourier","power":6,"r":"per_head""#), "{stored}");
        assert_eq!(serde_json::from_str::<ModelConfig>(&stored).unwrap(), config());
    }

    #[test]
    fn models_from_before_the_choice_have_softmax_attention() {
        let mut stored = serde_json::to_value(config()).unwrap();
        stored.as_object_mut().unwrap().remove("attention");
        let config: ModelConfig = serde_json::from_value(stored).unwrap();
        assert_eq!(config.attention, AttentionConfig::Softmax);
    }

    #[test]
    fn kernels_that_do_not_exist_are_refused() {
        let refused = |change: fn(&mut FourierAttentionConfig)| {
            let mut config = config();
            if let AttentionConfig::Fourier(fourier) = &mut config.attention {
                change(fourier);
            }
            config.validate().unwrap_err().to_string()
        };
        assert!(refused(|fourier| fourier.power = 3).contains("attention.power"));
        assert!(refused(|fourier| fourier.initial = 0.0).contains("attention.initial"));
        assert!(refused(|fourier| fourier.epsilon = f64::NAN).contains("attention.epsilon"));
    }
}
