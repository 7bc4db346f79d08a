//! Causal attention on a GPU: scores and probabilities exist only in registers.
//!
//! With scores `z_ij`, the largest `Z_i` of a query, `S_i = Σ_j exp(z_ij − Z_i)`,
//! `p_ij = exp(z_ij − Z_i) / S_i`, dropout's factors `m_ij` and `o_i = Σ_j m_ij p_ij v_j`.
//! **Backward**, given `g_i = do_i`:
//!
//! - `dv_j = Σ_i m_ij p_ij g_i`
//! - `dz_ij = p_ij (m_ij g_i · v_j − D_i)` with `D_i = Σ_j p_ij m_ij g_i · v_j = g_i · o_i`
//! - dot products `z_ij = c q_i · k_j`: `dq_i = c Σ_j dz_ij k_j`, `dk_j = c Σ_i dz_ij q_i`
//! - Fourier scores: see [`fourier_scores`](crate::fourier_scores()): the slope in each dimension
//!   instead of the other side's value.
//!
//! The forward pass keeps `Z_i` and `1 / S_i` for each query: `Z_i + ln S_i` alone would lose the
//! last bits of sums far from 1. The backward pass computes everything else again:
//! one kernel has a query for each unit and adds over keys, the other has a key for each unit and
//! adds over queries. So every sum has one order and needs no atomics.
//!
//! A head of more than [`SLICE`] dimensions is cut into slices. A unit has one slice of one token,
//! and the units of a token add their parts of a score in shared memory.

pub(super) mod backward;
pub(super) mod forward;

use cubecl::prelude::*;

use crate::fourier_scores::sinc::cube::{far_square, is_near, ln_of_mantissa, near_square};
use crate::mask::Place;
use crate::mask::cube::{Wide, hash, mask_seed, row_key};

/// Most dimensions of a unit: its values are in registers.
const SLICE: usize = 16;
/// Units of a cube.
pub(super) const UNITS: usize = 128;
/// Elements of shared memory for the tokens of the other side, 8 KiB for each of two values.
const STAGED: usize = 2048;
/// Most tokens of the other side in shared memory at the same time, for heads of one slice.
const MOST: usize = 64;
/// The same for heads of several slices: parts of scores are in registers, so loops are unrolled.
const MOST_OF_SLICES: usize = 8;

/// Constants of the kernels. (The number of tokens is none: it grows while an agent acts.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sizes {
    pub heads: usize,
    pub d_head: usize,
    /// The power of Fourier scores; 0: dot products.
    pub power: u32,
    pub has_padding: bool,
    pub has_dropout: bool,
}

impl Sizes {
    /// Dimensions of a unit: the largest divisor of the head's width up to [`SLICE`].
    pub const fn slice(self) -> usize {
        let mut slice = if self.d_head < SLICE { self.d_head } else { SLICE };
        while !self.d_head.is_multiple_of(slice) {
            slice -= 1;
        }
        slice
    }

    /// Units of a token.
    pub const fn slices(self) -> usize {
        self.d_head / self.slice()
    }

    /// Scores that are in registers at the same time.
    fn held(self) -> usize {
        if self.slices() == 1 { 1 } else { self.staged() }
    }

    /// Own tokens of a cube.
    pub fn own(self) -> usize {
        UNITS / self.slices()
    }

    /// Tokens of the other side in shared memory at the same time.
    pub fn staged(self) -> usize {
        let most = if self.slices() == 1 { MOST } else { MOST_OF_SLICES };
        most.min(STAGED / self.d_head).max(1)
    }

    /// Whether the kernels can compute heads of this size.
    pub fn are_possible(self) -> bool {
        self.slices() <= UNITS && self.d_head <= STAGED / 2
    }
}

/// The arguments of scores and dropout, equal for all kernels.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(super) struct Numbers {
    pub tokens: u32,
    /// Queries: tokens `first`, `first + step`, ….
    pub first: u32,
    pub step: u32,
    /// Factor of dot products, or of sums of logarithms of squares.
    pub scale: f32,
    /// Weight of one more key without a value, as a logarithm; used by Fourier scores.
    pub ln_epsilon: f32,
    /// Index of this dropout in the step.
    pub nth: u32,
    /// Elements whose hash lies below are dropped.
    pub threshold: u32,
    /// Factor of the other elements.
    pub kept: f32,
}

/// Elements of shared memory for parts of scores. Units beyond the last own token have a row too.
fn part_elements(sizes: Sizes) -> usize {
    if sizes.slices() == 1 { 1 } else { (UNITS + sizes.slices()) * sizes.staged() }
}

/// Place of the query (0), key (1) or value (2) of a row, a token of a sequence.
#[cube]
fn place(row: usize, of: usize, head: usize, d: usize, #[comptime] sizes: Sizes) -> usize {
    ((row * 3usize + of) * comptime!(sizes.heads) + head) * comptime!(sizes.d_head) + d
}

/// Copies keys (1) or values (2) of some tokens to shared memory; tokens beyond the last are 0.
#[cube]
fn stage<F: Float>(
    qkv: &Tensor<F>,
    into: &mut Shared<[f32]>,
    start: usize,
    tokens: usize,
    first: usize,
    of: usize,
    head: usize,
    #[comptime] sizes: Sizes,
) {
    let d_head = comptime!(sizes.d_head);
    let mut i = UNIT_POS as usize;
    while i < comptime!(sizes.staged() * sizes.d_head) {
        let token = first + i / d_head;
        let mut value = 0.0f32;
        if token < tokens {
            value = f32::cast_from(qkv[place(start + token, of, head, i % d_head, sizes)]);
        }
        into[i] = value;
        i += CUBE_DIM as usize;
    }
}

/// The first real token of a sequence.
#[cube]
fn start_of(first_token: &Tensor<i32>, batch: usize, #[comptime] sizes: Sizes) -> usize {
    let mut start = 0usize;
    if comptime!(sizes.has_padding) {
        start = first_token[batch] as usize;
    }
    start
}

/// Whether a query at `token` sees the key at `other`.
#[cube]
fn sees(token: usize, other: usize, start: usize) -> bool {
    other == token || (other < token && other >= start)
}

#[cube]
fn radius_of(r: &Tensor<f32>, at: usize, #[comptime] sizes: Sizes) -> f32 {
    let mut radius = 1.0f32;
    if comptime!(sizes.power > 0) {
        radius = r[at];
    }
    radius
}

/// The factor of a gradient of queries or keys.
#[cube]
fn factor(radius: f32, numbers: &Numbers, #[comptime] sizes: Sizes) -> f32 {
    let mut factor = numbers.scale;
    if comptime!(sizes.power > 0) {
        factor = comptime!(sizes.power as f32).runtime() * radius;
    }
    factor
}

/// The key of a row of dropout's mask.
#[cube]
fn key_of(
    step_seed: &Tensor<u32>,
    numbers: &Numbers,
    row: usize,
    #[comptime] sizes: Sizes,
) -> Wide {
    let mut low = 0u32;
    let mut high = 0u32;
    if comptime!(sizes.has_dropout) {
        let seed = mask_seed(step_seed, numbers.nth, comptime!(Place::Attention as u32).runtime());
        let key = row_key(seed, row as u32);
        low = key.low;
        high = key.high;
    }
    Wide { low, high }
}

/// Dropout's factor of one weight.
#[cube]
fn kept(low: u32, high: u32, column: u32, numbers: &Numbers, #[comptime] sizes: Sizes) -> f32 {
    let mut factor = 1.0f32;
    if comptime!(sizes.has_dropout) {
        let is_kept = hash(low, high, column) >> 8u32 >= numbers.threshold;
        factor = select(is_kept, numbers.kept, 0.0f32);
    }
    factor
}

#[cube]
fn dot_with(
    own: &Array<f32>,
    others: &Shared<[f32]>,
    from: usize,
    #[comptime] width: usize,
) -> f32 {
    let mut dot = 0.0f32;
    #[unroll]
    for d in 0..width {
        dot = fma(own[d], others[from + d], dot);
    }
    dot
}

/// The part of a score in the dimensions of one slice: of a dot product, or of the logarithm of a
/// product of squares.
#[cube]
fn part_of_score(
    own: &Array<f32>,
    others: &Shared<[f32]>,
    from: usize,
    radius: &Array<f32>,
    #[comptime] sizes: Sizes,
) -> f32 {
    let width = comptime!(sizes.slice());
    if comptime!(sizes.power == 0) {
        dot_with(own, others, from, width)
    } else {
        // product · 2^exponent. Sixteen near squares are above 1e-11, and one far square is above
        // 1e-26, after which the product is in [1, 2) again.
        let mut product = 1.0f32;
        let mut exponent = 0i32;
        #[unroll]
        for d in 0..width {
            let x = (own[d] - others[from + d]) * radius[d];
            if is_near(x) {
                product *= near_square(x);
            } else {
                product *= far_square(x);
                exponent += exponent_of(product);
                product = mantissa_of(product);
            }
        }
        let exponent = f32::cast_from(exponent + exponent_of(product));
        fma(exponent, std::f32::consts::LN_2, ln_of_mantissa(mantissa_of(product)))
    }
}

#[cube]
fn exponent_of(x: f32) -> i32 {
    i32::cast_from(u32::reinterpret(x) >> 23) - 127i32
}

/// In [1, 2). A NaN stays NaN, although its bits are split.
#[cube]
fn mantissa_of(x: f32) -> f32 {
    let mantissa = f32::reinterpret((u32::reinterpret(x) & 0x007f_ffffu32) | 0x3f80_0000u32);
    select(x.is_nan(), x, mantissa)
}

/// Adds the parts of scores of all slices of a token.
#[cube]
fn whole_scores(
    z: &mut Array<f32>,
    parts: &mut Shared<[f32]>,
    own: usize,
    slice: usize,
    #[comptime] sizes: Sizes,
) {
    let slices = comptime!(sizes.slices());
    let staged = comptime!(sizes.staged());
    let row = own * slices;
    sync_cube();
    #[unroll]
    for j in 0..staged {
        parts[(row + slice) * staged + j] = z[j];
    }
    sync_cube();
    #[unroll]
    for j in 0..staged {
        let mut sum = 0.0f32;
        for slice in 0..slices {
            sum += parts[(row + slice) * staged + j];
        }
        z[j] = sum;
    }
}

/// Adds one value of all slices of a token.
#[cube]
fn whole(
    value: f32,
    parts: &mut Shared<[f32]>,
    own: usize,
    slice: usize,
    #[comptime] sizes: Sizes,
) -> f32 {
    let slices = comptime!(sizes.slices());
    let mut sum = value;
    if comptime!(slices > 1) {
        sync_cube();
        parts[own * slices + slice] = value;
        sync_cube();
        sum = 0.0f32;
        for slice in 0..slices {
            sum += parts[own * slices + slice];
        }
    }
    sum
}
