//! The two-layer perceptron of a transformer as one residual block.

mod reference;

use burn::tensor::Tensor;

use crate::{Dropout, Form};

/// The parameters of a perceptron block of width `d` and hidden width `h`. Linear weights
/// are `[in, out]`.
#[derive(Clone, Debug)]
pub struct MlpWeights {
    /// `[d]`
    pub norm_weight: Tensor<1>,
    /// `[d]`
    pub norm_bias: Tensor<1>,
    /// `[d, h]`
    pub up_weight: Tensor<2>,
    /// `[h]`
    pub up_bias: Tensor<1>,
    /// `[h, d]`
    pub down_weight: Tensor<2>,
    /// `[d]`
    pub down_bias: Tensor<1>,
}

/// The nonlinearity between the two layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// `x Φ(x)` with the exact normal distribution function, not its tanh approximation.
    #[default]
    Gelu,
    /// `max(x, 0)`
    Relu,
}

/// `x + dropout(W₂ activation(W₁ layer_norm(x) + b₁) + b₂)`: one pre-norm perceptron block.
///
/// # Shapes
/// - `x` and the result: `[batch, tokens, d]`
///
/// # Panics
/// When shapes do not fit together.
pub fn mlp_block(
    x: Tensor<3>,
    weights: MlpWeights,
    activation: Activation,
    dropout: Option<Dropout>,
    form: Form,
) -> Tensor<3> {
    let [_, _, d] = x.dims();
    let [_, h] = weights.up_weight.dims();
    assert_eq!(weights.norm_weight.dims(), [d], "norm_weight");
    assert_eq!(weights.norm_bias.dims(), [d], "norm_bias");
    assert_eq!(weights.up_weight.dims(), [d, h], "up_weight");
    assert_eq!(weights.up_bias.dims(), [h], "up_bias");
    assert_eq!(weights.down_weight.dims(), [h, d], "down_weight");
    assert_eq!(weights.down_bias.dims(), [d], "down_bias");
    let _ = form;
    reference::mlp(x, weights, activation, dropout)
}
