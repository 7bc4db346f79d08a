//! The block's result.

use rayon::prelude::*;

use super::{Head, Parameters, Plan, Saved, probabilities, score::Compared};
use crate::buffer::Buffer;
use crate::matrix::{Into, Matrix, multiply, multiply_strided};
use crate::rows::{add_bias, add_residual, normalise};
use crate::scratch::with_scratch;

/// The block's result, and what [`backward`](super::backward) needs if `keep`.
pub(in crate::attention) fn forward(
    x: &[f32],
    parameters: Parameters<'_>,
    plan: &Plan,
    keep: bool,
) -> (Vec<f32>, Option<Saved>) {
    let d = parameters.width();
    let size = plan.tokens * d;
    let mut out = vec![0.0; x.len()];
    let kept = if keep { x.len() } else { 0 };
    let (mut qkv, mut mixed) = (Buffer::new(3 * kept), Buffer::new(kept));
    let sequences = out.par_chunks_mut(size).zip(x.par_chunks(size)).enumerate();
    if keep {
        sequences.zip(qkv.par_chunks_mut(3 * size)).zip(mixed.par_chunks_mut(size)).for_each(
            |(((i, (out, x)), qkv), mixed)| {
                sequence(i, x, parameters, plan, out, qkv, mixed);
            },
        );
    } else {
        sequences.for_each(|(i, (out, x))| {
            with_scratch([3 * size, size], |[qkv, mixed]| {
                sequence(i, x, parameters, plan, out, qkv, mixed);
            });
        });
    }
    (out, keep.then_some(Saved { qkv, mixed }))
}

fn sequence(
    sequence: usize,
    x: &[f32],
    parameters: Parameters<'_>,
    plan: &Plan,
    out: &mut [f32],
    qkv: &mut [f32],
    mixed: &mut [f32],
) {
    let (tokens, d) = (plan.tokens, parameters.width());
    let stride = plan.score_stride();
    let first_token = plan.first_token(sequence);
    with_scratch([tokens * d, tokens * stride, tokens * stride], |[normal, scores, dropped]| {
        normalise(x, parameters.norm_weight, parameters.norm_bias, normal);
        multiply(qkv, Into::Fresh, Matrix::new(normal, tokens, d), parameters.qkv());
        add_bias(qkv, parameters.qkv_bias);
        for head_idx in 0..plan.n_heads {
            let head = Head { tokens, d, d_head: d / plan.n_heads, head: head_idx };
            let r = &parameters.fourier_r[head.own_r(parameters.fourier_r)];
            plan.score.forward(Compared { head, qkv, first_token, r }, scores, stride);
            probabilities::softmax(scores, stride, first_token, plan.score_of_nothing());
            let probs = match plan.attention_mask {
                Some(mask) => {
                    let row = (sequence * plan.n_heads + head_idx) * tokens;
                    probabilities::drop(scores, stride, first_token, mask, row, dropped);
                    &*dropped
                }
                None => &*scores,
            };
            multiply_strided(
                &mut mixed[head_idx * head.d_head..],
                d,
                Into::Fresh,
                1.0,
                Matrix::strided(probs, tokens, tokens, stride),
                head.part(qkv, 2),
            );
        }
        multiply(out, Into::Fresh, Matrix::new(mixed, tokens, d), parameters.projection());
        let bias = parameters.projection_bias;
        add_residual(out, x, bias, plan.residual_mask, sequence * tokens);
    });
}
