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
use crate::activation::Activation;
use crate::gpu::epilogues::{self, Masked};
use crate::gpu::products::{self, Epilogue, Residual, Slope};
use crate::gpu::{sums, view};

/// Parts of a product over all rows: a single product would keep few of the device's cores busy.
const PARTS: usize = 16;

/// `x W + b`.
pub(crate) fn affine(x: &CubeTensor, weight: &CubeTensor, bias: CubeTensor) -> CubeTensor {
    if has_tensor_cores(x, weight) {
        return first(products::product(x, weight, Epilogue::Bias(&bias)));
    }
    epilogues::bias(product(x.clone(), weight.clone(), x.dtype), bias)
}

/// `max(x W + b, 0)`.
pub(crate) fn affine_relu(x: &CubeTensor, weight: &CubeTensor, bias: CubeTensor) -> CubeTensor {
    if has_tensor_cores(x, weight) {
        return first(products::product(x, weight, Epilogue::BiasRelu(&bias)));
    }
    epilogues::bias_relu(product(x.clone(), weight.clone(), x.dtype), bias)
}

/// A value from which the activation's slope follows, and the activation of `x W + b`.
pub(crate) fn affine_active(
    x: &CubeTensor,
    weight: &CubeTensor,
    bias: CubeTensor,
    activation: Activation,
) -> [CubeTensor; 2] {
    match activation {
        Activation::Gelu if has_tensor_cores(x, weight) => {
            let mut results = products::product(x, weight, Epilogue::BiasGelu(&bias)).into_iter();
            let active = results.next().expect("GELU's result");
            [results.next().expect("what GELU got"), active]
        }
        Activation::Gelu => epilogues::bias_gelu(product(x.clone(), weight.clone(), x.dtype), bias),
        Activation::Relu => {
            let active = affine_relu(x, weight, bias);
            [active.clone(), active]
        }
    }
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
    if !has_tensor_cores(x, weight) {
        let product = product(x.clone(), weight.clone(), x.dtype);
        return epilogues::residual(product, bias, residual, queries, step_seed, mask);
    }
    let Queries { first: first_query, step } = queries;
    let (bias, seed) = (&bias, &step_seed);
    let residual = Residual { bias, x: residual, step, first: first_query, seed, mask };
    first(products::product(x, weight, Epilogue::Residual(residual)))
}

/// The gradient of the rows: `g Wᵀ`.
pub(crate) fn by_rows(gradient: &CubeTensor, weight: &CubeTensor) -> CubeTensor {
    if has_tensor_cores(gradient, weight) {
        return products::product_transposed(gradient, weight, Slope::None);
    }
    product(gradient.clone(), permute(weight.clone(), &[1, 0]), gradient.dtype)
}

/// The same through an activation: `g Wᵀ ⊙ activation'(before)`.
pub(crate) fn by_rows_active(
    gradient: &CubeTensor,
    weight: &CubeTensor,
    before: CubeTensor,
    activation: Activation,
) -> CubeTensor {
    if has_tensor_cores(gradient, weight) {
        let slope = match activation {
            Activation::Gelu => Slope::Gelu(&before),
            Activation::Relu => Slope::Relu(&before),
        };
        return products::product_transposed(gradient, weight, slope);
    }
    epilogues::times_slope(&by_rows(gradient, weight), before, activation)
}

/// The gradients of weight and bias of two layers: `xᵀ g` and the sum of the rows of `g`, all in
/// `f32`. Partial sums of both layers are added in one launch.
pub(crate) fn by_parameters(layers: [[&CubeTensor; 2]; 2]) -> [[CubeTensor; 2]; 2] {
    if !layers.iter().all(|[x, gradient]| has_tensor_cores(x, gradient)) {
        return layers.map(|[x, gradient]| by_parameters_of_layer(x, gradient));
    }
    let [left, right] = layers.map(|[x, gradient]| products::outer_of_layer(x, gradient));
    let mut sums = sums::sum_both(&left, &right).into_iter();
    layers.map(|[x, gradient]| {
        let [[_, n_in], [_, n_out]] = [x, gradient].map(|matrix| matrix.shape().dims::<2>());
        let sums = sums.next().expect("a sum of each layer");
        let weight = view(sums.clone(), 0, Shape::new([n_in, n_out]), DType::F32);
        [weight, view(sums, n_in * n_out, Shape::new([n_out]), DType::F32)]
    })
}

/// The same of one layer.
pub(crate) fn by_parameters_of_layer(x: &CubeTensor, gradient: &CubeTensor) -> [CubeTensor; 2] {
    let [rows, n_in] = x.shape().dims();
    let [_, n_out] = gradient.shape().dims();
    let parts = (1..=PARTS).rev().find(|parts| rows.is_multiple_of(*parts)).unwrap_or(1);
    let cut =
        |x: &CubeTensor, width: usize| reshape(x.clone(), Shape::new([parts, rows / parts, width]));
    let left = permute(cut(x, n_in), &[0, 2, 1]);
    let product = product(left, cut(gradient, n_out), DType::F32);
    let product = reshape(product, Shape::new([parts, n_in * n_out]));
    let [by_weight, by_bias] = sums::sum_both(&product, &sums::sum_blocks(gradient, n_out));
    [reshape(by_weight, Shape::new([n_in, n_out])), by_bias]
}

/// Whether the kernels for tensor cores compute the products of these rows and this matrix.
fn has_tensor_cores(rows: &CubeTensor, matrix: &CubeTensor) -> bool {
    let [m, width] = rows.shape().dims();
    let [n, other] = matrix.shape().dims();
    rows.dtype == DType::BF16
        && products::is_possible(rows)
        && products::fits(m, width, other)
        && products::fits(m, width, n)
}

fn first(results: Vec<CubeTensor>) -> CubeTensor {
    results.into_iter().next().expect("a result")
}

fn product(left: CubeTensor, right: CubeTensor, dtype: DType) -> CubeTensor {
    let product = matmul(left, right, None, MatmulStrategy::default(), dtype);
    into_contiguous(product.expect("burn has a product for these matrices"))
}
