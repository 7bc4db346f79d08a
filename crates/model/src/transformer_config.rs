//! [`TransformerConfig`]: the sizes of a transformer.

use overtone_kernels::Activation;

use crate::{
    attention::AttentionConfig,
    error::{ModelError, check_counts, config_error},
    tokens::Conditioning,
};

/// The part of a model's configuration that its transformer needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransformerConfig {
    /// Transformer blocks.
    pub n_layers: usize,
    /// Attention heads; must divide `d_model`.
    pub n_heads: usize,
    /// Width of a token.
    pub d_model: usize,
    /// Probability of dropping an embedding, an attention weight or a residual while training.
    pub dropout: f64,
    /// What the model is told before each observation.
    pub conditioning: Conditioning,
    /// How queries are compared with keys.
    pub attention: AttentionConfig,
    /// Between the two layers of each block's perceptron.
    pub activation: Activation,
}

impl TransformerConfig {
    /// Checks what the types cannot.
    ///
    /// # Errors
    /// Names the first key whose value describes no transformer.
    pub fn validate(&self) -> Result<(), ModelError> {
        check_counts(&[
            ("model.n_layers", self.n_layers),
            ("model.n_heads", self.n_heads),
            ("model.d_model", self.d_model),
        ])?;
        if !self.d_model.is_multiple_of(self.n_heads) {
            return Err(config_error("model.n_heads", self.n_heads, "must divide d_model"));
        }
        // As it is computed with.
        if !(0.0..1.0).contains(&(self.dropout as f32)) {
            return Err(config_error("model.dropout", self.dropout, "must lie in [0, 1)"));
        }
        self.attention.validate()
    }

    /// Width of one attention head.
    pub fn d_head(&self) -> usize {
        self.d_model / self.n_heads
    }
}
