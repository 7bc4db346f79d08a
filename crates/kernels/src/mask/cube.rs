//! The mask in a kernel, from a step's seed in memory.
//!
//! A recorded step runs again with the same arguments, so a kernel must not get a seed as an
//! argument. It reads the step's seed and derives the rest itself. Some GPU languages lack 64-bit
//! integers, so the kernels use two halves. They drop the same elements as the CPU.

use cubecl::prelude::*;

use super::{GOLDEN, MIX, PLACES, ROUND};

/// A number of 64 bits.
#[derive(CubeType, Clone, Copy)]
pub(crate) struct Wide {
    pub low: u32,
    pub high: u32,
}

/// The seed of the mask of one place: `Dropout::mask`.
///
/// # Shapes
/// - `step_seed`: `[2]`, the low and the high half
#[cube]
pub(crate) fn mask_seed(step_seed: &Tensor<u32>, nth: u32, place: u32) -> Wide {
    let step = mix64(Wide { low: step_seed[0], high: step_seed[1] });
    let nth = mix64(Wide { low: nth, high: 0u32 });
    let of_use = mix64(Wide { low: step.low ^ nth.low, high: step.high ^ nth.high });
    let place = comptime!(PLACES as u32).runtime() + place;
    mix64(Wide { low: of_use.low ^ place, high: of_use.high })
}

/// The key of one row of a mask: `Mask::row`.
#[cube]
pub(crate) fn row_key(mask_seed: Wide, row: u32) -> Wide {
    mix64(plus(mask_seed, times(Wide { low: row, high: 0u32 }, comptime!(GOLDEN))))
}

/// `mask::hash` with the two halves of a row's key, which loops can use again and again. An element
/// is dropped if the upper 24 bits lie below the threshold.
#[cube]
pub(crate) fn hash(low: u32, high: u32, column: u32) -> u32 {
    let x = (column * comptime!(ROUND[0]).runtime()) ^ low;
    let x = ((x ^ (x >> 16u32)) * comptime!(ROUND[1]).runtime()) ^ high;
    let x = (x ^ (x >> 15u32)) * comptime!(ROUND[2]).runtime();
    x ^ (x >> 16u32)
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
