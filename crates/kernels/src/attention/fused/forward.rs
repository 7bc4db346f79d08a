//! The block's result.

use rayon::prelude::*;

use super::{
    AttentionParameters, AttentionPlan, Products, SavedAttention, probabilities, score::Compared,
};
use crate::buffer::Buffer;
use crate::matrix::{Accumulate, Matrix, multiply_panels, multiply_strided};
use crate::norm::normalise;
use crate::partitions::take;
use crate::rows::{add_bias, add_residual};
use crate::scratch::with_scratch;

/// The block's result, and the values for [`super::backward()`] if `keep`.
pub(in crate::attention) fn forward(
    x: &[f32],
    parameters: AttentionParameters<'_>,
    plan: &AttentionPlan,
    keep: bool,
) -> (Buffer, Option<SavedAttention>) {
    let d = parameters.width();
    let products = Products::new(parameters);
    let [size, size_q] = [plan.tokens, plan.n_queries()].map(|rows| plan.group() * rows * d);
    let mut out = Buffer::new(plan.batch * plan.n_queries() * d);
    let kept = |elements| if keep { elements } else { 0 };
    let mut q = Buffer::new(kept(out.len()));
    let mut kv = Buffer::new(kept(2 * x.len()));
    let mut mixed = Buffer::new(kept(out.len()));
    let keep_probs = keep && plan.keeps_probs(d);
    let size_probs = plan.group() * plan.n_heads * plan.n_queries() * plan.score_stride();
    let n_groups = plan.batch.div_ceil(plan.group());
    let mut probs = Buffer::new(if keep_probs { n_groups * size_probs } else { 0 });
    let groups = out.par_chunks_mut(size_q).zip(x.par_chunks(size)).enumerate();
    if keep {
        groups
            .zip(q.par_chunks_mut(size_q))
            .zip(kv.par_chunks_mut(2 * size))
            .zip(mixed.par_chunks_mut(size_q))
            .zip(parts_or_nothing(&mut probs, size_probs, n_groups))
            .for_each(|(((((i, (out, x)), q), kv), mixed), probs)| {
                let leaves = Leaves { out, q, kv, mixed, probs };
                group(i * plan.group(), x, parameters, &products, plan, leaves);
            });
    } else {
        groups.for_each(|(i, (out, x))| {
            with_scratch([out.len(), 2 * x.len(), out.len()], |[q, kv, mixed]| {
                let leaves = Leaves { out, q, kv, mixed, probs: &mut [] };
                group(i * plan.group(), x, parameters, &products, plan, leaves);
            });
        });
    }
    (out, keep.then_some(SavedAttention { q, kv, mixed, probs }))
}

/// The parts of a buffer, or as many empty ones if it is empty.
fn parts_or_nothing(
    buffer: &mut [f32],
    size: usize,
    n: usize,
) -> impl IndexedParallelIterator<Item = &mut [f32]> {
    let is_empty = buffer.is_empty();
    let mut rest = buffer;
    let parts: Vec<&mut [f32]> =
        (0..n).map(|_| take(&mut rest, if is_empty { 0 } else { size })).collect();
    parts.into_par_iter()
}

/// Destinations of a group's results; see [`SavedAttention`].
struct Leaves<'a> {
    out: &'a mut [f32],
    q: &'a mut [f32],
    kv: &'a mut [f32],
    mixed: &'a mut [f32],
    /// Empty if probabilities are not kept.
    probs: &'a mut [f32],
}

/// A few sequences, starting at `first`.
fn group(
    first: usize,
    x: &[f32],
    parameters: AttentionParameters<'_>,
    products: &Products,
    plan: &AttentionPlan,
    leaves: Leaves<'_>,
) {
    let Leaves { out, q, kv, mixed, probs } = leaves;
    let (tokens, n_queries, d) = (plan.tokens, plan.n_queries(), parameters.width());
    let (rows, rows_q) = (x.len() / d, out.len() / d);
    let picked = plan.queries.memory(x.len());
    with_scratch([x.len(), picked], |[normal, memory]| {
        normalise(x, parameters.norm_weight, parameters.norm_bias, normal);
        let left = Matrix::new(normal, rows, d);
        multiply_panels(kv, 2 * d, Accumulate::Overwrite, left, &products.kv);
        let left = Matrix::new(plan.queries.pick(normal, d, memory), rows_q, d);
        multiply_panels(q, d, Accumulate::Overwrite, left, &products.q);
    });
    let (bias_q, bias_kv) = parameters.qkv_bias.split_at(d);
    add_bias(q, bias_q);
    add_bias(kv, bias_kv);
    let sequences = q
        .chunks_exact(n_queries * d)
        .zip(kv.chunks_exact(2 * tokens * d))
        .zip(mixed.chunks_exact_mut(n_queries * d));
    let mut probs = probs;
    let size_probs = probs.len() / plan.group();
    for (i, ((q, kv), mixed)) in sequences.enumerate() {
        let probs = take(&mut probs, size_probs);
        sequence(first + i, q, kv, parameters, plan, mixed, probs);
    }
    let left = Matrix::new(mixed, rows_q, d);
    multiply_panels(out, d, Accumulate::Overwrite, left, &products.projection);
    with_scratch([picked], |[memory]| {
        let x = plan.queries.pick(x, d, memory);
        let bias = parameters.projection_bias;
        add_residual(out, x, bias, plan.residual_mask, first * n_queries);
    });
}

/// The output of one sequence's heads.
fn sequence(
    sequence: usize,
    q: &[f32],
    kv: &[f32],
    parameters: AttentionParameters<'_>,
    plan: &AttentionPlan,
    mixed: &mut [f32],
    probs: &mut [f32],
) {
    let (tokens, n_queries, d) = (plan.tokens, plan.n_queries(), parameters.width());
    let stride = plan.score_stride();
    let visible = plan.visible(sequence);
    let size = n_queries * stride;
    let mut kept = probs;
    with_scratch([size, size], |[scores, dropped]| {
        for head_idx in 0..plan.n_heads {
            let scores = if kept.is_empty() { &mut *scores } else { take(&mut kept, size) };
            let head = plan.head(head_idx, d);
            let r = &parameters.fourier_r[head.start()..][..head.d_head];
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
                Accumulate::Overwrite,
                1.0,
                Matrix::strided(probs, n_queries, tokens, stride),
                head.values(kv),
            );
        }
    });
}
