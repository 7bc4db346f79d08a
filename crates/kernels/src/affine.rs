//! An affine layer, `y = x W + b`, whose gradients are `dx = dy Wᵀ`, `dW = xᵀ dy` and `db = Σ dy`.

#[cfg(feature = "cube")]
mod cube;

use burn::tensor::{Tensor, activation::relu};

/// `x W + b`.
///
/// # Shapes
/// - `x`: `[rows, in]`; `weight`: `[in, out]`; `bias`: `[out]`; result: `[rows, out]`
pub fn affine(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
    #[cfg(feature = "cube")]
    if cube::is_possible(&x, &weight, &bias) {
        return cube::affine(x, weight, bias, false);
    }
    x.matmul(weight) + bias.unsqueeze()
}

/// `max(x W + b, 0)`, with the shapes of [`affine`].
pub(crate) fn affine_relu(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
    #[cfg(feature = "cube")]
    if cube::is_possible(&x, &weight, &bias) {
        return cube::affine(x, weight, bias, true);
    }
    relu(affine(x, weight, bias))
}
