//! Causal attention on a GPU: scores and probabilities exist only in registers.
//!
//! With scores `z_ij`, the largest `Z_i` of a query, `S_i = Σ_j exp(z_ij − Z_i)`,
//! `p_ij = exp(z_ij − Z_i) / S_i`, dropout's factors `m_ij` and `o_i = Σ_j m_ij p_ij v_j`. **Backward**, given `g_i = do_i`:
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

use cubecl::prelude::*;

use crate::fourier_scores::cube::sinc::{ln_of_mantissa, slope, square};
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

/// The output of attention, and `Z` and `1 / S` of each query.
///
/// # Shapes
/// - `qkv`: `[batch, tokens, 3, heads, d_head]`; `r`: `[heads, d_head]`; `first_token`: `[batch]`
/// - `step_seed`: `[2]`
/// - `out`: `[batch, queries, heads, d_head]`; `norms`: `[batch, heads, queries, 2]`
/// - cubes: `[batch · heads, groups of queries]`; units: slices of the group's queries
#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn forward_kernel<F: Float>(
    qkv: &Tensor<F>,
    r: &Tensor<f32>,
    first_token: &Tensor<i32>,
    step_seed: &Tensor<u32>,
    out: &mut Tensor<F>,
    norms: &mut Tensor<f32>,
    numbers: Numbers,
    #[comptime] sizes: Sizes,
    #[define(F)] _dtype: ElemType,
) {
    let width = comptime!(sizes.slice());
    let slices = comptime!(sizes.slices());
    let staged = comptime!(sizes.staged());
    let is_cut = comptime!(slices > 1);
    let d_head = comptime!(sizes.d_head);
    let tokens = numbers.tokens as usize;
    let query_step = numbers.step as usize;
    let n_queries = tokens / query_step;
    let batch = CUBE_POS_X as usize / comptime!(sizes.heads);
    let head = CUBE_POS_X as usize % comptime!(sizes.heads);
    let unit = UNIT_POS as usize;
    let (own, slice) = (unit / slices, unit % slices);
    let per_cube = comptime!(sizes.own());
    let query = CUBE_POS_Y as usize * per_cube + own;
    let is_query = own < per_cube && query < n_queries;
    let query = min(query, n_queries - 1);
    let token = numbers.first as usize + query * query_step;
    let start = start_of(first_token, batch, sizes);

    let mut keys = Shared::<[f32]>::new_slice(comptime!(staged * d_head));
    let mut values = Shared::<[f32]>::new_slice(comptime!(staged * d_head));
    let mut parts = Shared::<[f32]>::new_slice(comptime!(part_elements(sizes)));

    let mut q = Array::<f32>::new(width);
    let mut radius = Array::<f32>::new(width);
    let mut sum = Array::<f32>::new(width);
    let at = place(batch * tokens + token, 0usize, head, slice * width, sizes);
    #[unroll]
    for d in 0..width {
        q[d] = f32::cast_from(qkv[at + d]);
        radius[d] = radius_of(r, head * d_head + slice * width + d, sizes);
        sum[d] = 0.0f32;
    }
    let least = comptime!(-1e30f32).runtime();
    let mut largest = least;
    let mut total = 0.0f32;
    if comptime!(sizes.power > 0) {
        // A key with the weight epsilon and no value; without epsilon its weight is 0.
        largest = max(numbers.ln_epsilon, least);
        total = select(numbers.ln_epsilon > least, 1.0f32, 0.0f32);
    }
    let key = key_of(step_seed, &numbers, (batch * comptime!(sizes.heads) + head) * n_queries + query, sizes);
    let (key_low, key_high) = (key.low, key.high);

    // The last query of the cube sees the most keys.
    let last_query = min((CUBE_POS_Y as usize + 1) * per_cube, n_queries) - 1;
    let end = numbers.first as usize + last_query * query_step + 1;
    let mut z = Array::<f32>::new(comptime!(sizes.held()));
    let mut first = 0usize;
    while first < end {
        sync_cube();
        stage(qkv, &mut keys, batch * tokens, tokens, first, 1usize, head, sizes);
        stage(qkv, &mut values, batch * tokens, tokens, first, 2usize, head, sizes);
        sync_cube();
        if is_cut {
            #[unroll]
            for j in 0..staged {
                z[j] = part_of_score(&q, &keys, j * d_head + slice * width, &radius, sizes);
            }
            whole_scores(&mut z, &mut parts, own, slice, sizes);
        }
        #[unroll(is_cut)]
        for j in 0..staged {
            let other = first + j;
            if sees(token, other, start) {
                let score = if is_cut {
                    z[j]
                } else {
                    part_of_score(&q, &keys, j * d_head, &radius, sizes)
                };
                let score = score * numbers.scale;
                if score > largest {
                    let shrunk = (largest - score).exp();
                    total *= shrunk;
                    #[unroll]
                    for d in 0..width {
                        sum[d] *= shrunk;
                    }
                    largest = score;
                }
                let weight = (score - largest).exp();
                total += weight;
                let weight = weight * kept(key_low, key_high, other as u32, &numbers, sizes);
                #[unroll]
                for d in 0..width {
                    sum[d] = fma(weight, values[j * d_head + slice * width + d], sum[d]);
                }
            }
        }
        first += staged;
    }
    if is_query {
        let at = ((batch * n_queries + query) * comptime!(sizes.heads) + head) * d_head + slice * width;
        #[unroll]
        for d in 0..width {
            out[at + d] = F::cast_from(sum[d] / total);
        }
        if slice == 0 {
            let row = (batch * comptime!(sizes.heads) + head) * n_queries + query;
            norms[2 * row] = largest;
            norms[2 * row + 1] = 1.0f32 / total;
        }
    }
}

/// The gradient of queries, `D` of each query, and each cube's part of the gradient of `R`.
///
/// # Shapes
/// - `qkv`, `out`, `norms`: see [`forward_kernel`]; `by_out`: like `out`
/// - `by_qkv`: like `qkv`; queries' part only, 0 for tokens without a query
/// - `dots`: `[batch, heads, queries]`; `by_r`: `[batch, groups, heads, d_head]`
/// - cubes: `[batch · heads, groups of tokens]`; units: slices of the group's tokens
#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn by_queries_kernel<F: Float>(
    qkv: &Tensor<F>,
    r: &Tensor<f32>,
    first_token: &Tensor<i32>,
    step_seed: &Tensor<u32>,
    out: &Tensor<F>,
    norms: &Tensor<f32>,
    by_out: &Tensor<F>,
    by_qkv: &mut Tensor<F>,
    dots: &mut Tensor<f32>,
    by_r: &mut Tensor<f32>,
    numbers: Numbers,
    #[comptime] sizes: Sizes,
    #[define(F)] _dtype: ElemType,
) {
    let width = comptime!(sizes.slice());
    let slices = comptime!(sizes.slices());
    let staged = comptime!(sizes.staged());
    let is_cut = comptime!(slices > 1);
    let d_head = comptime!(sizes.d_head);
    let tokens = numbers.tokens as usize;
    let query_step = numbers.step as usize;
    let n_queries = tokens / query_step;
    let batch = CUBE_POS_X as usize / comptime!(sizes.heads);
    let head = CUBE_POS_X as usize % comptime!(sizes.heads);
    let unit = UNIT_POS as usize;
    let (own, slice) = (unit / slices, unit % slices);
    let per_cube = comptime!(sizes.own());
    let token = CUBE_POS_Y as usize * per_cube + own;
    let is_token = own < per_cube && token < tokens;
    let token = min(token, tokens - 1);
    let is_query = is_token && token % query_step == numbers.first as usize;
    let query = token / query_step;
    let start = start_of(first_token, batch, sizes);

    let mut keys = Shared::<[f32]>::new_slice(comptime!(staged * d_head));
    let mut values = Shared::<[f32]>::new_slice(comptime!(staged * d_head));
    let mut parts = Shared::<[f32]>::new_slice(comptime!(part_elements(sizes)));

    let mut q = Array::<f32>::new(width);
    let mut g = Array::<f32>::new(width);
    let mut radius = Array::<f32>::new(width);
    let mut by_q = Array::<f32>::new(width);
    let mut by_radius = Array::<f32>::new(width);
    let at = place(batch * tokens + token, 0usize, head, slice * width, sizes);
    let out_at = ((batch * n_queries + query) * comptime!(sizes.heads) + head) * d_head + slice * width;
    let mut dot = 0.0f32;
    #[unroll]
    for d in 0..width {
        q[d] = f32::cast_from(qkv[at + d]);
        g[d] = f32::cast_from(by_out[out_at + d]);
        dot = fma(g[d], f32::cast_from(out[out_at + d]), dot);
        radius[d] = radius_of(r, head * d_head + slice * width + d, sizes);
        by_q[d] = 0.0f32;
        by_radius[d] = 0.0f32;
    }
    let dot = whole(dot, &mut parts, own, slice, sizes);
    let row = (batch * comptime!(sizes.heads) + head) * n_queries + query;
    let largest = norms[2 * row];
    let over_sum = norms[2 * row + 1];
    let key = key_of(step_seed, &numbers, row, sizes);
    let (key_low, key_high) = (key.low, key.high);

    let end = min((CUBE_POS_Y as usize + 1) * per_cube, tokens);
    let mut z = Array::<f32>::new(comptime!(sizes.held()));
    let mut by_weight = Array::<f32>::new(comptime!(sizes.held()));
    let mut first = 0usize;
    while first < end {
        sync_cube();
        stage(qkv, &mut keys, batch * tokens, tokens, first, 1usize, head, sizes);
        stage(qkv, &mut values, batch * tokens, tokens, first, 2usize, head, sizes);
        sync_cube();
        if is_cut {
            #[unroll]
            for j in 0..staged {
                let from = j * d_head + slice * width;
                z[j] = part_of_score(&q, &keys, from, &radius, sizes);
                by_weight[j] = dot_with(&g, &values, from, width);
            }
            whole_scores(&mut z, &mut parts, own, slice, sizes);
            whole_scores(&mut by_weight, &mut parts, own, slice, sizes);
        }
        #[unroll(is_cut)]
        for j in 0..staged {
            let other = first + j;
            if is_query && sees(token, other, start) {
                let score = if is_cut {
                    z[j]
                } else {
                    part_of_score(&q, &keys, j * d_head, &radius, sizes)
                };
                let by_p = if is_cut { by_weight[j] } else { dot_with(&g, &values, j * d_head, width) };
                let p = (score * numbers.scale - largest).exp() * over_sum;
                let kept = kept(key_low, key_high, other as u32, &numbers, sizes);
                let by_score = p * (kept * by_p - dot);
                #[unroll]
                for d in 0..width {
                    let key = keys[j * d_head + slice * width + d];
                    if comptime!(sizes.power == 0) {
                        by_q[d] = fma(by_score, key, by_q[d]);
                    } else {
                        let apart = q[d] - key;
                        let by = by_score * slope(apart * radius[d]);
                        by_q[d] += by;
                        by_radius[d] = fma(by, apart, by_radius[d]);
                    }
                }
            }
        }
        first += staged;
    }
    if is_token {
        #[unroll]
        for d in 0..width {
            by_qkv[at + d] = F::cast_from(by_q[d] * factor(radius[d], &numbers, sizes));
        }
        if is_query && slice == 0 {
            dots[row] = dot;
        }
    }
    if comptime!(sizes.power > 0) {
        // The sum over the cube's tokens, one dimension of a slice after the other.
        let power = comptime!(sizes.power as f32).runtime();
        let group = (batch * CUBE_COUNT_Y as usize + CUBE_POS_Y as usize) * comptime!(sizes.heads);
        let mut sums = Shared::<[f32]>::new_slice(UNITS);
        #[unroll]
        for d in 0..width {
            sync_cube();
            sums[unit] = by_radius[d];
            sync_cube();
            if unit < slices {
                let mut sum = 0.0f32;
                for token in 0..per_cube {
                    sum += sums[token * slices + unit];
                }
                by_r[(group + head) * d_head + unit * width + d] = power * sum;
            }
        }
    }
}

/// The gradients of keys and values.
///
/// # Shapes
/// - see [`by_queries_kernel`]; `by_qkv`: the parts of keys and values
/// - cubes: `[batch · heads, groups of tokens]`; units: slices of the group's tokens
#[cube(launch_unchecked, address_type = "dynamic")]
pub(super) fn by_keys_kernel<F: Float>(
    qkv: &Tensor<F>,
    r: &Tensor<f32>,
    first_token: &Tensor<i32>,
    step_seed: &Tensor<u32>,
    norms: &Tensor<f32>,
    by_out: &Tensor<F>,
    dots: &Tensor<f32>,
    by_qkv: &mut Tensor<F>,
    numbers: Numbers,
    #[comptime] sizes: Sizes,
    #[define(F)] _dtype: ElemType,
) {
    let width = comptime!(sizes.slice());
    let slices = comptime!(sizes.slices());
    let staged = comptime!(sizes.staged());
    let is_cut = comptime!(slices > 1);
    let d_head = comptime!(sizes.d_head);
    let tokens = numbers.tokens as usize;
    let query_step = numbers.step as usize;
    let n_queries = tokens / query_step;
    let heads = comptime!(sizes.heads);
    let batch = CUBE_POS_X as usize / heads;
    let head = CUBE_POS_X as usize % heads;
    let unit = UNIT_POS as usize;
    let (own, slice) = (unit / slices, unit % slices);
    let per_cube = comptime!(sizes.own());
    let token = CUBE_POS_Y as usize * per_cube + own;
    let is_token = own < per_cube && token < tokens;
    let token = min(token, tokens - 1);
    let start = start_of(first_token, batch, sizes);

    let mut queries = Shared::<[f32]>::new_slice(comptime!(staged * d_head));
    let mut gradients = Shared::<[f32]>::new_slice(comptime!(staged * d_head));
    let mut parts = Shared::<[f32]>::new_slice(comptime!(part_elements(sizes)));
    let mut all_largest = Shared::<[f32]>::new_slice(staged);
    let mut over_sums = Shared::<[f32]>::new_slice(staged);
    let mut all_dots = Shared::<[f32]>::new_slice(staged);
    let mut lows = Shared::<[u32]>::new_slice(staged);
    let mut highs = Shared::<[u32]>::new_slice(staged);

    let mut k = Array::<f32>::new(width);
    let mut v = Array::<f32>::new(width);
    let mut radius = Array::<f32>::new(width);
    let mut by_k = Array::<f32>::new(width);
    let mut by_v = Array::<f32>::new(width);
    let k_at = place(batch * tokens + token, 1usize, head, slice * width, sizes);
    let v_at = place(batch * tokens + token, 2usize, head, slice * width, sizes);
    #[unroll]
    for d in 0..width {
        k[d] = f32::cast_from(qkv[k_at + d]);
        v[d] = f32::cast_from(qkv[v_at + d]);
        radius[d] = radius_of(r, head * d_head + slice * width + d, sizes);
        by_k[d] = 0.0f32;
        by_v[d] = 0.0f32;
    }

    let mut z = Array::<f32>::new(comptime!(sizes.held()));
    let mut by_weight = Array::<f32>::new(comptime!(sizes.held()));
    // The first token of the cube is seen by the most queries.
    let mut first = CUBE_POS_Y as usize * per_cube / query_step;
    while first < n_queries {
        sync_cube();
        let mut i = unit;
        while i < comptime!(staged * d_head) {
            let query = first + i / d_head;
            let mut q_value = 0.0f32;
            let mut g_value = 0.0f32;
            if query < n_queries {
                let token = numbers.first as usize + query * query_step;
                q_value = f32::cast_from(qkv[place(batch * tokens + token, 0usize, head, i % d_head, sizes)]);
                let at = ((batch * n_queries + query) * heads + head) * d_head + i % d_head;
                g_value = f32::cast_from(by_out[at]);
            }
            queries[i] = q_value;
            gradients[i] = g_value;
            i += CUBE_DIM as usize;
        }
        if unit < staged {
            let row = (batch * heads + head) * n_queries + min(first + unit, n_queries - 1);
            all_largest[unit] = norms[2 * row];
            over_sums[unit] = norms[2 * row + 1];
            all_dots[unit] = dots[row];
            let key = key_of(step_seed, &numbers, row, sizes);
            lows[unit] = key.low;
            highs[unit] = key.high;
        }
        sync_cube();
        if is_cut {
            #[unroll]
            for i in 0..staged {
                let from = i * d_head + slice * width;
                z[i] = part_of_score(&k, &queries, from, &radius, sizes);
                by_weight[i] = dot_with(&v, &gradients, from, width);
            }
            whole_scores(&mut z, &mut parts, own, slice, sizes);
            whole_scores(&mut by_weight, &mut parts, own, slice, sizes);
        }
        #[unroll(is_cut)]
        for i in 0..staged {
            let query = first + i;
            let of_query = numbers.first as usize + query * query_step;
            if query < n_queries && sees(of_query, token, start) {
                let score = if is_cut {
                    z[i]
                } else {
                    part_of_score(&k, &queries, i * d_head, &radius, sizes)
                };
                let by_p =
                    if is_cut { by_weight[i] } else { dot_with(&v, &gradients, i * d_head, width) };
                let p = (score * numbers.scale - all_largest[i]).exp() * over_sums[i];
                let kept = kept(lows[i], highs[i], token as u32, &numbers, sizes);
                let by_score = p * (kept * by_p - all_dots[i]);
                let p = p * kept;
                #[unroll]
                for d in 0..width {
                    let at = i * d_head + slice * width + d;
                    by_v[d] = fma(p, gradients[at], by_v[d]);
                    if comptime!(sizes.power == 0) {
                        by_k[d] = fma(by_score, queries[at], by_k[d]);
                    } else {
                        by_k[d] += by_score * slope((k[d] - queries[at]) * radius[d]);
                    }
                }
            }
        }
        first += staged;
    }
    if is_token {
        #[unroll]
        for d in 0..width {
            by_qkv[k_at + d] = F::cast_from(by_k[d] * factor(radius[d], &numbers, sizes));
            by_qkv[v_at + d] = F::cast_from(by_v[d]);
        }
    }
}

/// Elements of shared memory for parts of scores.
fn part_elements(sizes: Sizes) -> usize {
    if sizes.slices() == 1 { 1 } else { UNITS * sizes.staged() }
}

/// Place of the query (0), key (1) or value (2) of a row, a token of a sequence.
#[cube]
fn place(
    row: usize,
    of: usize,
    head: usize,
    d: usize,
    #[comptime] sizes: Sizes,
) -> usize {
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
        // mantissa · 2^exponent
        let mut mantissa = 1.0f32;
        let mut exponent = 0i32;
        #[unroll]
        for d in 0..width {
            let product = mantissa * square((own[d] - others[from + d]) * radius[d]);
            let bits = u32::reinterpret(product);
            exponent += i32::cast_from(bits >> 23) - 127i32;
            let next = f32::reinterpret((bits & 0x007f_ffffu32) | 0x3f80_0000u32);
            // A NaN stays NaN, although its bits are split.
            mantissa = select(product.is_nan(), product, next);
        }
        let exponent = f32::cast_from(exponent);
        fma(exponent, std::f32::consts::LN_2, ln_of_mantissa(mantissa))
    }
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
