//! Causal self-attention as one residual block.

mod reference;

use burn::tensor::Tensor;

use crate::{Dropout, Form};

/// The parameters of an attention block of width `d`. Linear weights are `[in, out]`.
#[derive(Clone, Debug)]
pub struct AttentionWeights {
    /// `[d]`
    pub norm_weight: Tensor<1>,
    /// `[d]`
    pub norm_bias: Tensor<1>,
    /// `[d, 3 d]`: queries, then keys, then values; heads are contiguous within each.
    pub qkv_weight: Tensor<2>,
    /// `[3 d]`
    pub qkv_bias: Tensor<1>,
    /// `[d, d]`
    pub projection_weight: Tensor<2>,
    /// `[d]`
    pub projection_bias: Tensor<1>,
}

/// How a query is compared with a key.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Score {
    /// `q · k / sqrt(d_head)`
    #[default]
    DotProduct,
}

/// What an attention block does beside its parameters.
#[derive(Clone, Copy, Debug)]
pub struct AttentionOptions<'a> {
    /// Heads; divides the width.
    pub n_heads: usize,
    /// How a query is compared with a key.
    pub score: Score,
    /// For each sequence the index of its first real token: earlier ones are padding and
    /// no real token attends to them. `None`: no padding. A padding token attends to
    /// itself alone.
    pub first_token: Option<&'a [usize]>,
    /// Dropout on the attention probabilities and on what is added to `x`.
    pub dropout: Option<Dropout>,
    /// Which form runs.
    pub form: Form,
}

/// `x + dropout(project(dropout(softmax(scores)) v))`, with `q, k, v` from the layer norm
/// of `x`: one pre-norm attention block.
///
/// A token attends to itself and to earlier real tokens of its sequence.
///
/// # Shapes
/// - `x` and the result: `[batch, tokens, d]`
///
/// # Panics
/// When shapes do not fit together, `n_heads` does not divide `d`, or `first_token` has
/// another length than the batch.
pub fn attention_block(
    x: Tensor<3>,
    weights: AttentionWeights,
    options: AttentionOptions<'_>,
) -> Tensor<3> {
    let [batch, _, d] = x.dims();
    let n_heads = options.n_heads;
    assert!(n_heads > 0 && d % n_heads == 0, "{n_heads} heads do not divide a width of {d}");
    assert_eq!(weights.norm_weight.dims(), [d], "norm_weight");
    assert_eq!(weights.norm_bias.dims(), [d], "norm_bias");
    assert_eq!(weights.qkv_weight.dims(), [d, 3 * d], "qkv_weight");
    assert_eq!(weights.qkv_bias.dims(), [3 * d], "qkv_bias");
    assert_eq!(weights.projection_weight.dims(), [d, d], "projection_weight");
    assert_eq!(weights.projection_bias.dims(), [d], "projection_bias");
    if let Some(first_token) = options.first_token {
        assert_eq!(first_token.len(), batch, "first_token has one entry per sequence");
    }
    reference::attention(x, weights, options)
}
