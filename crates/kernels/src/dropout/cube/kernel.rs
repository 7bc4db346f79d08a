//! The dropout kernel.
//!
//! Some GPU languages lack 64-bit integers, so the kernel uses two halves. It is the same
//! everywhere, and drops the same elements as the CPU.

use cubecl::prelude::*;

use crate::mask::{GOLDEN, MIX, ROUND};

/// Units along a row; neighbouring units read neighbouring columns.
pub(super) const COLUMNS: usize = 32;
/// Rows of a cube.
pub(super) const ROWS: usize = 8;

/// # Shapes
/// - `x` and `out`: `rows · columns` elements, contiguous
/// - cubes: any grid of at least `rows / ROWS`; units: `[COLUMNS, ROWS]`
#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn dropout_kernel<F: Float>(
    x: &Tensor<F>,
    out: &mut Tensor<F>,
    rows: u32,
    columns: u32,
    seed_low: u32,
    seed_high: u32,
    threshold: u32,
    scale: f32,
    #[define(F)] _dtype: ElemType,
) {
    let group = CUBE_POS_Y * CUBE_COUNT_X + CUBE_POS_X;
    let row = group * comptime!(ROWS as u32) + UNIT_POS_Y;
    if row < rows {
        let seed = Wide { low: seed_low, high: seed_high };
        let number = times(Wide { low: row, high: 0u32 }, comptime!(GOLDEN));
        let key = mix64(plus(seed, number));
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

/// A number of 64 bits.
#[derive(CubeType, Clone, Copy)]
struct Wide {
    low: u32,
    high: u32,
}

#[cube]
fn plus(a: Wide, b: Wide) -> Wide {
    let low = a.low + b.low;
    let carry = select(low < b.low, 1u32, 0u32);
    Wide { low, high: a.high + b.high + carry }
}

#[cube]
fn times(a: Wide, #[comptime] b: u64) -> Wide {
    let low = comptime!(b as u32).runtime();
    let high = comptime!((b >> 32) as u32).runtime();
    Wide { low: a.low * low, high: a.low.mul_hi(low) + a.low * high + a.high * low }
}

/// `a ^ (a >> n)`, for `n` below 32.
#[cube]
fn xor_shifted(a: Wide, #[comptime] n: u32) -> Wide {
    let (right, left) = (comptime!(n).runtime(), comptime!(32 - n).runtime());
    let low = (a.low >> right) | (a.high << left);
    Wide { low: a.low ^ low, high: a.high ^ (a.high >> right) }
}

/// `mask::mix64`.
#[cube]
fn mix64(x: Wide) -> Wide {
    let golden = Wide {
        low: comptime!(GOLDEN as u32).runtime(),
        high: comptime!((GOLDEN >> 32) as u32).runtime(),
    };
    let x = plus(x, golden);
    let x = times(xor_shifted(x, 30u32), comptime!(MIX[0]));
    let x = times(xor_shifted(x, 27u32), comptime!(MIX[1]));
    xor_shifted(x, 31u32)
}

/// `mask::hash`.
#[cube]
fn hash(low: u32, high: u32, column: u32) -> u32 {
    let x = (column * comptime!(ROUND[0]).runtime()) ^ low;
    let x = ((x ^ (x >> 16u32)) * comptime!(ROUND[1]).runtime()) ^ high;
    let x = (x ^ (x >> 15u32)) * comptime!(ROUND[2]).runtime();
    x ^ (x >> 16u32)
}
