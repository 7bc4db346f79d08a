//! The two-layer perceptron of a transformer as one residual block.

#[cfg(feature = "cube")]
mod cube;
mod fused;
mod reference;

use burn::backend::DispatchTensor;
use burn::tensor::Tensor;

use crate::activation::Activation;
use crate::buffer::Buffer;
use crate::flex::{self, Fused, is_flex_f32};
use crate::mask::{Mask, Place};
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
    if form == Form::Auto && is_flex_f32(&x) && weights.all_flex_f32() {
        let mask = dropout.and_then(|dropout| dropout.mask(Place::Residual));
        let shape = x.dims();
        return flex::apply(Mlp { activation, mask }, weights.inputs(x), shape);
    }
    #[cfg(feature = "cube")]
    if cube::is_possible(&x, &weights, form) {
        return cube::mlp(x, weights, activation, dropout, form);
    }
    reference::mlp(x, weights, activation, dropout, form)
}

impl MlpWeights {
    fn all_flex_f32(&self) -> bool {
        [&self.norm_weight, &self.norm_bias, &self.up_bias, &self.down_bias]
            .into_iter()
            .all(is_flex_f32)
            && [&self.up_weight, &self.down_weight].into_iter().all(is_flex_f32)
    }

    fn inputs(self, x: Tensor<3>) -> [DispatchTensor; 7] {
        [
            x.into_dispatch(),
            self.norm_weight.into_dispatch(),
            self.norm_bias.into_dispatch(),
            self.up_weight.into_dispatch(),
            self.up_bias.into_dispatch(),
            self.down_weight.into_dispatch(),
            self.down_bias.into_dispatch(),
        ]
    }
}

/// The fused form: the float inputs are `x`, then the parameters in the order of their
/// declaration.
struct Mlp {
    activation: Activation,
    mask: Option<Mask>,
}

fn parameters<'a>(inputs: [&'a [f32]; 7]) -> (&'a [f32], fused::MlpParameters<'a>) {
    let [x, norm_weight, norm_bias, up_weight, up_bias, down_weight, down_bias] = inputs;
    let parameters =
        fused::MlpParameters { norm_weight, norm_bias, up_weight, up_bias, down_weight, down_bias };
    (x, parameters)
}

impl Fused<7> for Mlp {
    type Saved = fused::SavedMlp;

    fn forward(&self, inputs: [&[f32]; 7], keep: bool) -> (Buffer, Option<fused::SavedMlp>) {
        let (x, parameters) = parameters(inputs);
        fused::forward(x, parameters, self.activation, self.mask, keep)
    }

    fn backward(
        &self,
        inputs: [&[f32]; 7],
        _output: &[f32],
        saved: &fused::SavedMlp,
        gradient: &[f32],
    ) -> [Buffer; 7] {
        let (x, parameters) = parameters(inputs);
        fused::backward(x, parameters, self.activation, self.mask, saved, gradient)
    }
}
