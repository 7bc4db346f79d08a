//! Gradients of the block; the formulas are in the parent module.
//!
//! Each partition of the sequences has its own sums for the weights' gradients. They are added in
//! order at the end, so the result does not depend on the number of threads, to the bit.

use multiversion::multiversion;
use rayon::prelude::*;

use super::{
    AttentionParameters, AttentionPlan, HeadColumns, Products, SavedAttention, probabilities,
    score::Compared,
};
use crate::Queries;
use crate::buffer::Buffer;
use crate::matrix::{Accumulate, Matrix, multiply, multiply_panels, multiply_strided};
use crate::norm::{normalise, normalise_backward};
use crate::partitions::{PARTITIONS, add_partitions, take};
use crate::rows::{add_rows, apply_mask};
use crate::scratch::with_scratch;
use crate::simd::sum;

/// Gradients of `x` and of the parameters in the order of [`AttentionParameters`].
pub(in crate::attention) fn backward(
    x: &[f32],
    parameters: AttentionParameters<'_>,
    plan: &AttentionPlan,
    saved: &SavedAttention,
    gradient: &[f32],
) -> [Buffer; 8] {
    let d = parameters.width();
    let products = Products::backward(parameters);
    let [size, size_q] = [plan.tokens, plan.n_queries()].map(|rows| plan.group() * rows * d);
    let mut by_x = Buffer::new(x.len());
    let groups = plan.batch.div_ceil(plan.group()).div_ceil(PARTITIONS);
    let [part, part_q] = [size, size_q].map(|size| groups * size);
    let size_probs = plan.n_heads * plan.n_queries() * plan.score_stride();
    let length = 4 * d * d + 6 * d + parameters.fourier_r.len();
    let mut sums = Buffer::new(x.len().div_ceil(part) * length);
    let of_queries = gradient
        .par_chunks(part_q)
        .zip(saved.q.par_chunks(part_q))
        .zip(saved.mixed.par_chunks(part_q));
    let all = x.par_chunks(part).zip(saved.kv.par_chunks(2 * part)).zip(by_x.par_chunks_mut(part));
    of_queries.zip(all).zip(sums.par_chunks_mut(length)).enumerate().for_each(
        |(i, ((((gradient, q), mixed), ((x, kv), by_x)), sums))| {
            sums.fill(0.0);
            let mut sums = AttentionSums::new(sums, parameters);
            let of_queries =
                gradient.chunks(size_q).zip(q.chunks(size_q)).zip(mixed.chunks(size_q));
            let all = x.chunks(size).zip(kv.chunks(2 * size)).zip(by_x.chunks_mut(size));
            for (j, (((gradient, q), mixed), ((x, kv), by_x))) in of_queries.zip(all).enumerate() {
                let first = (i * groups + j) * plan.group();
                let probs =
                    if saved.probs.is_empty() { &[] } else { &saved.probs[first * size_probs..] };
                let work = SequenceGroup { first, x, q, kv, mixed, gradient, probs };
                work.backward(parameters, &products, plan, by_x, &mut sums);
            }
        },
    );

    let total = AttentionSums::new(add_partitions(&mut sums, length), parameters);
    let mut qkv_weight = Buffer::new(3 * d * d);
    let rows = total.q_weight.chunks_exact(d).zip(total.kv_weight.chunks_exact(2 * d));
    for (into, (q, kv)) in qkv_weight.chunks_exact_mut(3 * d).zip(rows) {
        into[..d].copy_from_slice(q);
        into[d..].copy_from_slice(kv);
    }
    let qkv_bias = [&*total.q_bias, &*total.kv_bias].concat();
    [
        by_x,
        Buffer::from(&*total.norm_weight),
        Buffer::from(&*total.norm_bias),
        qkv_weight,
        Buffer::from(&qkv_bias[..]),
        Buffer::from(&*total.projection_weight),
        Buffer::from(&*total.projection_bias),
        Buffer::from(&*total.r),
    ]
}

/// Gradients of the parameters over one partition of the sequences.
struct AttentionSums<'a> {
    norm_weight: &'a mut [f32],
    norm_bias: &'a mut [f32],
    /// `[d, d]`
    q_weight: &'a mut [f32],
    q_bias: &'a mut [f32],
    /// `[d, 2 d]`
    kv_weight: &'a mut [f32],
    kv_bias: &'a mut [f32],
    projection_weight: &'a mut [f32],
    projection_bias: &'a mut [f32],
    r: &'a mut [f32],
}

impl<'a> AttentionSums<'a> {
    fn new(memory: &'a mut [f32], parameters: AttentionParameters<'_>) -> Self {
        let (d, r) = (parameters.width(), parameters.fourier_r.len());
        let mut rest = memory;
        let lengths = [d, d, d * d, d, 2 * d * d, 2 * d, d * d, d, r];
        let [
            norm_weight,
            norm_bias,
            q_weight,
            q_bias,
            kv_weight,
            kv_bias,
            projection_weight,
            projection_bias,
            r,
        ] = lengths.map(|length| take(&mut rest, length));
        Self {
            norm_weight,
            norm_bias,
            q_weight,
            q_bias,
            kv_weight,
            kv_bias,
            projection_weight,
            projection_bias,
            r,
        }
    }
}

/// A few sequences, starting at `first`, with their saved values.
struct SequenceGroup<'a> {
    first: usize,
    x: &'a [f32],
    q: &'a [f32],
    kv: &'a [f32],
    mixed: &'a [f32],
    gradient: &'a [f32],
    /// Empty if probabilities are not kept.
    probs: &'a [f32],
}

impl SequenceGroup<'_> {
    /// Fills `by_x`, and adds to the gradients of the parameters.
    fn backward(
        &self,
        parameters: AttentionParameters<'_>,
        products: &Products,
        plan: &AttentionPlan,
        by_x: &mut [f32],
        sums: &mut AttentionSums<'_>,
    ) {
        let (n_queries, d) = (plan.n_queries(), parameters.width());
        let (all, some) = (self.x.len(), self.gradient.len());
        let (rows, rows_q) = (all / d, some / d);
        let sizes = [all, plan.queries.memory(all), some, some, some, 2 * all, all];
        with_scratch(sizes, |[normal, normal_q, masked, by_mixed, by_q, by_kv, by_normal]| {
            normalise(self.x, parameters.norm_weight, parameters.norm_bias, normal);
            apply_mask(self.gradient, d, plan.residual_mask, self.first * n_queries, masked);
            add_rows(masked, sums.projection_bias);
            let by_out = Matrix::new(masked, rows_q, d);
            let mixed = Matrix::new(self.mixed, rows_q, d).transposed();
            multiply(sums.projection_weight, Accumulate::Add, mixed, by_out);
            multiply_panels(by_mixed, d, Accumulate::Overwrite, by_out, &products.projection);
            self.sequences(parameters, plan, by_mixed, by_q, by_kv, sums.r);

            add_rows(by_q, sums.q_bias);
            add_rows(by_kv, sums.kv_bias);
            let (by_q, by_kv) = (Matrix::new(by_q, rows_q, d), Matrix::new(by_kv, rows, 2 * d));
            let normal_q = plan.queries.pick(normal, d, normal_q);
            let normal_q = Matrix::new(normal_q, rows_q, d).transposed();
            multiply(sums.q_weight, Accumulate::Add, normal_q, by_q);
            let normal = Matrix::new(normal, rows, d).transposed();
            multiply(sums.kv_weight, Accumulate::Add, normal, by_kv);

            multiply_panels(by_normal, d, Accumulate::Overwrite, by_kv, &products.kv);
            let Queries { first, step } = plan.queries;
            multiply_panels(
                &mut by_normal[first * d..],
                step * d,
                Accumulate::Add,
                by_q,
                &products.q,
            );
            by_x.fill(0.0);
            let [by_weight, by_bias] = [&mut *sums.norm_weight, &mut *sums.norm_bias];
            normalise_backward(self.x, parameters.norm_weight, by_normal, by_x, by_weight, by_bias);
        });
        let at_queries = by_x.chunks_exact_mut(d).skip(plan.queries.first);
        let at_queries = at_queries.step_by(plan.queries.step);
        for (by_x, gradient) in at_queries.zip(self.gradient.chunks_exact(d)) {
            add_rows(gradient, by_x);
        }
    }

    /// The gradients of queries, keys and values; adds to the gradient of `R`.
    fn sequences(
        &self,
        parameters: AttentionParameters<'_>,
        plan: &AttentionPlan,
        by_mixed: &[f32],
        by_q: &mut [f32],
        by_kv: &mut [f32],
        by_r: &mut [f32],
    ) {
        let d = parameters.width();
        let (size, size_q) = (plan.tokens * d, plan.n_queries() * d);
        let stride = plan.score_stride();
        for i in 0..self.x.len() / size {
            let of_queries = i * size_q..(i + 1) * size_q;
            let of_keys = 2 * i * size..2 * (i + 1) * size;
            let work = Sequence {
                index: self.first + i,
                q: &self.q[of_queries.clone()],
                kv: &self.kv[of_keys.clone()],
                mixed: &self.mixed[of_queries.clone()],
                by_mixed: &by_mixed[of_queries.clone()],
                probs: if self.probs.is_empty() {
                    &[]
                } else {
                    &self.probs[i * plan.n_heads * plan.n_queries() * stride..]
                },
            };
            let (by_q, by_kv) = (&mut by_q[of_queries], &mut by_kv[of_keys]);
            for head in (0..plan.n_heads).map(|head| plan.head(head, d)) {
                let range = head.start()..head.start() + head.d_head;
                let r = &parameters.fourier_r[range.clone()];
                work.head(head, plan, r, [by_q, by_kv], &mut by_r[range]);
            }
        }
    }
}

/// One sequence, and the gradient of its heads' output.
struct Sequence<'a> {
    index: usize,
    q: &'a [f32],
    kv: &'a [f32],
    mixed: &'a [f32],
    by_mixed: &'a [f32],
    /// Empty if probabilities are not kept.
    probs: &'a [f32],
}

impl Sequence<'_> {
    /// The gradients of one head's queries, keys and values; adds to the gradient of its `R`.
    fn head(
        &self,
        head: HeadColumns,
        plan: &AttentionPlan,
        r: &[f32],
        [by_q, by_kv]: [&mut [f32]; 2],
        by_r: &mut [f32],
    ) {
        let (tokens, n_queries, stride) = (head.tokens, head.n_queries(), plan.score_stride());
        let visible = plan.visible(self.index);
        let row = (self.index * plan.n_heads + head.head) * n_queries;
        let size = n_queries * stride;
        let again = if self.probs.is_empty() { size } else { 0 };
        with_scratch([again, size, n_queries], |[probs, other, inner]| {
            let Self { q, kv, .. } = *self;
            let compared = Compared { head, q, kv, first_token: visible.first_token, r };
            let probs = if self.probs.is_empty() {
                plan.score.forward(compared, probs, stride);
                probabilities::softmax(probs, stride, visible, plan.score_of_nothing());
                &*probs
            } else {
                &self.probs[head.head * size..][..size]
            };
            let dropped = match plan.attention_mask {
                Some(mask) => {
                    probabilities::drop(probs, stride, visible, mask, row, other);
                    &*other
                }
                None => probs,
            };
            let by_head = head.of_queries(self.by_mixed);
            multiply_strided(
                &mut by_kv[head.d + head.start()..],
                2 * head.d,
                Accumulate::Overwrite,
                1.0,
                Matrix::strided(dropped, n_queries, tokens, stride).transposed(),
                by_head,
            );

            let gradient = other;
            let v = head.values(kv);
            multiply_strided(gradient, stride, Accumulate::Overwrite, 1.0, by_head, v.transposed());
            inner_products(self.mixed, self.by_mixed, head, inner);
            let mask = plan.attention_mask;
            probabilities::softmax_backward(probs, gradient, stride, visible, mask, row, inner);
            plan.score.backward(compared, gradient, stride, [by_q, by_kv], by_r);
        });
    }
}

/// `Σ_c mixed[i, c] · by_mixed[i, c]` over a head's columns.
#[multiversion(targets = "simd")]
fn inner_products(mixed: &[f32], by_mixed: &[f32], head: HeadColumns, into: &mut [f32]) {
    for (i, into) in into.iter_mut().enumerate() {
        let start = i * head.d + head.start();
        let mixed = &mixed[start..start + head.d_head];
        let by_mixed = &by_mixed[start..start + head.d_head];
        *into = sum([mixed, by_mixed], |[mixed, by_mixed]| mixed * by_mixed);
    }
}
