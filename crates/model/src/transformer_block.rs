//! One pre-norm transformer block: attention, then a two-layer perceptron, each added to
//! its input.

use burn::{
    module::{Module, Param},
    tensor::{Int, Tensor},
};
use overtone_kernels::{
    Activation, AttentionOptions, AttentionWeights, Dropout, Form, MlpWeights, Queries,
    attention_block, mlp_block,
};

use crate::{
    attention::AttentionConfig,
    error::{ModelError, check_counts, config_error},
    parameters::init::{GPT_STD, Init},
};

/// Sizes and options of a transformer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransformerConfig {
    /// Transformer blocks.
    pub n_layers: usize,
    /// Attention heads; must divide `d_model`.
    pub n_heads: usize,
    /// Width of a token.
    pub d_model: usize,
    /// Probability of dropping an embedding, an attention weight or a residual during training.
    pub dropout: f64,
    /// The attention score.
    pub attention: AttentionConfig,
    /// Activation between the two layers of each block's perceptron.
    pub activation: Activation,
}

impl TransformerConfig {
    /// Checks the values that the types do not.
    ///
    /// # Errors
    /// Names the first key with an invalid value.
    pub fn validate(&self) -> Result<(), ModelError> {
        check_counts(&[
            ("model.n_layers", self.n_layers),
            ("model.n_heads", self.n_heads),
            ("model.d_model", self.d_model),
        ])?;
        if !self.d_model.is_multiple_of(self.n_heads) {
            return Err(config_error("model.n_heads", self.n_heads, "must divide d_model"));
        }
        // The precision of the computation.
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

/// `x += W_o attend(LN x)`, then `x += W₂ activation(W₁ LN x)`.
///
/// Query, key and value share one matrix (query first); the reference's three separate
/// layers are its column blocks.
#[derive(Module, Debug)]
pub struct TransformerBlock {
    /// `[d_model]`
    pub norm_1_weight: Param<Tensor<1>>,
    /// `[d_model]`
    pub norm_1_bias: Param<Tensor<1>>,
    /// `[d_model, 3·d_model]`
    pub qkv_weight: Param<Tensor<2>>,
    /// `[3·d_model]`
    pub qkv_bias: Param<Tensor<1>>,
    /// `[d_model, d_model]`
    pub projection_weight: Param<Tensor<2>>,
    /// `[d_model]`
    pub projection_bias: Param<Tensor<1>>,
    /// The parameter of the score: `R` of Fourier attention, `[n_heads or 1, d_head or 1]`.
    pub fourier_r: Option<Param<Tensor<2>>>,
    /// `[d_model]`
    pub norm_2_weight: Param<Tensor<1>>,
    /// `[d_model]`
    pub norm_2_bias: Param<Tensor<1>>,
    /// `[d_model, 4·d_model]`
    pub mlp_1_weight: Param<Tensor<2>>,
    /// `[4·d_model]`
    pub mlp_1_bias: Param<Tensor<1>>,
    /// `[4·d_model, d_model]`
    pub mlp_2_weight: Param<Tensor<2>>,
    /// `[d_model]`
    pub mlp_2_bias: Param<Tensor<1>>,
}

/// Inputs of a block in addition to its weights and tokens.
pub struct BlockOptions {
    /// Attention heads.
    pub n_heads: usize,
    /// The attention score.
    pub attention: AttentionConfig,
    /// Activation between the two layers of the perceptron.
    pub activation: Activation,
    /// The tokens at which the result is computed.
    pub queries: Queries,
    /// `[batch]`: the first token of each row that is not padding.
    pub first_token: Option<Tensor<1, Int>>,
    /// Dropout of attention weights and residuals; `None` while acting. The two halves of the block
    /// derive their own seeds from it.
    pub dropout: Option<[Dropout; 2]>,
    /// Fused operations if available, or the plain ones.
    pub form: Form,
}

impl TransformerBlock {
    /// Matrices N(0, 0.02²), biases 0, norms 1 and 0.
    pub fn init(config: &TransformerConfig, init: &mut Init<'_>) -> Self {
        let d = config.d_model;
        let attention = config.attention.variant();
        let fourier_r = attention.parameter(config.n_heads, config.d_head(), init);
        Self {
            norm_1_weight: init.constant([d], 1.0),
            norm_1_bias: init.constant([d], 0.0),
            qkv_weight: init.normal([d, 3 * d], GPT_STD),
            qkv_bias: init.constant([3 * d], 0.0),
            projection_weight: init.normal([d, d], GPT_STD),
            projection_bias: init.constant([d], 0.0),
            fourier_r,
            norm_2_weight: init.constant([d], 1.0),
            norm_2_bias: init.constant([d], 0.0),
            mlp_1_weight: init.normal([d, 4 * d], GPT_STD),
            mlp_1_bias: init.constant([4 * d], 0.0),
            mlp_2_weight: init.normal([4 * d, d], GPT_STD),
            mlp_2_bias: init.constant([d], 0.0),
        }
    }

    /// # Shapes
    /// - `tokens`: `[batch, tokens, d_model]`; result: `[batch, queries, d_model]`
    pub fn forward(&self, tokens: Tensor<3>, options: &BlockOptions) -> Tensor<3> {
        let [attention_dropout, mlp_dropout] = match options.dropout.clone() {
            Some(dropouts) => dropouts.map(Some),
            None => [None, None],
        };
        let tokens = attention_block(
            tokens,
            AttentionWeights {
                norm_weight: self.norm_1_weight.val(),
                norm_bias: self.norm_1_bias.val(),
                qkv_weight: self.qkv_weight.val(),
                qkv_bias: self.qkv_bias.val(),
                projection_weight: self.projection_weight.val(),
                projection_bias: self.projection_bias.val(),
                score_parameter: self.fourier_r.as_ref().map(Param::val),
            },
            AttentionOptions {
                n_heads: options.n_heads,
                score: options.attention.variant().score(),
                queries: options.queries,
                first_token: options.first_token.clone(),
                dropout: attention_dropout,
                form: options.form,
            },
        );
        mlp_block(
            tokens,
            MlpWeights {
                norm_weight: self.norm_2_weight.val(),
                norm_bias: self.norm_2_bias.val(),
                up_weight: self.mlp_1_weight.val(),
                up_bias: self.mlp_1_bias.val(),
                down_weight: self.mlp_2_weight.val(),
                down_bias: self.mlp_2_bias.val(),
            },
            options.activation,
            mlp_dropout,
            options.form,
        )
    }
}
