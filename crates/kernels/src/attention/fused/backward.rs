//! Gradients of the block.

use rayon::prelude::*;

use super::{Head, Parameters, Plan, Products, Saved, probabilities, score::Compared};
use crate::Queries;
use crate::buffer::Buffer;
use crate::matrix::{Into, Matrix, multiply_panels, multiply_strided};
use crate::outer::add_outer;
use crate::rows::{add_rows, apply_mask, normalise, normalise_backward};
use crate::scratch::with_scratch;
use crate::simd::{sum, vectorised};

/// Tokens whose gradients are held at a time, about, for the weight gradients.
const TOKENS_HELD: usize = 1536;

/// Gradients by `x` and by the parameters in the order of [`Parameters`], that by `R` apart.
pub(in crate::attention) fn backward(
    x: &[f32],
    parameters: Parameters<'_>,
    plan: &Plan,
    saved: &Saved,
    gradient: &[f32],
) -> ([Vec<f32>; 7], Vec<f32>) {
    let d = parameters.width();
    let products = Products::backward(parameters);
    let [size, size_q] = [plan.tokens, plan.n_queries()].map(|rows| plan.group() * rows * d);
    let mut by_x = vec![0.0; x.len()];
    let mut by_q_weight = vec![0.0; d * d];
    let mut by_kv_weight = vec![0.0; 2 * d * d];
    let mut by_projection = vec![0.0; d * d];
    // Norm weight, norm bias, projection bias, bias of queries, of keys and values, R.
    let mut by_vectors = vec![0.0; 6 * d + parameters.fourier_r.len()];

    let groups = plan.batch.div_ceil(plan.group());
    let held = (TOKENS_HELD / (plan.group() * plan.tokens)).clamp(plan.group(), groups);
    let mut memory = Held::new(plan, held * size, held * size_q);
    for first in (0..groups).step_by(held) {
        let part = first * size..((first + held) * size).min(x.len());
        let part_q = first * size_q..((first + held) * size_q).min(gradient.len());
        let mut sums = vec![0.0; held.min(groups - first) * by_vectors.len()];
        let memory = memory.first(plan, part.len(), part_q.len());
        let of_queries = gradient[part_q.clone()]
            .par_chunks(size_q)
            .zip(saved.q[part_q.clone()].par_chunks(size_q))
            .zip(saved.mixed[part_q.clone()].par_chunks(size_q))
            .zip(memory.masked.par_chunks_mut(size_q))
            .zip(memory.by_q.par_chunks_mut(size_q));
        let all = x[part.clone()]
            .par_chunks(size)
            .zip(saved.kv[2 * part.start..2 * part.end].par_chunks(2 * size))
            .zip(by_x[part].par_chunks_mut(size))
            .zip(memory.normal.par_chunks_mut(size))
            .zip(memory.by_kv.par_chunks_mut(2 * size));
        of_queries.zip(all).zip(sums.par_chunks_mut(by_vectors.len())).enumerate().for_each(
            |(i, ((of_queries, all), sums))| {
                let ((((gradient, q), mixed), masked), by_q) = of_queries;
                let ((((x, kv), by_x), normal), by_kv) = all;
                let work = Group { first: (first + i) * plan.group(), x, q, kv, mixed, gradient };
                let leaves = Leaves { by_x, normal, masked, by_q, by_kv };
                work.backward(parameters, &products, plan, leaves, sums);
            },
        );
        add_rows(&sums, &mut by_vectors);
        let normal_q = plan.queries.pick(memory.normal, d, memory.normal_q);
        let (rows, rows_q) = (memory.normal.len() / d, memory.masked.len() / d);
        add_outer(&mut by_q_weight, normal_q, memory.by_q, rows_q);
        add_outer(&mut by_kv_weight, memory.normal, memory.by_kv, rows);
        add_outer(&mut by_projection, &saved.mixed[part_q], memory.masked, rows_q);
    }

    let by_r = by_vectors.split_off(6 * d);
    let by_qkv_bias = by_vectors.split_off(3 * d);
    let by_projection_bias = by_vectors.split_off(2 * d);
    let by_norm_bias = by_vectors.split_off(d);
    let by_norm_weight = by_vectors;
    let by_qkv_weight = by_q_weight
        .chunks_exact(d)
        .zip(by_kv_weight.chunks_exact(2 * d))
        .flat_map(|(q, kv)| q.iter().chain(kv))
        .copied()
        .collect();
    let by_parameters = [
        by_x,
        by_norm_weight,
        by_norm_bias,
        by_qkv_weight,
        by_qkv_bias,
        by_projection,
        by_projection_bias,
    ];
    (by_parameters, by_r)
}

/// What the groups of one part leave for the weight gradients.
struct Held {
    normal: Buffer,
    normal_q: Buffer,
    masked: Buffer,
    by_q: Buffer,
    by_kv: Buffer,
}

struct HeldRows<'a> {
    /// Layer norm of `x`.
    normal: &'a mut [f32],
    /// Room for its rows at the queries.
    normal_q: &'a mut [f32],
    /// The gradient after dropout.
    masked: &'a mut [f32],
    /// The gradient by queries.
    by_q: &'a mut [f32],
    /// The gradient by keys and values.
    by_kv: &'a mut [f32],
}

impl Held {
    /// For this many elements of `x` and of the result.
    fn new(plan: &Plan, elements: usize, elements_q: usize) -> Self {
        Self {
            normal: Buffer::new(elements),
            normal_q: Buffer::new(plan.queries.memory(elements)),
            masked: Buffer::new(elements_q),
            by_q: Buffer::new(elements_q),
            by_kv: Buffer::new(2 * elements),
        }
    }

    fn first(&mut self, plan: &Plan, elements: usize, elements_q: usize) -> HeldRows<'_> {
        HeldRows {
            normal: &mut self.normal[..elements],
            normal_q: &mut self.normal_q[..plan.queries.memory(elements)],
            masked: &mut self.masked[..elements_q],
            by_q: &mut self.by_q[..elements_q],
            by_kv: &mut self.by_kv[..2 * elements],
        }
    }
}

/// A few sequences from `first` on, and what is known of them.
struct Group<'a> {
    first: usize,
    x: &'a [f32],
    q: &'a [f32],
    kv: &'a [f32],
    mixed: &'a [f32],
    gradient: &'a [f32],
}

/// Where results of a group go; see [`HeldRows`].
struct Leaves<'a> {
    by_x: &'a mut [f32],
    normal: &'a mut [f32],
    masked: &'a mut [f32],
    by_q: &'a mut [f32],
    by_kv: &'a mut [f32],
}

impl Group<'_> {
    /// Fills what `leaves` holds, and adds to the group's part of the vectors' gradients.
    fn backward(
        &self,
        parameters: Parameters<'_>,
        products: &Products,
        plan: &Plan,
        leaves: Leaves<'_>,
        sums: &mut [f32],
    ) {
        let (n_queries, d) = (plan.n_queries(), parameters.width());
        let (rows, rows_q) = (self.x.len() / d, self.gradient.len() / d);
        let (by_norm_weight, sums) = sums.split_at_mut(d);
        let (by_norm_bias, sums) = sums.split_at_mut(d);
        let (by_projection_bias, sums) = sums.split_at_mut(d);
        let (by_bias_q, sums) = sums.split_at_mut(d);
        let (by_bias_kv, by_r) = sums.split_at_mut(2 * d);
        let Leaves { by_x, normal, masked, by_q, by_kv } = leaves;

        normalise(self.x, parameters.norm_weight, parameters.norm_bias, normal);
        apply_mask(self.gradient, d, plan.residual_mask, self.first * n_queries, masked);
        add_rows(masked, by_projection_bias);
        with_scratch([self.gradient.len()], |[by_mixed]| {
            let left = Matrix::new(masked, rows_q, d);
            multiply_panels(by_mixed, d, Into::Fresh, left, &products.projection);
            self.sequences(parameters, plan, by_mixed, by_q, by_kv, by_r);
        });
        add_rows(by_q, by_bias_q);
        add_rows(by_kv, by_bias_kv);
        with_scratch([self.x.len()], |[by_normal]| {
            let left = Matrix::new(by_kv, rows, 2 * d);
            multiply_panels(by_normal, d, Into::Fresh, left, &products.kv);
            let Queries { first, step } = plan.queries;
            let at_queries = &mut by_normal[first * d..];
            let left = Matrix::new(by_q, rows_q, d);
            multiply_panels(at_queries, step * d, Into::Sum, left, &products.q);
            let weight = parameters.norm_weight;
            normalise_backward(self.x, weight, by_normal, by_x, by_norm_weight, by_norm_bias);
        });
        let at_queries = by_x.chunks_exact_mut(d).skip(plan.queries.first);
        let at_queries = at_queries.step_by(plan.queries.step);
        for (by_x, gradient) in at_queries.zip(self.gradient.chunks_exact(d)) {
            add_rows(gradient, by_x);
        }
    }

    /// The gradients by queries, keys and values; adds to that by `R`.
    fn sequences(
        &self,
        parameters: Parameters<'_>,
        plan: &Plan,
        by_mixed: &[f32],
        by_q: &mut [f32],
        by_kv: &mut [f32],
        by_r: &mut [f32],
    ) {
        let d = parameters.width();
        let (size, size_q) = (plan.tokens * d, plan.n_queries() * d);
        for i in 0..self.x.len() / size {
            let of_queries = i * size_q..(i + 1) * size_q;
            let of_keys = 2 * i * size..2 * (i + 1) * size;
            let work = Sequence {
                index: self.first + i,
                q: &self.q[of_queries.clone()],
                kv: &self.kv[of_keys.clone()],
                mixed: &self.mixed[of_queries.clone()],
                by_mixed: &by_mixed[of_queries.clone()],
            };
            let (by_q, by_kv) = (&mut by_q[of_queries], &mut by_kv[of_keys]);
            for head in (0..plan.n_heads).map(|head| plan.head(head, d)) {
                let own = head.own_r(parameters.fourier_r);
                let r = &parameters.fourier_r[own.clone()];
                work.head(head, plan, r, [by_q, by_kv], &mut by_r[own]);
            }
        }
    }
}

/// One sequence, and the gradient by what its heads return.
struct Sequence<'a> {
    index: usize,
    q: &'a [f32],
    kv: &'a [f32],
    mixed: &'a [f32],
    by_mixed: &'a [f32],
}

impl Sequence<'_> {
    /// The gradient by one head's queries, keys and values; adds to that by its `R`.
    fn head(
        &self,
        head: Head,
        plan: &Plan,
        r: &[f32],
        [by_q, by_kv]: [&mut [f32]; 2],
        by_r: &mut [f32],
    ) {
        let (tokens, n_queries, stride) = (head.tokens, head.n_queries(), plan.score_stride());
        let visible = plan.visible(self.index);
        let row = (self.index * plan.n_heads + head.head) * n_queries;
        let sizes = [n_queries * stride, n_queries * stride, n_queries];
        with_scratch(sizes, |[probs, other, inner]| {
            let Self { q, kv, .. } = *self;
            let compared = Compared { head, q, kv, first_token: visible.first_token, r };
            plan.score.forward(compared, probs, stride);
            probabilities::softmax(probs, stride, visible, plan.score_of_nothing());
            let dropped = match plan.attention_mask {
                Some(mask) => {
                    probabilities::drop(probs, stride, visible, mask, row, other);
                    &*other
                }
                None => &*probs,
            };
            let by_head = head.of_queries(self.by_mixed);
            multiply_strided(
                &mut by_kv[head.d + head.start()..],
                2 * head.d,
                Into::Fresh,
                1.0,
                Matrix::strided(dropped, n_queries, tokens, stride).transposed(),
                by_head,
            );

            let gradient = other;
            let v = head.values(kv);
            multiply_strided(gradient, stride, Into::Fresh, 1.0, by_head, v.transposed());
            inner_products(self.mixed, self.by_mixed, head, inner);
            let mask = plan.attention_mask;
            probabilities::softmax_backward(probs, gradient, stride, visible, mask, row, inner);
            plan.score.backward(compared, gradient, stride, [by_q, by_kv], by_r);
        });
    }
}

vectorised! {
    /// `Σ_c mixed[i, c] · by_mixed[i, c]` over a head's columns.
    fn inner_products(mixed: &[f32], by_mixed: &[f32], head: Head, into: &mut [f32]) {
        for (i, into) in into.iter_mut().enumerate() {
            let start = i * head.d + head.start();
            let mixed = &mixed[start..start + head.d_head];
            let by_mixed = &by_mixed[start..start + head.d_head];
            *into = sum([mixed, by_mixed], |[mixed, by_mixed]| mixed * by_mixed);
        }
    }
}
