//! The attention block in burn tensors.

use burn::tensor::{Bool, Device, Int, Tensor};

use super::{AttentionOptions, AttentionWeights, Score};
use crate::fourier_scores::{fourier_scores, probabilities};
use crate::mask::Place;
use crate::norm::layer_norm;
use crate::{Form, Queries};

pub(super) fn attention(
    x: Tensor<3>,
    weights: AttentionWeights,
    options: AttentionOptions<'_>,
) -> Tensor<3> {
    let [batch, tokens, d] = x.dims();
    let (n_heads, queries) = (options.n_heads, options.queries);
    let n_queries = queries.count(tokens);
    let d_head = d / n_heads;
    let form = options.form;

    let normal = layer_norm(x.clone(), weights.norm_weight, weights.norm_bias, Form::Reference);
    let linear = |x: Tensor<3>, first: usize| {
        let weight = weights.qkv_weight.clone().narrow(1, first * d, d);
        let bias = weights.qkv_bias.clone().narrow(0, first * d, d);
        let [_, rows, _] = x.dims();
        let out = form.product(x, weight.unsqueeze()) + bias.expand([batch, rows, d]);
        out.reshape([batch, rows, n_heads, d_head]).swap_dims(1, 2)
    };
    let (k, v) = (linear(normal.clone(), 1), linear(normal.clone(), 2));

    let (scores, epsilon) = match options.score {
        // Multiplied by the reciprocal, because burn 0.22 rounds the divisor to f32 in
        // `div_scalar`'s backward.
        Score::DotProduct => {
            let q = linear(queries.of(normal), 0);
            (form.product(q, k.transpose()) * (d_head as f64).sqrt().recip(), 0.0)
        }
        Score::Fourier { power, epsilon } => {
            let r = weights.score_parameter.expect("the block has checked that R is there");
            let scores = fourier_scores(linear(normal, 0), k, r, power, form);
            let scores = scores.reshape([batch * n_heads, tokens, tokens]);
            (queries.of(scores).reshape([batch, n_heads, n_queries, tokens]), epsilon)
        }
        Score::Tensors(score) => {
            let q = linear(queries.of(normal), 0);
            (score.scores(q, k, weights.score_parameter), 0.0)
        }
    };
    let hidden = may_not_attend(tokens, queries, options.first_token, &x.device());
    let scores =
        scores.mask_fill(hidden.expand([batch, n_heads, n_queries, tokens]), f32::NEG_INFINITY);
    let mut probs = probabilities(scores, epsilon);
    if let Some(dropout) = &options.dropout {
        probs = dropout.apply(probs, Place::Attention);
    }

    let mixed = form.product(probs, v).swap_dims(1, 2).reshape([batch, n_queries, d]);
    let mut out = form.product(mixed, weights.projection_weight.unsqueeze())
        + weights.projection_bias.expand([batch, n_queries, d]);
    if let Some(dropout) = &options.dropout {
        out = dropout.apply(out, Place::Residual);
    }
    queries.of(x) + out
}

/// `[batch or 1, 1, queries, tokens]`, `true` if the key is invisible to the query (third axis). It
/// is computed on the device.
fn may_not_attend(
    tokens: usize,
    queries: Queries,
    first_token: Option<Tensor<1, Int>>,
    device: &Device,
) -> Tensor<4, Bool> {
    let n_queries = queries.count(tokens);
    let one = [1, 1, n_queries, tokens];
    let key = Tensor::<1, Int>::arange(0..tokens as i64, device);
    let query = key.clone().reshape([n_queries, queries.step]).narrow(1, queries.first, 1);
    let query = query.reshape([1, 1, n_queries, 1]).expand(one);
    let key = key.reshape([1, 1, 1, tokens]).expand(one);
    let later = key.clone().greater(query.clone());
    let Some(first_token) = first_token else { return later };
    let [batch] = first_token.dims();
    let all = [batch, 1, n_queries, tokens];
    let first = first_token.reshape([batch, 1, 1, 1]);
    let padding = key.clone().expand(all).lower(first.expand(all));
    let other = key.not_equal(query);
    padding.bool_and(other.expand(all)).bool_or(later.expand(all))
}
