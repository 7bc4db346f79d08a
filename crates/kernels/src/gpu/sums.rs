//! Sums over rows on a GPU, in an order that depends only on the shapes: no atomics, so the same
//! inputs give the same bits.
//!
//! A sum has two stages. In the first, each cube adds a block of rows, and a kernel may do this next
//! to its other work. [`sum_parts`] then adds the blocks.

use burn::backend::cubecl::dtype_to_storage_type;
use burn::backend::{DType, Shape, TensorMetadata};
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use crate::gpu::{address_type, empty_like, folded};

/// Most blocks, if none has more rows than 64: about three for each of an H200's 132
/// multiprocessors.
const MOST_BLOCKS: usize = 360;
/// Neighbouring columns of a cube, which neighbouring units read.
pub(crate) const COLUMNS: usize = 32;
/// Rows that a cube reads at the same time.
pub(crate) const ROWS: usize = 8;

/// The sums of all parts: `[parts, first + second]` → `[first]` and `[second]`.
pub(crate) fn sum_parts(parts: CubeTensor, first: usize, second: usize) -> [CubeTensor; 2] {
    let [n_parts, width] = parts.shape().dims();
    debug_assert_eq!(width, first + second);
    let other = (&parts, first, width, second);
    launch_sums((&parts, 0, width, first), other, [n_parts; 2])
}

/// The sums of all parts of two tensors: `[parts, n]` → `[n]`.
pub(crate) fn sum_both(left: &CubeTensor, right: &CubeTensor) -> [CubeTensor; 2] {
    let [[n_left, left_n], [n_right, right_n]] =
        [left, right].map(|parts| parts.shape().dims::<2>());
    launch_sums((left, 0, left_n, left_n), (right, 0, right_n, right_n), [n_left, n_right])
}

/// Each side is a tensor of parts, its first column, the columns of a part, and those to be added.
fn launch_sums(
    (left, left_first, left_width, left_n): (&CubeTensor, usize, usize, usize),
    (right, right_first, right_width, right_n): (&CubeTensor, usize, usize, usize),
    [n_left, n_right]: [usize; 2],
) -> [CubeTensor; 2] {
    let sums = [left_n, right_n.max(1)].map(|n| empty_like(left, Shape::new([n]), DType::F32));
    let [own, other] = sums.clone();
    let cubes = left_n.div_ceil(COLUMNS) + right_n.div_ceil(COLUMNS);
    // SAFETY: the kernel reads and writes only the columns of either side.
    unsafe {
        sum_parts_kernel::launch_unchecked(
            &left.client,
            folded(cubes),
            CubeDim::new_2d(COLUMNS as u32, ROWS as u32),
            address_type(&[left, right]),
            left.clone().into_tensor_arg(),
            right.clone().into_tensor_arg(),
            own.into_tensor_arg(),
            other.into_tensor_arg(),
            SideLaunch::new(left_first as u32, left_width as u32, left_n as u32, n_left as u32),
            SideLaunch::new(right_first as u32, right_width as u32, right_n as u32, n_right as u32),
        );
    }
    sums
}

/// Rows of a block, a multiple of [`ROWS`].
pub(crate) fn block_of(rows: usize) -> usize {
    rows.div_ceil(MOST_BLOCKS).next_multiple_of(ROWS).clamp(ROWS, 64)
}

/// The sums of blocks of rows of a contiguous tensor with the last axis `width`:
/// `[blocks, width]`.
pub(crate) fn sum_blocks(rows: &CubeTensor, width: usize) -> CubeTensor {
    let n_rows = rows.shape().num_elements() / width;
    let block = block_of(n_rows);
    let blocks = n_rows.div_ceil(block);
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
            block as u32,
            dtype_to_storage_type(rows.dtype),
        );
    }
    parts
}

/// One side of a sum of parts.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
struct Side {
    /// The first column.
    first: u32,
    /// Columns of a part.
    width: u32,
    /// Columns to add.
    n: u32,
    n_parts: u32,
}

/// # Shapes
/// - `left`, `right`: `[n_parts, width]`; `own`, `other`: the sums of either side, `[n]`
/// - cubes: groups of [`COLUMNS`] columns of the left side, then of the right
/// - units: `[COLUMNS, ROWS]`
#[cube(launch_unchecked, address_type = "dynamic")]
fn sum_parts_kernel(
    left: &Tensor<f32>,
    right: &Tensor<f32>,
    own: &mut Tensor<f32>,
    other: &mut Tensor<f32>,
    left_side: Side,
    right_side: Side,
) {
    let columns = comptime!(COLUMNS as u32);
    let left_cubes = left_side.n.div_ceil(columns);
    let cube = CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X;
    let is_left = cube < left_cubes;
    let mut sum = 0.0f32;
    let mut column = cube * columns + UNIT_POS_X;
    let mut part = UNIT_POS_Y;
    if is_left {
        if column < left_side.n {
            while part < left_side.n_parts {
                let at = part as usize * left_side.width as usize;
                sum += left[at + (left_side.first + column) as usize];
                part += comptime!(ROWS as u32);
            }
        }
    } else {
        column = (cube - left_cubes) * columns + UNIT_POS_X;
        if column < right_side.n {
            while part < right_side.n_parts {
                let at = part as usize * right_side.width as usize;
                sum += right[at + (right_side.first + column) as usize];
                part += comptime!(ROWS as u32);
            }
        }
    }
    let mut values = new_values();
    let total = over_rows(sum, &mut values);
    if UNIT_POS_Y == 0 {
        if is_left && column < left_side.n {
            own[column as usize] = total;
        }
        if !is_left && column < right_side.n {
            other[column as usize] = total;
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
    block: u32,
    #[define(F)] _dtype: ElemType,
) {
    let column = CUBE_POS_Y * comptime!(COLUMNS as u32) + UNIT_POS_X;
    let first = CUBE_POS_X * block;
    let mut sum = 0.0f32;
    if column < width {
        let mut row = first + UNIT_POS_Y;
        while row < min(first + block, n_rows) {
            sum += f32::cast_from(rows[row as usize * width as usize + column as usize]);
            row += comptime!(ROWS as u32);
        }
    }
    let mut values = new_values();
    let total = over_rows(sum, &mut values);
    if UNIT_POS_Y == 0 && column < width {
        parts[CUBE_POS_X as usize * width as usize + column as usize] = total;
    }
}

/// Memory for [`over_rows`] and [`over_columns`], of one cube.
#[cube]
pub(crate) fn new_values() -> Shared<[f32]> {
    Shared::<[f32]>::new_slice(comptime!((COLUMNS + 1) * ROWS))
}

/// The sum of `value` over the units of a column of a cube of `[COLUMNS, ROWS]` units.
#[cube]
pub(crate) fn over_rows(value: f32, values: &mut Shared<[f32]>) -> f32 {
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
pub(crate) fn over_columns(value: f32, values: &mut Shared<[f32]>) -> f32 {
    // One more element in a row, so that the units of a column read different banks.
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
