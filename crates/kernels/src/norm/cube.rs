//! Layer norm on a GPU: forward, and backward together with the gradient that goes around the
//! block; and layer norm alone. See [the derivation](super).

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::cubecl::dtype_to_storage_type;
use burn::backend::fusion::custom::TensorSpec;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, DType, Dispatch, Shape, TensorMetadata, backend_extension};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::reshape;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::LAYER_NORM_EPSILON;
use crate::Queries;
use crate::gpu::{address_type, empty_like, folded, is_on_gpu, sums, tape};
use sums::{COLUMNS, ROWS, block_of, new_values, over_columns, over_rows};

/// Widest rows: the sums of a block's columns are in registers.
const WIDEST: usize = 1024;

/// Whether the kernels can normalize these rows: `f32` on a GPU, and not too wide.
pub(crate) fn is_possible(x: &burn::tensor::Tensor<3>) -> bool {
    let [batch, tokens, d] = x.dims();
    is_on_gpu(x) && x.dtype() == DType::F32 && batch * tokens > 0 && d <= WIDEST
}

/// Layer norm alone, for which [`is_possible`] holds.
pub(super) fn layer_norm(
    x: burn::tensor::Tensor<3>,
    weight: burn::tensor::Tensor<1>,
    bias: burn::tensor::Tensor<1>,
) -> burn::tensor::Tensor<3> {
    let (x, weight, bias) = (x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch());
    burn::tensor::Tensor::from_dispatch(Dispatch::cube_layer_norm(x, weight, bias))
}

/// The extension of burn: layer norm, with support for autodiff.
#[backend_extension(Cube, Autodiff, Fusion)]
trait CubeLayerNorm: Backend {
    #[fusion(dtype = x, shape = x)]
    fn cube_layer_norm(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;
}

/// The passes of layer norm.
#[backend_extension(Cube, Fusion)]
trait CubeLayerNormPasses: Backend {
    #[fusion(meta = |x, weight, _bias| {
        let rows = x.shape.num_elements() / weight.shape.num_elements();
        (x.clone(), TensorSpec::new(Shape::new([rows, 2]), x.dtype))
    })]
    fn cube_layer_norm_forward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The gradient of the rows, and parts of those of weight and bias.
    #[fusion(meta = |x, _stats, weight, _by_out| {
        let [d] = weight.shape.dims();
        let parts = Shape::new([n_parts(x.shape.num_elements() / d), 2 * d]);
        (x.clone(), TensorSpec::new(parts, DType::F32))
    })]
    fn cube_layer_norm_backward(
        x: FloatTensor<Self>,
        stats: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        by_out: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The gradients of weight and bias.
    #[fusion(meta = |parts| {
        let vector = TensorSpec::new(Shape::new([parts.shape[1] / 2]), DType::F32);
        (vector.clone(), vector)
    })]
    fn cube_layer_norm_by_parameters(
        parts: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
}

impl CubeLayerNorm for CubeBackend {
    fn cube_layer_norm(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::cube_layer_norm_forward(x, weight, bias).0
    }
}

impl CubeLayerNormPasses for CubeBackend {
    fn cube_layer_norm_forward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let [x, weight, bias] = [x, weight, bias].map(into_contiguous);
        let [out, stats] = forward(&x, weight, bias, DType::F32);
        (reshape(out, x.shape()), stats)
    }

    fn cube_layer_norm_backward(
        x: FloatTensor<Self>,
        stats: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        by_out: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let [x, weight, by_out] = [x, weight, by_out].map(into_contiguous);
        // No row has the remainder 1: nothing goes around.
        let nothing = Queries { first: 1, step: 1 };
        let around = by_out.clone();
        backward_in_parts(&x, stats, weight, by_out, around, nothing).into()
    }

    fn cube_layer_norm_by_parameters(
        parts: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let d = parts.shape()[1] / 2;
        sums::sum_parts(parts, d, d).into()
    }
}

impl<B: CubeLayerNormPasses, C: CheckpointStrategy> CubeLayerNorm for Autodiff<B, C> {
    fn cube_layer_norm(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        // A policy that learns with a critic needs no gradients of the critic's norms.
        if !weight.is_tracked() && !bias.is_tracked() {
            let [weight, bias] = [weight, bias].map(|constant| constant.into_primitive());
            let forward = |[x]: [FloatTensor<B>; 1]| {
                let (out, stats) = B::cube_layer_norm_forward(x.clone(), weight.clone(), bias);
                (out, (x, stats, weight))
            };
            return tape::apply::<B, C, _, 1>([x], forward, |(x, stats, weight), by_out| {
                [B::cube_layer_norm_backward(x, stats, weight, by_out).0]
            });
        }
        let forward = |[x, weight, bias]: [FloatTensor<B>; 3]| {
            let (out, stats) = B::cube_layer_norm_forward(x.clone(), weight.clone(), bias);
            (out, (x, stats, weight))
        };
        tape::apply::<B, C, _, 3>([x, weight, bias], forward, |(x, stats, weight), by_out| {
            let (by_x, parts) = B::cube_layer_norm_backward(x, stats, weight, by_out);
            let (by_weight, by_bias) = B::cube_layer_norm_by_parameters(parts);
            [by_x, by_weight, by_bias]
        })
    }
}

/// The normalized rows in `dtype`, and mean and `1 / sqrt(variance + ε)` of each row.
///
/// # Shapes
/// - `x`: `[batch, tokens, d]`, contiguous; `weight`, `bias`: `[d]`
/// - results: `[batch · tokens, d]` and `[batch · tokens, 2]`
pub(crate) fn forward(
    x: &CubeTensor,
    weight: CubeTensor,
    bias: CubeTensor,
    dtype: DType,
) -> [CubeTensor; 2] {
    let [d] = weight.shape().dims();
    let rows = x.shape().num_elements() / d;
    let out = empty_like(x, Shape::new([rows, d]), dtype);
    let stats = empty_like(x, Shape::new([rows, 2]), DType::F32);
    // SAFETY: the kernel reads and writes only rows below `rows` and columns below `d`.
    unsafe {
        forward_kernel::launch_unchecked(
            &out.client,
            folded(rows.div_ceil(ROWS)),
            CubeDim::new_2d(COLUMNS as u32, ROWS as u32),
            address_type(&[x, &out]),
            x.clone().into_tensor_arg(),
            weight.into_tensor_arg(),
            bias.into_tensor_arg(),
            out.clone().into_tensor_arg(),
            stats.clone().into_tensor_arg(),
            rows as u32,
            d as u32,
            dtype_to_storage_type(dtype),
        );
    }
    [out, stats]
}

/// The gradients of `x`, the weight and the bias of a block `x + f(layer_norm(x))` that computes
/// its result at `queries`.
///
/// # Shapes
/// - `x`, `stats`, `weight`: as in [`forward`]; `by_normal`: `[batch · tokens, d]`
/// - `by_out`: `[batch, queries, d]`, the gradient of the block's result
/// - results: `[batch, tokens, d]`, `[d]`, `[d]`
pub(crate) fn backward(
    x: &CubeTensor,
    stats: CubeTensor,
    weight: CubeTensor,
    by_normal: CubeTensor,
    by_out: CubeTensor,
    queries: Queries,
) -> [CubeTensor; 3] {
    let [d] = weight.shape().dims();
    let [by_x, parts] = backward_in_parts(x, stats, weight, by_normal, by_out, queries);
    let [by_weight, by_bias] = sums::sum_parts(parts, d, d);
    [by_x, by_weight, by_bias]
}

/// The number of blocks of `rows` rows in the backward pass.
fn n_parts(rows: usize) -> usize {
    rows.div_ceil(block_of(rows))
}

/// As [`backward`], with the gradients of weight and bias in a part for each block: `[blocks, 2 d]`.
fn backward_in_parts(
    x: &CubeTensor,
    stats: CubeTensor,
    weight: CubeTensor,
    by_normal: CubeTensor,
    by_out: CubeTensor,
    queries: Queries,
) -> [CubeTensor; 2] {
    let [d] = weight.shape().dims();
    let rows = x.shape().num_elements() / d;
    let block = block_of(rows);
    let blocks = n_parts(rows);
    let by_x = empty_like(x, x.shape(), DType::F32);
    let parts = empty_like(x, Shape::new([blocks, 2 * d]), DType::F32);
    // SAFETY: the kernel reads and writes only rows below `rows` and columns below `d`. `by_out`
    // has a row for every `step`-th row of `x`.
    unsafe {
        backward_kernel::launch_unchecked(
            &by_x.client,
            folded(blocks),
            CubeDim::new_2d(COLUMNS as u32, ROWS as u32),
            address_type(&[x, &by_x, &by_normal]),
            x.clone().into_tensor_arg(),
            stats.into_tensor_arg(),
            weight.into_tensor_arg(),
            by_normal.clone().into_tensor_arg(),
            by_out.into_tensor_arg(),
            by_x.clone().into_tensor_arg(),
            parts.clone().into_tensor_arg(),
            rows as u32,
            queries.first as u32,
            queries.step as u32,
            block as u32,
            d,
            dtype_to_storage_type(by_normal.dtype),
        );
    }
    [by_x, parts]
}

/// # Shapes
/// - `x` and `out`: `[rows, d]`; `weight`, `bias`: `[d]`; `stats`: `[rows, 2]`
/// - cubes: groups of [`ROWS`] rows; units: `[COLUMNS, ROWS]`
#[cube(launch_unchecked, address_type = "dynamic")]
fn forward_kernel<F: Float>(
    x: &Tensor<f32>,
    weight: &Tensor<f32>,
    bias: &Tensor<f32>,
    out: &mut Tensor<F>,
    stats: &mut Tensor<f32>,
    rows: u32,
    d: u32,
    #[define(F)] _dtype: ElemType,
) {
    let mut values = new_values();
    // Units beyond the last row compute it again and write nothing.
    let row = (CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X) * comptime!(ROWS as u32) + UNIT_POS_Y;
    let is_row = row < rows;
    let row = min(row, rows - 1) as usize;
    let start = row * d as usize;

    let mut sum = 0.0f32;
    let mut column = UNIT_POS_X;
    while column < d {
        sum += x[start + column as usize];
        column += comptime!(COLUMNS as u32);
    }
    let width = f32::cast_from(d);
    let mean = over_columns(sum, &mut values) / width;
    let mut squares = 0.0f32;
    let mut column = UNIT_POS_X;
    while column < d {
        let centred = x[start + column as usize] - mean;
        squares = fma(centred, centred, squares);
        column += comptime!(COLUMNS as u32);
    }
    let variance = over_columns(squares, &mut values) / width;
    let s = 1.0f32 / (variance + comptime!(LAYER_NORM_EPSILON as f32).runtime()).sqrt();
    if is_row {
        let mut column = UNIT_POS_X;
        while column < d {
            let at = column as usize;
            let normal = (x[start + at] - mean) * s;
            out[start + at] = F::cast_from(fma(normal, weight[at], bias[at]));
            column += comptime!(COLUMNS as u32);
        }
        if UNIT_POS_X == 0 {
            stats[2 * row] = mean;
            stats[2 * row + 1] = s;
        }
    }
}

/// # Shapes
/// - `x`, `by_normal`, `by_x`: `[rows, d]`; `stats`: `[rows, 2]`; `weight`: `[d]`
/// - `by_out`: `[rows / step, d]`
/// - `parts`: `[cubes, 2, d]`, the block's part of the gradients of weight and bias
/// - cubes: blocks of rows; units: `[COLUMNS, ROWS]`
#[cube(launch_unchecked, address_type = "dynamic")]
fn backward_kernel<F: Float>(
    x: &Tensor<f32>,
    stats: &Tensor<f32>,
    weight: &Tensor<f32>,
    by_normal: &Tensor<F>,
    by_out: &Tensor<f32>,
    by_x: &mut Tensor<f32>,
    parts: &mut Tensor<f32>,
    rows: u32,
    first_query: u32,
    step: u32,
    block: u32,
    #[comptime] d: usize,
    #[define(F)] _dtype: ElemType,
) {
    let mut values = new_values();
    let nth = CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X;
    let per_unit = comptime!(d.div_ceil(COLUMNS));
    let mut by_weight = Array::<f32>::new(per_unit);
    let mut by_bias = Array::<f32>::new(per_unit);
    #[unroll]
    for i in 0..per_unit {
        by_weight[i] = 0.0f32;
        by_bias[i] = 0.0f32;
    }
    let x_unit = UNIT_POS_X as usize;
    for group in 0..block / comptime!(ROWS as u32) {
        let row = nth * block + group * comptime!(ROWS as u32) + UNIT_POS_Y;
        let is_row = row < rows;
        let row = min(row, rows - 1);
        let start = row as usize * d;
        let mean = stats[2 * row as usize];
        let s = stats[2 * row as usize + 1];

        let mut sum = 0.0f32;
        let mut product = 0.0f32;
        #[unroll]
        for i in 0..per_unit {
            let column = i * COLUMNS + x_unit;
            if column < d {
                let normal = (x[start + column] - mean) * s;
                let by = f32::cast_from(by_normal[start + column]);
                let by_scaled = by * weight[column];
                sum += by_scaled;
                product = fma(by_scaled, normal, product);
                if is_row {
                    by_weight[i] = fma(by, normal, by_weight[i]);
                    by_bias[i] += by;
                }
            }
        }
        let width = comptime!(d as f32).runtime();
        let sum = over_columns(sum, &mut values) / width;
        let product = over_columns(product, &mut values) / width;
        if is_row {
            let is_query = row % step == first_query;
            let out_start = (row / step) as usize * d;
            #[unroll]
            for i in 0..per_unit {
                let column = i * COLUMNS + x_unit;
                if column < d {
                    let normal = (x[start + column] - mean) * s;
                    let by = f32::cast_from(by_normal[start + column]) * weight[column];
                    let mut around = 0.0f32;
                    if is_query {
                        around = by_out[out_start + column];
                    }
                    by_x[start + column] = around + s * (by - sum - normal * product);
                }
            }
        }
    }
    let part = nth as usize * comptime!(2 * d);
    #[unroll]
    for i in 0..per_unit {
        let column = i * COLUMNS + x_unit;
        let of_weight = over_rows(by_weight[i], &mut values);
        let of_bias = over_rows(by_bias[i], &mut values);
        if UNIT_POS_Y == 0 && column < d && nth * block < rows {
            parts[part + column] = of_weight;
            parts[part + d + column] = of_bias;
        }
    }
}
