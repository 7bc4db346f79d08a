//! Affine layers on a GPU: products of matrices with what follows them, forward and backward.
//!
//! Matrices are contiguous: rows `[rows, in]`, weights `[in, out]`, biases `[out]` in `f32`.
//! Factors of products have one type, `f32` or a half type; sums have `f32`.

use burn::backend::{DType, Shape, TensorMetadata};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::kernel::matmul::{MatmulStrategy, matmul};
use burn_cubecl::ops::{permute, reshape};
use burn_cubecl::tensor::CubeTensor;

use crate::Queries;
use crate::gpu::epilogues::{self, Masked};
use crate::gpu::sums;
use crate::mlp::Activation;

/// Parts of a product over all rows: a single product would keep few of the device's cores busy.
const PARTS: usize = 16;

/// `x W + b`.
pub(crate) fn affine(x: &CubeTensor, weight: &CubeTensor, bias: CubeTensor) -> CubeTensor {
    epilogues::bias(product(x.clone(), weight.clone(), x.dtype), bias)
}

/// `x W + b`, and its activation.
pub(crate) fn affine_active(
    x: &CubeTensor,
    weight: &CubeTensor,
    bias: CubeTensor,
    activation: Activation,
) -> [CubeTensor; 2] {
    epilogues::bias_active(product(x.clone(), weight.clone(), x.dtype), bias, activation)
}

/// `residual + mask ⊙ (x W + b)` at the queries, in `f32`.
pub(crate) fn affine_residual(
    x: &CubeTensor,
    weight: &CubeTensor,
    bias: CubeTensor,
    residual: &CubeTensor,
    queries: Queries,
    step_seed: CubeTensor,
    mask: Option<Masked>,
) -> CubeTensor {
    let product = product(x.clone(), weight.clone(), x.dtype);
    epilogues::residual(product, bias, residual, queries, step_seed, mask)
}

/// The gradient of the rows: `g Wᵀ`.
pub(crate) fn by_rows(gradient: &CubeTensor, weight: &CubeTensor) -> CubeTensor {
    product(gradient.clone(), permute(weight.clone(), &[1, 0]), gradient.dtype)
}

/// The same through an activation: `g Wᵀ ⊙ activation'(before)`.
pub(crate) fn by_rows_active(
    gradient: &CubeTensor,
    weight: &CubeTensor,
    before: CubeTensor,
    activation: Activation,
) -> CubeTensor {
    epilogues::times_slope(by_rows(gradient, weight), before, activation)
}

/// The gradients of weight and bias: `xᵀ g` and the sum of the rows of `g`, both in `f32`.
pub(crate) fn by_parameters(x: &CubeTensor, gradient: &CubeTensor) -> [CubeTensor; 2] {
    let [rows, n_in] = x.shape().dims();
    let [_, n_out] = gradient.shape().dims();
    let parts = (1..=PARTS).rev().find(|parts| rows.is_multiple_of(*parts)).unwrap_or(1);
    let cut = |x: &CubeTensor, width: usize| {
        reshape(x.clone(), Shape::new([parts, rows / parts, width]))
    };
    let product = product(permute(cut(x, n_in), &[0, 2, 1]), cut(gradient, n_out), DType::F32);
    let n = n_in * n_out;
    let by_weight = match parts {
        1 => product,
        _ => sums::sum_parts(reshape(product, Shape::new([parts, n])), n, 0)[0].clone(),
    };
    [reshape(by_weight, Shape::new([n_in, n_out])), sums::sum_rows(gradient, n_out)]
}

fn product(left: CubeTensor, right: CubeTensor, dtype: DType) -> CubeTensor {
    let product = matmul(left, right, None, MatmulStrategy::default(), dtype);
    into_contiguous(product.expect("burn has a product for these matrices"))
}
