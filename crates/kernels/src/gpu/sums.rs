//! Sums over rows on a GPU, in an order that depends only on the shapes: no atomics, so the same
//! inputs give the same bits.
//!
//! A sum has two stages. In the first, each cube adds a block of [`BLOCK`] rows, and a kernel may
//! do this next to its other work. [`sum_parts`] then adds the blocks.

use burn::backend::cubecl::dtype_to_storage_type;
use burn::backend::{DType, Shape, TensorMetadata};
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use crate::gpu::{address_type, empty_like};

/// Rows of a block.
pub(crate) const BLOCK: usize = 64;
/// Neighbouring columns of a cube, which neighbouring units read.
pub(crate) const COLUMNS: usize = 32;
/// Rows that a cube reads at the same time.
pub(crate) const ROWS: usize = 8;

/// The sums of all parts, `[parts, first + second]` → `[first]` and `[second]`.
pub(crate) fn sum_parts(parts: CubeTensor, first: usize, second: usize) -> [CubeTensor; 2] {
    let [n_parts, width] = parts.shape().dims();
    debug_assert_eq!(width, first + second);
    let sums = [first, second.max(1)].map(|n| empty_like(&parts, Shape::new([n]), DType::F32));
    let [own, other] = sums.clone();
    // SAFETY: the kernel reads and writes only columns below `first + second`.
    unsafe {
        sum_parts_kernel::launch_unchecked(
            &parts.client,
            CubeCount::Static(width.div_ceil(COLUMNS) as u32, 1, 1),
            CubeDim::new_2d(COLUMNS as u32, ROWS as u32),
            address_type(&[&parts]),
            parts.clone().into_tensor_arg(),
            own.into_tensor_arg(),
            other.into_tensor_arg(),
            n_parts as u32,
            first as u32,
            second as u32,
        );
    }
    sums
}

/// The sum of the rows of a contiguous tensor with the last axis `width`: `[width]`.
pub(crate) fn sum_rows(rows: &CubeTensor, width: usize) -> CubeTensor {
    let n_rows = rows.shape().num_elements() / width;
    let blocks = n_rows.div_ceil(BLOCK);
    let parts = empty_like(rows, Shape::new([blocks, width]), DType::F32);
    // SAFETY: the kernel reads only rows below `n_rows`, and writes one row for each cube.
    unsafe {
        sum_rows_kernel::launch_unchecked(
            &parts.client,
            CubeCount::Static(blocks as u32, width.div_ceil(COLUMNS) as u32, 1),
            CubeDim::new_2d(COLUMNS as u32, ROWS as u32),
            address_type(&[rows, &parts]),
            rows.clone().into_tensor_arg(),
            parts.clone().into_tensor_arg(),
            n_rows as u32,
            width as u32,
            dtype_to_storage_type(rows.dtype),
        );
    }
    let [sum, _] = sum_parts(parts, width, 0);
    sum
}

/// # Shapes
/// - `parts`: `[n_parts, first + second]`; `own`: `[first]`; `other`: `[second]`
/// - cubes: groups of [`COLUMNS`] columns; units: `[COLUMNS, ROWS]`
#[cube(launch_unchecked, address_type = "dynamic")]
fn sum_parts_kernel(
    parts: &Tensor<f32>,
    own: &mut Tensor<f32>,
    other: &mut Tensor<f32>,
    n_parts: u32,
    first: u32,
    second: u32,
) {
    let column = CUBE_POS_X * comptime!(COLUMNS as u32) + UNIT_POS_X;
    let width = first + second;
    let mut sum = 0.0f32;
    if column < width {
        let mut part = UNIT_POS_Y;
        while part < n_parts {
            sum += parts[part as usize * width as usize + column as usize];
            part += comptime!(ROWS as u32);
        }
    }
    let total = over_rows(sum);
    if UNIT_POS_Y == 0 && column < width {
        if column < first {
            own[column as usize] = total;
        } else {
            other[(column - first) as usize] = total;
        }
    }
}

/// # Shapes
/// - `rows`: `[n_rows, width]`; `parts`: `[blocks, width]`
/// - cubes: `[blocks, groups of COLUMNS columns]`; units: `[COLUMNS, ROWS]`
#[cube(launch_unchecked, address_type = "dynamic")]
fn sum_rows_kernel<F: Float>(
    rows: &Tensor<F>,
    parts: &mut Tensor<f32>,
    n_rows: u32,
    width: u32,
    #[define(F)] _dtype: ElemType,
) {
    let column = CUBE_POS_Y * comptime!(COLUMNS as u32) + UNIT_POS_X;
    let first = CUBE_POS_X * comptime!(BLOCK as u32);
    let mut sum = 0.0f32;
    if column < width {
        let mut row = first + UNIT_POS_Y;
        while row < min(first + comptime!(BLOCK as u32), n_rows) {
            sum += f32::cast_from(rows[row as usize * width as usize + column as usize]);
            row += comptime!(ROWS as u32);
        }
    }
    let total = over_rows(sum);
    if UNIT_POS_Y == 0 && column < width {
        parts[CUBE_POS_X as usize * width as usize + column as usize] = total;
    }
}

/// The sum of `value` over the units of a column of a cube of `[COLUMNS, ROWS]` units.
#[cube]
pub(crate) fn over_rows(value: f32) -> f32 {
    let mut values = Shared::<[f32]>::new_slice(comptime!(COLUMNS * ROWS));
    values[UNIT_POS as usize] = value;
    sync_cube();
    let mut total = 0.0f32;
    #[unroll]
    for row in 0..ROWS {
        total += values[row * COLUMNS + UNIT_POS_X as usize];
    }
    sync_cube();
    total
}

/// The sum of `value` over the units of a row of a cube of `[COLUMNS, ROWS]` units.
#[cube]
pub(crate) fn over_columns(value: f32) -> f32 {
    // One more element in a row, so that the units of a column read different banks.
    let mut values = Shared::<[f32]>::new_slice(comptime!((COLUMNS + 1) * ROWS));
    let row = UNIT_POS_Y as usize * comptime!(COLUMNS + 1);
    values[row + UNIT_POS_X as usize] = value;
    sync_cube();
    let mut total = 0.0f32;
    #[unroll]
    for column in 0..COLUMNS {
        total += values[row + column];
    }
    sync_cube();
    total
}
