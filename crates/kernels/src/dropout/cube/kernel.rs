//! The dropout kernel.

use cubecl::prelude::*;

use crate::mask::cube::{hash, mask_seed, row_key};

/// Units along a row; neighbouring units read neighbouring columns.
pub(super) const COLUMNS: usize = 32;
/// Rows of a cube.
pub(super) const ROWS: usize = 8;

/// # Shapes
/// - `x` and `out`: `rows · columns` elements, contiguous
/// - `step_seed`: `[2]`, see [`mask_seed`]
/// - cubes: any grid of at least `rows / ROWS`; units: `[COLUMNS, ROWS]`
#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn dropout_kernel<F: Float>(
    x: &Tensor<F>,
    step_seed: &Tensor<u32>,
    out: &mut Tensor<F>,
    rows: u32,
    columns: u32,
    nth: u32,
    place: u32,
    threshold: u32,
    scale: f32,
    #[define(F)] _dtype: ElemType,
) {
    let group = CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X;
    let row = group * comptime!(ROWS as u32) + UNIT_POS_Y;
    if row < rows {
        let key = row_key(mask_seed(step_seed, nth, place), row);
        let (low, high) = (key.low, key.high);
        let kept = F::cast_from(scale);
        let mut column = UNIT_POS_X;
        while column < columns {
            let at = row as usize * columns as usize + column as usize;
            let is_kept = hash(low, high, column) >> 8u32 >= threshold;
            out[at] = x[at] * select(is_kept, kept, F::new(0.0f32));
            column += comptime!(COLUMNS as u32);
        }
    }
}
