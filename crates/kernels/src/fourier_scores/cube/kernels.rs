//! The kernels. Differences of queries and keys exist only in registers, never in memory.
//!
//! A cube is a block, a unit a thread; global and shared memory are those of CUDA.
//!
//! `s_ij = power · Σ_d ln |sinc x_ijd|`, `x_ijd = R_d (q_id − k_jd)`. From `ds`, with the slope
//! `σ(x) = cot x − 1/x`: `dq_id = power · R_d Σ_j ds_ij σ(x_ijd)`, the gradient of keys with the
//! opposite sign, and `dR_d = power · Σ_ij ds_ij σ(x_ijd) (q_id − k_jd)`. Nothing is kept: slopes
//! are computed again when they are used.

use cubecl::prelude::*;

use super::sinc::{ln_of_mantissa, slope, square};

/// Number of queries, and of keys, in the tile of scores of one cube. The units of a warp have one
/// query and 32 neighbouring keys, so they write neighbouring scores.
pub(super) const TILE: usize = 32;

/// Queries of a tile that are computed at the same time. The units of a cube are `ROWS` queries by
/// [`TILE`] keys; units of one query are neighbours and write neighbouring scores.
pub(super) const ROWS: usize = 8;

/// Scores per unit: independent work, which hides the latency of arithmetic.
const PER_UNIT: usize = TILE / ROWS;

/// Dimensions of a tile's queries and keys in shared memory at the same time.
const DEPTH: usize = 32;

/// Units of a cube in the gradient kernels.
pub(super) const UNITS: usize = 256;

/// Elements of the other side's tokens in shared memory at the same time: 8 KiB, so that many cubes
/// share a multiprocessor.
const STAGED: usize = 2048;

/// Dimensions of `R` per cube in the sum of gradients: few, so that many parts are read at the same
/// time.
pub(super) const SUMMED: usize = 8;

/// Tokens per cube in the gradient kernel.
pub(super) const fn rows(d_head: usize) -> usize {
    UNITS / d_head
}

/// One tile of scores of one head of one sequence.
///
/// # Shapes
/// - `q` and `k`: `[batch, heads, tokens, d_head]`, `r`: `[heads, d_head]`, of any strides
/// - `scores`: `[batch, heads, tokens, tokens]`
/// - cubes: `[batch · heads, tiles of queries, tiles of keys]`; units: `[TILE, ROWS]`
#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn scores_kernel<F: Float>(
    q: &Tensor<F>,
    k: &Tensor<F>,
    r: &Tensor<F>,
    scores: &mut Tensor<F>,
    power: f32,
    #[comptime] d_head: usize,
    #[define(F)] _dtype: ElemType,
) {
    let depth = comptime!(d_head.min(DEPTH));
    // Units of one query read the same dimension of different keys: with rows of odd length, these
    // are in different banks.
    let k_row = comptime!(depth + 1 - depth % 2);
    let mut q_tile = Shared::<[f32]>::new_slice(comptime!(TILE * depth));
    let mut k_tile = Shared::<[f32]>::new_slice(comptime!(TILE * k_row));
    let mut r_tile = Shared::<[f32]>::new_slice(depth);

    let tokens = q.shape(2);
    let batch = CUBE_POS_X as usize / q.shape(1);
    let head = CUBE_POS_X as usize % q.shape(1);
    let first_query = CUBE_POS_Y as usize * TILE;
    let first_key = CUBE_POS_Z as usize * TILE;
    let q_start = batch * q.stride(0) + head * q.stride(1);
    let k_start = batch * k.stride(0) + head * k.stride(1);
    let (x, y) = (UNIT_POS_X as usize, UNIT_POS_Y as usize);

    // Products of squares of factors: mantissa · 2^exponent.
    let mut mantissas = Array::<f32>::new(PER_UNIT);
    let mut exponents = Array::<i32>::new(PER_UNIT);
    #[unroll]
    for i in 0..PER_UNIT {
        mantissas[i] = 1.0f32;
        exponents[i] = 0i32;
    }

    for part in 0..comptime!(d_head.div_ceil(depth)) {
        let first = part * depth;
        // All units must have finished reading the previous dimensions.
        sync_cube();
        let mut i = UNIT_POS as usize;
        while i < comptime!(TILE * depth) {
            let (row, d) = (i / depth, i % depth);
            let (query, key) = (first_query + row, first_key + row);
            let mut q_value = 0.0f32;
            let mut k_value = 0.0f32;
            if first + d < d_head {
                if query < tokens {
                    q_value = f32::cast_from(
                        q[q_start + query * q.stride(2) + (first + d) * q.stride(3)],
                    );
                }
                if key < tokens {
                    k_value =
                        f32::cast_from(k[k_start + key * k.stride(2) + (first + d) * k.stride(3)]);
                }
            }
            q_tile[i] = q_value;
            k_tile[row * k_row + d] = k_value;
            i += comptime!(TILE * ROWS);
        }
        let d = UNIT_POS as usize;
        if d < depth {
            // Beyond the last dimension factors are 1.
            let mut r_value = 0.0f32;
            if first + d < d_head {
                r_value = f32::cast_from(r[head * r.stride(0) + (first + d) * r.stride(1)]);
            }
            r_tile[d] = r_value;
        }
        sync_cube();

        for d in 0..depth {
            let key = k_tile[x * k_row + d];
            let radius = r_tile[d];
            #[unroll]
            for i in 0..PER_UNIT {
                let apart = q_tile[(y + i * ROWS) * depth + d] - key;
                let product = mantissas[i] * square(apart * radius);
                let bits = u32::reinterpret(product);
                exponents[i] += i32::cast_from(bits >> 23) - 127i32;
                let mantissa = f32::reinterpret((bits & 0x007f_ffffu32) | 0x3f80_0000u32);
                // A NaN stays NaN, although its bits are split.
                mantissas[i] = select(product.is_nan(), product, mantissa);
            }
        }
    }

    let key = first_key + x;
    #[unroll]
    for i in 0..PER_UNIT {
        let query = first_query + y + i * ROWS;
        if query < tokens && key < tokens {
            let exponent = f32::cast_from(exponents[i]);
            let ln = fma(exponent, std::f32::consts::LN_2, ln_of_mantissa(mantissas[i]));
            let at = batch * scores.stride(0)
                + head * scores.stride(1)
                + query * scores.stride(2)
                + key * scores.stride(3);
            // The product is of squares.
            scores[at] = F::cast_from(0.5f32 * power * ln);
        }
    }
}

/// Gradients of some tokens of one side, queries or keys, of one head of one sequence, and their
/// part of the gradient of `R`. The score is even in the difference, so the sides are symmetric.
///
/// A unit has one token and one dimension. Scores with a gradient of zero, such as those of masked
/// keys, are skipped.
///
/// # Shapes
/// - `own`, `other` and `by_own`: `[batch, heads, tokens, d_head]`; `r`: `[heads, d_head]`
/// - `by_scores`: `[batch, heads, tokens, tokens]`; its axis `own_axis` is the own side
/// - `by_r`: `[batch, cubes of a sequence, heads, d_head]`
/// - cubes: `[batch · heads, groups of rows(d_head) tokens]`; units: [`UNITS`]
#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn gradient_kernel<F: Float>(
    own: &Tensor<F>,
    other: &Tensor<F>,
    r: &Tensor<F>,
    by_scores: &Tensor<F>,
    by_own: &mut Tensor<F>,
    by_r: ComptimeOption<&mut Tensor<f32>>,
    power: f32,
    #[comptime] own_axis: usize,
    #[comptime] d_head: usize,
    #[define(F)] _dtype: ElemType,
) {
    let n_rows = comptime!(rows(d_head));
    let n_staged = comptime!(STAGED / d_head);
    let mut staged = Shared::<[f32]>::new_slice(comptime!(n_staged * d_head));

    let tokens = own.shape(2);
    let batch = CUBE_POS_X as usize / own.shape(1);
    let head = CUBE_POS_X as usize % own.shape(1);
    let unit = UNIT_POS as usize;
    let (row, d) = (unit / d_head, unit % d_head);
    let token = CUBE_POS_Y as usize * n_rows + row;
    let is_active = row < n_rows && token < tokens;

    let mut value = 0.0f32;
    let mut radius = 0.0f32;
    if is_active {
        value = f32::cast_from(
            own[batch * own.stride(0)
                + head * own.stride(1)
                + token * own.stride(2)
                + d * own.stride(3)],
        );
        radius = f32::cast_from(r[head * r.stride(0) + d * r.stride(1)]);
    }
    let other_start = batch * other.stride(0) + head * other.stride(1);
    let by_stride = by_scores.stride(comptime!(5 - own_axis));
    let by_start = batch * by_scores.stride(0)
        + head * by_scores.stride(1)
        + token * by_scores.stride(own_axis);

    let mut by_value = 0.0f32;
    let mut by_radius = 0.0f32;
    let mut first = 0usize;
    while first < tokens {
        // All units must have finished reading the previous tokens.
        sync_cube();
        let n_here = min(n_staged, tokens - first);
        let mut i = unit;
        while i < n_here * d_head {
            staged[i] = f32::cast_from(
                other[other_start
                    + (first + i / d_head) * other.stride(2)
                    + i % d_head * other.stride(3)],
            );
            i += comptime!(UNITS);
        }
        sync_cube();
        if is_active {
            for j in 0..n_here {
                let by_score = f32::cast_from(by_scores[by_start + (first + j) * by_stride]);
                if by_score != 0.0f32 {
                    let apart = value - staged[j * d_head + d];
                    let by = by_score * slope(apart * radius);
                    by_value += by;
                    by_radius = fma(by, apart, by_radius);
                }
            }
        }
        first += n_staged;
    }
    if is_active {
        let at = batch * by_own.stride(0)
            + head * by_own.stride(1)
            + token * by_own.stride(2)
            + d * by_own.stride(3);
        by_own[at] = F::cast_from(power * radius * by_value);
    }

    #[comptime]
    if let ComptimeOption::Some(by_r) = by_r {
        sync_cube();
        staged[unit] = power * by_radius;
        sync_cube();
        if unit < d_head {
            let mut sum = 0.0f32;
            for row in 0..n_rows {
                sum += staged[row * d_head + unit];
            }
            let at = batch * by_r.stride(0)
                + CUBE_POS_Y as usize * by_r.stride(1)
                + head * by_r.stride(2)
                + unit * by_r.stride(3);
            by_r[at] = sum;
        }
    }
}

/// Sums the parts of the gradient of `R` in an order that depends only on their number.
///
/// # Shapes
/// - `parts`: `[batch, cubes of a sequence, heads, d_head]`; `by_r`: `[heads, d_head]`
/// - cubes: `[heads, groups of SUMMED dimensions]`; units: [`UNITS`]
#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn radius_kernel<F: Float>(
    parts: &Tensor<f32>,
    by_r: &mut Tensor<F>,
    #[comptime] d_head: usize,
    #[define(F)] _dtype: ElemType,
) {
    let n_rows = comptime!(UNITS / SUMMED);
    let mut sums = Shared::<[f32]>::new_slice(UNITS);
    let unit = UNIT_POS as usize;
    let (row, column) = (unit / SUMMED, unit % SUMMED);
    let head = CUBE_POS_X as usize;
    let d = CUBE_POS_Y as usize * SUMMED + column;
    let n_groups = parts.shape(1);
    let n_parts = parts.shape(0) * n_groups;

    let mut sum = 0.0f32;
    if d < d_head {
        let mut part = row;
        while part < n_parts {
            let (batch, group) = (part / n_groups, part % n_groups);
            sum += parts[batch * parts.stride(0)
                + group * parts.stride(1)
                + head * parts.stride(2)
                + d * parts.stride(3)];
            part += n_rows;
        }
    }
    sums[unit] = sum;
    sync_cube();
    if row == 0 && d < d_head {
        let mut total = 0.0f32;
        for row in 0..n_rows {
            total += sums[row * SUMMED + column];
        }
        let at = head * by_r.stride(0) + d * by_r.stride(1);
        by_r[at] = F::cast_from(total);
    }
}
