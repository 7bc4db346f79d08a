//! The perceptron block in burn tensors.

use burn::tensor::Tensor;
use burn::tensor::activation::relu;

use super::MlpWeights;
use crate::activation::Activation;
use crate::mask::Place;
use crate::norm::layer_norm;
use crate::{Dropout, Form};

pub(super) fn mlp(
    x: Tensor<3>,
    weights: MlpWeights,
    activation: Activation,
    dropout: Option<Dropout>,
    form: Form,
) -> Tensor<3> {
    let normal = layer_norm(x.clone(), weights.norm_weight, weights.norm_bias, Form::Reference);
    let affine = |x, weight: Tensor<2>, bias: Tensor<1>| {
        let y = form.product(x, weight.unsqueeze());
        let shape = y.dims();
        y + bias.expand(shape)
    };
    let up = affine(normal, weights.up_weight, weights.up_bias);
    let active = match activation {
        Activation::Gelu => gelu(up),
        Activation::Relu => relu(up),
    };
    let mut out = affine(active, weights.down_weight, weights.down_bias);
    if let Some(dropout) = dropout {
        out = dropout.apply(out, Place::Residual);
    }
    x + out
}

/// `x Φ(x)`. (burn's own GELU has the slope of the tanh approximation on a GPU.)
fn gelu(x: Tensor<3>) -> Tensor<3> {
    let half = x.clone() * 0.5;
    half.clone() * (x * std::f64::consts::FRAC_1_SQRT_2).erf() + half
}
