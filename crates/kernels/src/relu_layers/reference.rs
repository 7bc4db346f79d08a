//! The layers as operations on tensors: plain ones, or on a GPU one kernel or more for each layer.

use burn::tensor::{Tensor, activation::relu};

use super::ReluLayer;
use crate::Form;
use crate::affine::{affine, affine_relu};
use crate::norm::layer_norm;

pub(super) fn relu_layers(x: Tensor<2>, layers: Vec<ReluLayer>, form: Form) -> Tensor<2> {
    let is_autodiff =
        |layer: &ReluLayer| layer.weight.is_autodiff() || layer.vectors().any(Tensor::is_autodiff);
    let is_tracked = x.is_autodiff() || layers.iter().any(is_autodiff);
    let n_layers = layers.len();
    let mut rows = like(x, is_tracked);
    for (i, ReluLayer { weight, bias, norm }) in layers.into_iter().enumerate() {
        let (weight, bias) = (like(weight, is_tracked), like(bias, is_tracked));
        let is_hidden = i + 1 < n_layers;
        rows = match form {
            Form::Auto if is_hidden => affine_relu(rows, weight, bias),
            Form::Auto => affine(rows, weight, bias),
            Form::Reference | Form::Mixed(_) => {
                let product = form.product(rows, weight) + bias.unsqueeze();
                if is_hidden { relu(product) } else { product }
            }
        };
        if let Some([weight, bias]) = norm {
            let (weight, bias) = (like(weight, is_tracked), like(bias, is_tracked));
            let normal = layer_norm(rows.unsqueeze::<3>(), weight, bias, form);
            rows = normal.squeeze_dim::<2>(0);
        }
    }
    rows
}

/// In a list of tensors that track gradients, a constant must be such a tensor too.
fn like<const D: usize>(tensor: Tensor<D>, is_tracked: bool) -> Tensor<D> {
    if is_tracked && !tensor.is_autodiff() { tensor.autodiff() } else { tensor }
}
