//! The block's result.

use rayon::prelude::*;

use super::{Parameters, Plan, Products, Saved, probabilities, score::Compared};
use crate::buffer::Buffer;
use crate::matrix::{Into, Matrix, multiply_panels, multiply_strided};
use crate::rows::{add_bias, add_residual, normalise};
use crate::scratch::with_scratch;

/// The block's result, and what [`backward`](super::backward) needs if `keep`.
pub(in crate::attention) fn forward(
    x: &[f32],
    parameters: Parameters<'_>,
    plan: &Plan,
    keep: bool,
) -> (Buffer, Option<Saved>) {
    let d = parameters.width();
    let products = Products::new(parameters);
    let [size, size_q] = [plan.tokens, plan.n_queries()].map(|rows| plan.group() * rows * d);
    let mut out = Buffer::new(plan.batch * plan.n_queries() * d);
    let kept = |elements| if keep { elements } else { 0 };
    let mut q = Buffer::new(kept(out.len()));
    let mut kv = Buffer::new(kept(2 * x.len()));
    let mut mixed = Buffer::new(kept(out.len()));
    let groups = out.par_chunks_mut(size_q).zip(x.par_chunks(size)).enumerate();
    if keep {
        groups
            .zip(q.par_chunks_mut(size_q))
            .zip(kv.par_chunks_mut(2 * size))
            .zip(mixed.par_chunks_mut(size_q))
            .for_each(|((((i, (out, x)), q), kv), mixed)| {
                group(i * plan.group(), x, parameters, &products, plan, out, [q, kv, mixed]);
            });
    } else {
        groups.for_each(|(i, (out, x))| {
            with_scratch([out.len(), 2 * x.len(), out.len()], |intermediate| {
                group(i * plan.group(), x, parameters, &products, plan, out, intermediate);
            });
        });
    }
    (out, keep.then_some(Saved { q, kv, mixed }))
}

/// A few sequences from `first` on. Leaves queries, keys and values, and what heads return.
fn group(
    first: usize,
    x: &[f32],
    parameters: Parameters<'_>,
    products: &Products,
    plan: &Plan,
    out: &mut [f32],
    [q, kv, mixed]: [&mut [f32]; 3],
) {
    let (tokens, n_queries, d) = (plan.tokens, plan.n_queries(), parameters.width());
    let (rows, rows_q) = (x.len() / d, out.len() / d);
    let picked = plan.queries.memory(x.len());
    with_scratch([x.len(), picked], |[normal, memory]| {
        normalise(x, parameters.norm_weight, parameters.norm_bias, normal);
        let left = Matrix::new(normal, rows, d);
        multiply_panels(kv, 2 * d, Into::Fresh, left, &products.kv);
        let left = Matrix::new(plan.queries.pick(normal, d, memory), rows_q, d);
        multiply_panels(q, d, Into::Fresh, left, &products.q);
    });
    let (bias_q, bias_kv) = parameters.qkv_bias.split_at(d);
    add_bias(q, bias_q);
    add_bias(kv, bias_kv);
    let sequences = q
        .chunks_exact(n_queries * d)
        .zip(kv.chunks_exact(2 * tokens * d))
        .zip(mixed.chunks_exact_mut(n_queries * d));
    for (i, ((q, kv), mixed)) in sequences.enumerate() {
        sequence(first + i, q, kv, parameters, plan, mixed);
    }
    let left = Matrix::new(mixed, rows_q, d);
    multiply_panels(out, d, Into::Fresh, left, &products.projection);
    with_scratch([picked], |[memory]| {
        let x = plan.queries.pick(x, d, memory);
        let bias = parameters.projection_bias;
        add_residual(out, x, bias, plan.residual_mask, first * n_queries);
    });
}

/// What the heads of one sequence return.
fn sequence(
    sequence: usize,
    q: &[f32],
    kv: &[f32],
    parameters: Parameters<'_>,
    plan: &Plan,
    mixed: &mut [f32],
) {
    let (tokens, n_queries, d) = (plan.tokens, plan.n_queries(), parameters.width());
    let stride = plan.score_stride();
    let visible = plan.visible(sequence);
    with_scratch([n_queries * stride, n_queries * stride], |[scores, dropped]| {
        for head_idx in 0..plan.n_heads {
            let head = plan.head(head_idx, d);
            let r = &parameters.fourier_r[head.own_r(parameters.fourier_r)];
            let compared = Compared { head, q, kv, first_token: visible.first_token, r };
            plan.score.forward(compared, scores, stride);
            probabilities::softmax(scores, stride, visible, plan.score_of_nothing());
            let probs = match plan.attention_mask {
                Some(mask) => {
                    let row = (sequence * plan.n_heads + head_idx) * n_queries;
                    probabilities::drop(scores, stride, visible, mask, row, dropped);
                    &*dropped
                }
                None => &*scores,
            };
            multiply_strided(
                &mut mixed[head.start()..],
                d,
                Into::Fresh,
                1.0,
                Matrix::strided(probs, n_queries, tokens, stride),
                head.values(kv),
            );
        }
    });
}
