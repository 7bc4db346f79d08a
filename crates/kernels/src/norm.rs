//! Layer normalisation over the last axis.

use burn::tensor::Tensor;

/// Added to the variance, as in the reference models.
pub const LAYER_NORM_EPSILON: f64 = 1e-5;

/// `(x - mean) / sqrt(variance + epsilon) * weight + bias`, the variance divided by the
/// width.
pub fn layer_norm(x: Tensor<3>, weight: Tensor<1>, bias: Tensor<1>) -> Tensor<3> {
    let centred = x.clone() - x.mean_dim(2);
    let variance = (centred.clone() * centred.clone()).mean_dim(2);
    let normal = centred / (variance + LAYER_NORM_EPSILON).sqrt();
    normal * weight.unsqueeze() + bias.unsqueeze()
}
