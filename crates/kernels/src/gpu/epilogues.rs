//! The operations after a product of matrices on a GPU, in one pass over its result: bias and
//! activation, bias with dropout and residual, and the slope of an activation.

use burn::backend::cubecl::dtype_to_storage_type;
use burn::backend::{DType, Shape, TensorMetadata};
use burn::tensor::{Device, Int};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use crate::activation::Activation;
use crate::gpu::sums::{COLUMNS, ROWS};
use crate::gpu::{address_type, empty_like, folded};
use crate::mask::cube::{Wide, hash, mask_seed, row_key};
use crate::mask::{Mask, Place};
use crate::{Dropout, Queries};

/// Dropout of a launch. Its seed is in memory, so that a recorded launch drops other elements in
/// every step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Masked {
    /// Index of this dropout in the step.
    pub nth: u32,
    /// The [`Place`](crate::mask::Place) of the mask.
    pub place: u32,
    /// Elements whose hash lies below are dropped.
    pub threshold: u32,
    /// Factor of the other elements.
    pub scale: f32,
}

impl Masked {
    /// The mask of a dropout at one place, and the tensor with the step's seed. Without dropout the
    /// tensor is never read.
    pub fn of(
        dropout: Option<&Dropout>,
        place: Place,
        device: &Device,
    ) -> (burn::tensor::Tensor<1, Int>, Option<Self>) {
        let mask = dropout.and_then(|dropout| Mask::new(dropout.probability, 0, place));
        let Some((dropout, mask)) = dropout.zip(mask) else {
            return (burn::tensor::Tensor::empty([2], device), None);
        };
        let (place, threshold) = (place as u32, mask.threshold as u32);
        let mask = Self { nth: dropout.nth, place, threshold, scale: mask.scale };
        (dropout.step_seed.clone(), Some(mask))
    }
}

fn grid(rows: usize) -> (CubeCount, CubeDim) {
    (folded(rows.div_ceil(ROWS)), CubeDim::new_2d(COLUMNS as u32, ROWS as u32))
}

fn rows_of(tensor: &CubeTensor, width: usize) -> usize {
    tensor.shape().num_elements() / width
}

/// `product + bias`, in place.
pub(crate) fn bias(product: CubeTensor, bias: CubeTensor) -> CubeTensor {
    with_bias(product, bias, false)
}

/// `max(product + bias, 0)`, in place.
pub(crate) fn bias_relu(product: CubeTensor, bias: CubeTensor) -> CubeTensor {
    with_bias(product, bias, true)
}

fn with_bias(product: CubeTensor, bias: CubeTensor, has_relu: bool) -> CubeTensor {
    let [width] = bias.shape().dims();
    let rows = rows_of(&product, width);
    let (count, dim) = grid(rows);
    // SAFETY: the kernel reads and writes only rows below `rows` and columns below `width`.
    unsafe {
        bias_kernel::launch_unchecked(
            &product.client,
            count,
            dim,
            address_type(&[&product]),
            product.clone().into_tensor_arg(),
            bias.into_tensor_arg(),
            rows as u32,
            width as u32,
            has_relu,
            dtype_to_storage_type(product.dtype),
        );
    }
    product
}

/// `product + bias`, in place, and its GELU.
pub(crate) fn bias_gelu(product: CubeTensor, bias: CubeTensor) -> [CubeTensor; 2] {
    let [width] = bias.shape().dims();
    let rows = rows_of(&product, width);
    let active = empty_like(&product, product.shape(), product.dtype);
    let (count, dim) = grid(rows);
    // SAFETY: as in `with_bias`.
    unsafe {
        gelu_kernel::launch_unchecked(
            &product.client,
            count,
            dim,
            address_type(&[&product]),
            product.clone().into_tensor_arg(),
            bias.into_tensor_arg(),
            active.clone().into_tensor_arg(),
            rows as u32,
            width as u32,
            dtype_to_storage_type(product.dtype),
        );
    }
    [product, active]
}

/// `x + mask ⊙ (product + bias)` at the queries.
///
/// # Shapes
/// - `product`: `[batch · queries, width]`; `x`: `[batch, tokens, width]`
pub(crate) fn residual(
    product: CubeTensor,
    bias: CubeTensor,
    x: &CubeTensor,
    queries: Queries,
    step_seed: CubeTensor,
    mask: Option<Masked>,
) -> CubeTensor {
    let [width] = bias.shape().dims();
    let rows = rows_of(&product, width);
    let out = empty_like(x, Shape::new([rows, width]), DType::F32);
    let (count, dim) = grid(rows);
    let numbers = mask.unwrap_or_default();
    // SAFETY: as in `with_bias`; `x` has a row for each query.
    unsafe {
        residual_kernel::launch_unchecked(
            &out.client,
            count,
            dim,
            address_type(&[&product, x, &out]),
            product.clone().into_tensor_arg(),
            bias.into_tensor_arg(),
            x.clone().into_tensor_arg(),
            step_seed.into_tensor_arg(),
            out.clone().into_tensor_arg(),
            rows as u32,
            width as u32,
            queries.first as u32,
            queries.step as u32,
            MaskedNumbersLaunch::new(numbers.nth, numbers.place, numbers.threshold, numbers.scale),
            mask.is_some(),
            dtype_to_storage_type(product.dtype),
        );
    }
    out
}

/// `mask ⊙ gradient` in `dtype`.
pub(crate) fn masked(
    gradient: CubeTensor,
    width: usize,
    step_seed: CubeTensor,
    mask: Option<Masked>,
    dtype: DType,
) -> CubeTensor {
    if mask.is_none() && gradient.dtype == dtype {
        return gradient;
    }
    let rows = rows_of(&gradient, width);
    let out = empty_like(&gradient, gradient.shape(), dtype);
    let (count, dim) = grid(rows);
    let numbers = mask.unwrap_or_default();
    // SAFETY: as in `with_bias`.
    unsafe {
        masked_kernel::launch_unchecked(
            &out.client,
            count,
            dim,
            address_type(&[&gradient, &out]),
            gradient.clone().into_tensor_arg(),
            step_seed.into_tensor_arg(),
            out.clone().into_tensor_arg(),
            rows as u32,
            width as u32,
            MaskedNumbersLaunch::new(numbers.nth, numbers.place, numbers.threshold, numbers.scale),
            mask.is_some(),
            dtype_to_storage_type(gradient.dtype),
            dtype_to_storage_type(dtype),
        );
    }
    out
}

/// Two matrices in `dtype`, contiguous.
pub(crate) fn cast(matrices: [CubeTensor; 2], dtype: DType) -> [CubeTensor; 2] {
    let matrices = matrices.map(into_contiguous);
    if matrices.iter().all(|matrix| matrix.dtype == dtype) {
        return matrices;
    }
    let out = matrices.each_ref().map(|matrix| empty_like(matrix, matrix.shape(), dtype));
    let [n, other_n] = matrices.each_ref().map(|matrix| matrix.shape().num_elements());
    let ([matrix, other], [into, into_other]) = (matrices, out.clone());
    let cubes = (n + other_n).div_ceil(COLUMNS * ROWS);
    // SAFETY: the kernel reads and writes elements below `n` and `other_n` of two tensors each.
    unsafe {
        cast_kernel::launch_unchecked(
            &matrix.client,
            folded(cubes),
            CubeDim::new_1d((COLUMNS * ROWS) as u32),
            address_type(&[&matrix, &other]),
            matrix.clone().into_tensor_arg(),
            other.into_tensor_arg(),
            into.into_tensor_arg(),
            into_other.into_tensor_arg(),
            n as u32,
            other_n as u32,
            dtype_to_storage_type(dtype),
        );
    }
    out
}

/// `gradient ⊙ activation'(before)`. For ReLU, its result can stand for `before`.
pub(crate) fn times_slope(
    gradient: &CubeTensor,
    before: CubeTensor,
    activation: Activation,
) -> CubeTensor {
    let width = gradient.shape()[gradient.shape().num_dims() - 1];
    let rows = rows_of(gradient, width);
    let out = empty_like(gradient, gradient.shape(), gradient.dtype);
    let (count, dim) = grid(rows);
    // SAFETY: as in `with_bias`.
    unsafe {
        slope_kernel::launch_unchecked(
            &gradient.client,
            count,
            dim,
            address_type(&[gradient]),
            gradient.clone().into_tensor_arg(),
            before.into_tensor_arg(),
            out.clone().into_tensor_arg(),
            rows as u32,
            width as u32,
            activation == Activation::Relu,
            dtype_to_storage_type(gradient.dtype),
        );
    }
    out
}

#[derive(CubeType, CubeLaunch, Clone, Copy)]
struct MaskedNumbers {
    nth: u32,
    place: u32,
    threshold: u32,
    scale: f32,
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn cast_kernel<O: Float>(
    matrix: &Tensor<f32>,
    other: &Tensor<f32>,
    into: &mut Tensor<O>,
    into_other: &mut Tensor<O>,
    n: u32,
    other_n: u32,
    #[define(O)] _dtype: ElemType,
) {
    let at = ABSOLUTE_POS as u32;
    if at < n {
        into[at as usize] = O::cast_from(matrix[at as usize]);
    } else if at < n + other_n {
        into_other[(at - n) as usize] = O::cast_from(other[(at - n) as usize]);
    }
}

/// The row of a unit.
#[cube]
fn own_row() -> u32 {
    (CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X) * comptime!(ROWS as u32) + UNIT_POS_Y
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn bias_kernel<F: Float>(
    product: &mut Tensor<F>,
    bias: &Tensor<f32>,
    rows: u32,
    width: u32,
    #[comptime] has_relu: bool,
    #[define(F)] _dtype: ElemType,
) {
    let row = own_row();
    if row < rows {
        let mut column = UNIT_POS_X;
        while column < width {
            let at = row as usize * width as usize + column as usize;
            let mut value = f32::cast_from(product[at]) + bias[column as usize];
            if has_relu {
                // A NaN stays NaN.
                value = select(value < 0.0f32, 0.0f32, value);
            }
            product[at] = F::cast_from(value);
            column += comptime!(COLUMNS as u32);
        }
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn gelu_kernel<F: Float>(
    product: &mut Tensor<F>,
    bias: &Tensor<f32>,
    active: &mut Tensor<F>,
    rows: u32,
    width: u32,
    #[define(F)] _dtype: ElemType,
) {
    let row = own_row();
    if row < rows {
        let mut column = UNIT_POS_X;
        while column < width {
            let at = row as usize * width as usize + column as usize;
            let value = f32::cast_from(product[at]) + bias[column as usize];
            product[at] = F::cast_from(value);
            active[at] = F::cast_from(value * normal_distribution(value));
            column += comptime!(COLUMNS as u32);
        }
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn residual_kernel<F: Float>(
    product: &Tensor<F>,
    bias: &Tensor<f32>,
    x: &Tensor<f32>,
    step_seed: &Tensor<u32>,
    out: &mut Tensor<f32>,
    rows: u32,
    width: u32,
    first_query: u32,
    step: u32,
    mask: MaskedNumbers,
    #[comptime] has_mask: bool,
    #[define(F)] _dtype: ElemType,
) {
    let row = own_row();
    if row < rows {
        let from = (row * step + first_query) as usize * width as usize;
        let key = key_of(step_seed, &mask, row, has_mask);
        let (low, high) = (key.low, key.high);
        let mut column = UNIT_POS_X;
        while column < width {
            let at = row as usize * width as usize + column as usize;
            let mut value = f32::cast_from(product[at]) + bias[column as usize];
            if has_mask {
                value *= factor(low, high, &mask, column);
            }
            out[at] = x[from + column as usize] + value;
            column += comptime!(COLUMNS as u32);
        }
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn masked_kernel<I: Float, O: Float>(
    gradient: &Tensor<I>,
    step_seed: &Tensor<u32>,
    out: &mut Tensor<O>,
    rows: u32,
    width: u32,
    mask: MaskedNumbers,
    #[comptime] has_mask: bool,
    #[define(I)] _input: ElemType,
    #[define(O)] _output: ElemType,
) {
    let row = own_row();
    if row < rows {
        let key = key_of(step_seed, &mask, row, has_mask);
        let (low, high) = (key.low, key.high);
        let mut column = UNIT_POS_X;
        while column < width {
            let at = row as usize * width as usize + column as usize;
            let mut value = f32::cast_from(gradient[at]);
            if has_mask {
                value *= factor(low, high, &mask, column);
            }
            out[at] = O::cast_from(value);
            column += comptime!(COLUMNS as u32);
        }
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn slope_kernel<F: Float>(
    gradient: &Tensor<F>,
    before: &Tensor<F>,
    out: &mut Tensor<F>,
    rows: u32,
    width: u32,
    #[comptime] is_relu: bool,
    #[define(F)] _dtype: ElemType,
) {
    let row = own_row();
    if row < rows {
        let mut column = UNIT_POS_X;
        while column < width {
            let at = row as usize * width as usize + column as usize;
            let by = f32::cast_from(gradient[at]) * slope(f32::cast_from(before[at]), is_relu);
            out[at] = F::cast_from(by);
            column += comptime!(COLUMNS as u32);
        }
    }
}

/// The key of a row of a mask.
#[cube]
fn key_of(
    step_seed: &Tensor<u32>,
    mask: &MaskedNumbers,
    row: u32,
    #[comptime] has_mask: bool,
) -> Wide {
    let mut low = 0u32;
    let mut high = 0u32;
    if has_mask {
        let key = row_key(mask_seed(step_seed, mask.nth, mask.place), row);
        low = key.low;
        high = key.high;
    }
    Wide { low, high }
}

#[cube]
fn factor(low: u32, high: u32, mask: &MaskedNumbers, column: u32) -> f32 {
    select(hash(low, high, column) >> 8u32 >= mask.threshold, mask.scale, 0.0f32)
}

/// The derivative of GELU, `Φ(x) + x φ(x)`, or of ReLU, 1 where it gave no 0.
#[cube]
fn slope(x: f32, #[comptime] is_relu: bool) -> f32 {
    let mut slope = select(x <= 0.0f32, 0.0f32, 1.0f32);
    if comptime!(!is_relu) {
        // 1 / √(2π)
        let density = 0.398_942_3f32 * (-0.5f32 * x * x).exp();
        slope = fma(x, density, normal_distribution(x));
    }
    slope
}

#[cube]
fn normal_distribution(x: f32) -> f32 {
    fma(0.5f32, Erf::erf(x * std::f32::consts::FRAC_1_SQRT_2), 0.5f32)
}
