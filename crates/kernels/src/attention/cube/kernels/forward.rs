//! The forward pass: see [the derivation](super).

use cubecl::prelude::*;

use super::{
    Numbers, Sizes, kept, key_of, part_elements, part_of_score, place, radius_of, sees, stage,
    start_of, whole_scores,
};

/// The output of attention, and `Z` and `1 / S` of each query.
///
/// # Shapes
/// - `qkv`: `[batch, tokens, 3, heads, d_head]`; `r`: `[heads, d_head]`; `first_token`: `[batch]`
/// - `step_seed`: `[2]`
/// - `out`: `[batch, queries, heads, d_head]`; `norms`: `[batch, heads, queries, 2]`
/// - cubes: `[batch · heads, groups of queries]`; units: slices of the group's queries
#[cube(launch_unchecked, address_type = "dynamic")]
pub(crate) fn forward_kernel<F: Float>(
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
    let key = key_of(
        step_seed,
        &numbers,
        (batch * comptime!(sizes.heads) + head) * n_queries + query,
        sizes,
    );
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
        let at =
            ((batch * n_queries + query) * comptime!(sizes.heads) + head) * d_head + slice * width;
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
