//! Gradients of the block.

use rayon::prelude::*;

use super::{Head, Parameters, Plan, Saved, probabilities, score::Compared};
use crate::buffer::Buffer;
use crate::matrix::{Into, Matrix, multiply, multiply_strided};
use crate::outer::add_outer;
use crate::rows::{add_rows, apply_mask, normalise, normalise_backward};
use crate::scratch::with_scratch;
use crate::simd::{sum, vectorised};

/// Tokens whose gradients are held at a time, about, for the weight gradients.
const TOKENS_HELD: usize = 1536;
/// Sequences held are a multiple of this, which divides evenly among threads.
const EVEN: usize = 8;

/// Gradients by `x` and by the parameters in the order of [`Parameters`], that by `R` apart.
pub(in crate::attention) fn backward(
    x: &[f32],
    parameters: Parameters<'_>,
    plan: &Plan,
    saved: &Saved,
    gradient: &[f32],
) -> ([Vec<f32>; 7], Vec<f32>) {
    let d = parameters.width();
    let size = plan.tokens * d;
    let mut by_x = gradient.to_vec();
    let mut by_qkv_weight = vec![0.0; 3 * d * d];
    let mut by_projection = vec![0.0; d * d];
    // Norm weight, norm bias, projection bias, bias of queries, keys and values, R.
    let mut by_vectors = vec![0.0; 6 * d + parameters.fourier_r.len()];

    let held = (TOKENS_HELD / plan.tokens / EVEN * EVEN).clamp(EVEN, EVEN.max(plan.batch));
    let held = held.min(plan.batch);
    let mut normal = Buffer::new(held * size);
    let mut masked = Buffer::new(held * size);
    let mut by_qkv = Buffer::new(held * 3 * size);
    for first in (0..plan.batch).step_by(held) {
        let n = held.min(plan.batch - first);
        let part = first * size..(first + n) * size;
        let mut sums = vec![0.0; n * by_vectors.len()];
        x[part.clone()]
            .par_chunks(size)
            .zip(gradient[part.clone()].par_chunks(size))
            .zip(by_x[part.clone()].par_chunks_mut(size))
            .zip(normal[..n * size].par_chunks_mut(size))
            .zip(masked[..n * size].par_chunks_mut(size))
            .zip(by_qkv[..n * 3 * size].par_chunks_mut(3 * size))
            .zip(sums.par_chunks_mut(by_vectors.len()))
            .enumerate()
            .for_each(|(i, ((((((x, gradient), by_x), normal), masked), by_qkv), sums))| {
                let work = Sequence {
                    index: first + i,
                    x,
                    qkv: &saved.qkv[(first + i) * 3 * size..(first + i + 1) * 3 * size],
                    mixed: &saved.mixed[(first + i) * size..(first + i + 1) * size],
                    gradient,
                };
                work.backward(parameters, plan, by_x, normal, masked, by_qkv, sums);
            });
        add_rows(&sums, &mut by_vectors);
        let rows = n * plan.tokens;
        add_outer(&mut by_qkv_weight, &normal[..n * size], &by_qkv[..n * 3 * size], rows);
        add_outer(&mut by_projection, &saved.mixed[part], &masked[..n * size], rows);
    }

    let by_r = by_vectors.split_off(6 * d);
    let by_qkv_bias = by_vectors.split_off(3 * d);
    let by_projection_bias = by_vectors.split_off(2 * d);
    let by_norm_bias = by_vectors.split_off(d);
    let by_norm_weight = by_vectors;
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

/// One sequence and what is known of it.
struct Sequence<'a> {
    index: usize,
    x: &'a [f32],
    qkv: &'a [f32],
    mixed: &'a [f32],
    gradient: &'a [f32],
}

impl Sequence<'_> {
    /// Adds to `by_x`; leaves the layer norm, the gradient after dropout, the gradient by
    /// queries, keys and values; and the sequence's part of the vectors' gradients.
    #[allow(clippy::too_many_arguments)]
    fn backward(
        &self,
        parameters: Parameters<'_>,
        plan: &Plan,
        by_x: &mut [f32],
        normal: &mut [f32],
        masked: &mut [f32],
        by_qkv: &mut [f32],
        sums: &mut [f32],
    ) {
        let (tokens, d) = (plan.tokens, parameters.width());
        let (by_norm_weight, sums) = sums.split_at_mut(d);
        let (by_norm_bias, sums) = sums.split_at_mut(d);
        let (by_projection_bias, sums) = sums.split_at_mut(d);
        let (by_qkv_bias, by_r) = sums.split_at_mut(3 * d);

        normalise(self.x, parameters.norm_weight, parameters.norm_bias, normal);
        apply_mask(self.gradient, d, plan.residual_mask, self.index * tokens, masked);
        add_rows(masked, by_projection_bias);
        with_scratch([tokens * d], |[by_mixed]| {
            let projection = parameters.projection().transposed();
            multiply(by_mixed, Into::Fresh, Matrix::new(masked, tokens, d), projection);
            for head in 0..plan.n_heads {
                let head = Head { tokens, d, d_head: d / plan.n_heads, head };
                let own = head.own_r(parameters.fourier_r);
                let r = &parameters.fourier_r[own.clone()];
                self.head(head, plan, r, by_mixed, by_qkv, &mut by_r[own]);
            }
            add_rows(by_qkv, by_qkv_bias);
            // No longer needed: becomes the gradient by the layer norm.
            let by_normal = by_mixed;
            let qkv = parameters.qkv().transposed();
            multiply(by_normal, Into::Fresh, Matrix::new(by_qkv, tokens, 3 * d), qkv);
            normalise_backward(
                self.x,
                parameters.norm_weight,
                by_normal,
                by_x,
                by_norm_weight,
                by_norm_bias,
            );
        });
    }

    /// The gradient by one head's queries, keys and values; adds to that by its `R`.
    fn head(
        &self,
        head: Head,
        plan: &Plan,
        r: &[f32],
        by_mixed: &[f32],
        by_qkv: &mut [f32],
        by_r: &mut [f32],
    ) {
        let (tokens, stride) = (head.tokens, plan.score_stride());
        let first_token = plan.first_token(self.index);
        let row = (self.index * plan.n_heads + head.head) * tokens;
        let sizes = [tokens * stride, tokens * stride, tokens];
        with_scratch(sizes, |[probs, other, inner]| {
            let compared = Compared { head, qkv: self.qkv, first_token, r };
            plan.score.forward(compared, probs, stride);
            probabilities::softmax(probs, stride, first_token, plan.score_of_nothing());
            let dropped = match plan.attention_mask {
                Some(mask) => {
                    probabilities::drop(probs, stride, first_token, mask, row, other);
                    &*other
                }
                None => &*probs,
            };
            let by_head = head.columns(by_mixed);
            multiply_strided(
                &mut by_qkv[head.start(2)..],
                3 * head.d,
                Into::Fresh,
                1.0,
                Matrix::strided(dropped, tokens, tokens, stride).transposed(),
                by_head,
            );

            let gradient = other;
            let v = head.part(self.qkv, 2);
            multiply_strided(gradient, stride, Into::Fresh, 1.0, by_head, v.transposed());
            inner_products(self.mixed, by_mixed, head, inner);
            let mask = plan.attention_mask;
            probabilities::softmax_backward(probs, gradient, stride, first_token, mask, row, inner);
            plan.score.backward(compared, gradient, stride, by_qkv, by_r);
        });
    }
}

vectorised! {
    /// `Σ_c mixed[i, c] · by_mixed[i, c]` over a head's columns.
    fn inner_products(mixed: &[f32], by_mixed: &[f32], head: Head, into: &mut [f32]) {
        for (i, into) in into.iter_mut().enumerate() {
            let start = i * head.d + head.head * head.d_head;
            let mixed = &mixed[start..start + head.d_head];
            let by_mixed = &by_mixed[start..start + head.d_head];
            *into = sum(head.d_head, |c| mixed[c] * by_mixed[c]);
        }
    }
}
