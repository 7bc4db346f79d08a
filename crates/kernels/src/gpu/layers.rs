//! Layers of small networks on a GPU, in `f32`: a product of matrices with what precedes and follows it
//! in one launch. burn's products have blocks for large matrices, and need launches of their own for
//! bias, ReLU and slopes.
//!
//! A layer is `y = x W + b`, or the maximum of that and 0. With the gradient `g` by `y`, and `d = g`,
//! or 0 where ReLU gave 0:
//!
//! - `dx = d Wᵀ`
//! - `dW = xᵀ d` and `db = Σ d`, one product if `xᵀ` has a row of ones below its last row
//!
//! No launch splits a sum, so the same inputs give the same bits.

use burn::backend::{DType, Shape, TensorMetadata};
use burn_cubecl::ops::reshape;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use crate::gpu::{address_type, empty_like, folded, view};

/// Rows and columns of a cube's block of the result.
const BLOCK: usize = 16;
/// Rows and columns of units of a cube, each of which computes 2 x 2 elements.
const UNITS: usize = BLOCK / 2;
/// Summands of each element for which a cube stores factors at one time.
const STEP: usize = 64;
/// Stored factors of neighbouring rows are in different banks.
const PITCH: usize = STEP + 1;
/// Most multiplications of a layer for these kernels. Larger layers are worth tensor cores.
const MOST: usize = 1 << 26;
/// Most rows. The gradients of the parameters sum over them, in a few cubes of a narrow layer.
const MOST_ROWS: usize = 512;

/// Which product of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Product {
    /// `x W`
    Forward,
    /// `d Wᵀ`
    ByRows,
    /// `xᵀ d`
    ByParameters,
}

/// Whether these kernels compute a layer of `[rows, n_in]` and `[n_in, n_out]`.
pub(crate) fn is_small([rows, n_in]: [usize; 2], n_out: usize) -> bool {
    rows <= MOST_ROWS && rows * n_in * n_out <= MOST
}

/// `x W + b`, or `max(x W + b, 0)`.
pub(crate) fn forward(
    x: &CubeTensor,
    weight: &CubeTensor,
    bias: &CubeTensor,
    has_relu: bool,
) -> CubeTensor {
    let ([rows, n_in], [n_out]) = (x.shape().dims(), bias.shape().dims());
    launch(Product::Forward, [rows, n_out, n_in], [x, weight, bias], has_relu)
}

/// The gradient by the rows, from the gradient by the result; `active` is the result of ReLU.
pub(crate) fn by_rows(
    by_out: &CubeTensor,
    active: Option<&CubeTensor>,
    weight: &CubeTensor,
) -> CubeTensor {
    let ([rows, n_out], [n_in, _]) = (by_out.shape().dims(), weight.shape().dims::<2>());
    let factors = [by_out, weight, active.unwrap_or(by_out)];
    launch(Product::ByRows, [rows, n_in, n_out], factors, active.is_some())
}

/// The gradients by weight and bias.
pub(crate) fn by_parameters(
    x: &CubeTensor,
    by_out: &CubeTensor,
    active: Option<&CubeTensor>,
) -> [CubeTensor; 2] {
    let ([rows, n_in], [_, n_out]) = (x.shape().dims(), by_out.shape().dims::<2>());
    let factors = [x, by_out, active.unwrap_or(by_out)];
    let both = launch(Product::ByParameters, [n_in + 1, n_out, rows], factors, active.is_some());
    let both = reshape(both, Shape::new([(n_in + 1) * n_out]));
    [
        view(both.clone(), 0, Shape::new([n_in, n_out]), DType::F32),
        view(both, n_in * n_out, Shape::new([n_out]), DType::F32),
    ]
}

/// `[rows, columns]`, each element a sum of `n` products of two factors; `other` is the bias or the
/// result of ReLU.
fn launch(
    product: Product,
    [rows, columns, n]: [usize; 3],
    [left, right, other]: [&CubeTensor; 3],
    has_relu: bool,
) -> CubeTensor {
    let out = empty_like(left, Shape::new([rows, columns]), DType::F32);
    let cubes = rows.div_ceil(BLOCK) * columns.div_ceil(BLOCK);
    // SAFETY: the kernel reads and writes only elements of these sizes, and the callers' tensors have
    // them.
    unsafe {
        product_kernel::launch_unchecked(
            &out.client,
            folded(cubes),
            CubeDim::new_2d(UNITS as u32, UNITS as u32),
            address_type(&[left, right, &out]),
            left.clone().into_tensor_arg(),
            right.clone().into_tensor_arg(),
            other.clone().into_tensor_arg(),
            out.clone().into_tensor_arg(),
            rows as u32,
            columns as u32,
            n as u32,
            product,
            has_relu,
        );
    }
    out
}

/// # Shapes
/// - cubes: one for each block of the result; units: `[UNITS, UNITS]`
#[cube(launch_unchecked, address_type = "dynamic")]
fn product_kernel(
    left: &Tensor<f32>,
    right: &Tensor<f32>,
    other: &Tensor<f32>,
    out: &mut Tensor<f32>,
    rows: u32,
    columns: u32,
    n: u32,
    #[comptime] product: Product,
    #[comptime] has_relu: bool,
) {
    let block = comptime!(BLOCK as u32);
    let pitch = comptime!(PITCH as u32);
    let across = columns.div_ceil(block);
    let cube = CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X;
    let first_row = cube / across * block;
    let first_column = cube % across * block;
    let mut left_factors = Shared::<[f32]>::new_slice(comptime!(BLOCK * PITCH));
    let mut right_factors = Shared::<[f32]>::new_slice(comptime!(BLOCK * PITCH));
    let mut sum_00 = 0.0f32;
    let mut sum_01 = 0.0f32;
    let mut sum_10 = 0.0f32;
    let mut sum_11 = 0.0f32;
    let mut start = 0u32;
    while start < n {
        #[unroll]
        for nth in 0..comptime!(BLOCK * STEP / (UNITS * UNITS)) {
            let at = nth as u32 * comptime!((UNITS * UNITS) as u32) + UNIT_POS;
            // Neighbouring units read neighbouring elements.
            let along_n = at % comptime!(STEP as u32);
            let row_along_n = at / comptime!(STEP as u32);
            let along_block = at % block;
            let n_along_block = at / block;

            let mut row = row_along_n;
            let mut i = along_n;
            if comptime!(product == Product::ByParameters) {
                row = along_block;
                i = n_along_block;
            }
            left_factors[(row * pitch + i) as usize] =
                left_factor(left, other, first_row + row, start + i, rows, n, product, has_relu);

            let mut column = along_block;
            let mut j = n_along_block;
            if comptime!(product == Product::ByRows) {
                column = row_along_n;
                j = along_n;
            }
            let of = first_column + column;
            right_factors[(column * pitch + j) as usize] =
                right_factor(right, other, start + j, of, columns, n, product, has_relu);
        }
        sync_cube();
        let units = comptime!(UNITS as u32);
        let row = UNIT_POS_Y * pitch;
        let column = UNIT_POS_X * pitch;
        for i in 0..comptime!(STEP as u32) {
            let left_0 = left_factors[(row + i) as usize];
            let left_1 = left_factors[(row + units * pitch + i) as usize];
            let right_0 = right_factors[(column + i) as usize];
            let right_1 = right_factors[(column + units * pitch + i) as usize];
            sum_00 = fma(left_0, right_0, sum_00);
            sum_01 = fma(left_0, right_1, sum_01);
            sum_10 = fma(left_1, right_0, sum_10);
            sum_11 = fma(left_1, right_1, sum_11);
        }
        sync_cube();
        start += comptime!(STEP as u32);
    }
    let units = comptime!(UNITS as u32);
    let row = first_row + UNIT_POS_Y;
    let column = first_column + UNIT_POS_X;
    write(out, other, sum_00, row, column, rows, columns, product, has_relu);
    write(out, other, sum_01, row, column + units, rows, columns, product, has_relu);
    write(out, other, sum_10, row + units, column, rows, columns, product, has_relu);
    write(out, other, sum_11, row + units, column + units, rows, columns, product, has_relu);
}

/// Factor `i` of a row of the result.
#[cube]
fn left_factor(
    left: &Tensor<f32>,
    active: &Tensor<f32>,
    row: u32,
    i: u32,
    rows: u32,
    n: u32,
    #[comptime] product: Product,
    #[comptime] has_relu: bool,
) -> f32 {
    let mut factor = 0.0f32;
    if row < rows && i < n {
        if comptime!(product == Product::ByParameters) {
            let width = rows - 1;
            factor = 1.0f32;
            if row < width {
                factor = left[(i * width + row) as usize];
            }
        } else {
            let at = (row * n + i) as usize;
            factor = left[at];
            if comptime!(product == Product::ByRows && has_relu) {
                factor = select(active[at] <= 0.0f32, 0.0f32, factor);
            }
        }
    }
    factor
}

/// Factor `i` of a column of the result.
#[cube]
fn right_factor(
    right: &Tensor<f32>,
    active: &Tensor<f32>,
    i: u32,
    column: u32,
    columns: u32,
    n: u32,
    #[comptime] product: Product,
    #[comptime] has_relu: bool,
) -> f32 {
    let mut factor = 0.0f32;
    if column < columns && i < n {
        if comptime!(product == Product::ByRows) {
            factor = right[(column * n + i) as usize];
        } else {
            let at = (i * columns + column) as usize;
            factor = right[at];
            if comptime!(product == Product::ByParameters && has_relu) {
                factor = select(active[at] <= 0.0f32, 0.0f32, factor);
            }
        }
    }
    factor
}

/// Writes an element of the result, after bias and ReLU in the forward pass.
#[cube]
fn write(
    out: &mut Tensor<f32>,
    bias: &Tensor<f32>,
    sum: f32,
    row: u32,
    column: u32,
    rows: u32,
    columns: u32,
    #[comptime] product: Product,
    #[comptime] has_relu: bool,
) {
    if row < rows && column < columns {
        let mut value = sum;
        if comptime!(product == Product::Forward) {
            value += bias[column as usize];
            if has_relu {
                // A NaN stays NaN.
                value = select(value < 0.0f32, 0.0f32, value);
            }
        }
        out[(row * columns + column) as usize] = value;
    }
}
