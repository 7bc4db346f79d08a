//! The two kernels of the backward pass: see [the derivation](super).

use cubecl::prelude::*;

use super::{
    Numbers, Sizes, UNITS, dot_with, factor, kept, key_of, part_elements, part_of_score, place,
    radius_of, sees, stage, start_of, whole, whole_scores,
};
use crate::fourier_scores::sinc::cube::slope;

/// The gradient of queries, `D` of each query, and each cube's part of the gradient of `R`.
///
/// # Shapes
/// - `qkv`, `out`, `norms`: see [`forward_kernel`](super::forward::forward_kernel); `by_out`: like `out`
/// - `by_qkv`: like `qkv`; queries' part only, 0 for tokens without a query
/// - `dots`: `[batch, heads, queries]`; `by_r`: `[batch, groups, heads, d_head]`
/// - cubes: `[batch · heads, groups of tokens]`; units: slices of the group's tokens
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn by_queries_kernel<F: Float>(
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
    let out_at =
        ((batch * n_queries + query) * comptime!(sizes.heads) + head) * d_head + slice * width;
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
                let by_p =
                    if is_cut { by_weight[j] } else { dot_with(&g, &values, j * d_head, width) };
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
pub(crate) fn by_keys_kernel<F: Float>(
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
                q_value = f32::cast_from(
                    qkv[place(batch * tokens + token, 0usize, head, i % d_head, sizes)],
                );
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
