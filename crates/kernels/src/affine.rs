//! An affine layer, `y = x W + b`, whose gradients are `dx = dy Wᵀ`, `dW = xᵀ dy` and `db = Σ dy`.

#[cfg(feature = "cube")]
mod cube;

use burn::tensor::Tensor;

/// `x W + b`.
///
/// # Shapes
/// - `x`: `[rows, in]`; `weight`: `[in, out]`; `bias`: `[out]`; result: `[rows, out]`
pub fn affine(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
    #[cfg(feature = "cube")]
    if cube::is_possible(&x, &weight, &bias) {
        return cube::affine(x, weight, bias);
    }
    x.matmul(weight) + bias.unsqueeze()
}
