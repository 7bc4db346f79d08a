//! The attention block in burn tensors.

use burn::tensor::{Bool, Device, Tensor, TensorData};

use super::{AttentionOptions, AttentionWeights, Score};
use crate::dropout::Place;
use crate::fourier_scores::{fourier_scores, probabilities};
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
    let (device, dtype) = (x.device(), x.dtype());

    let normal = layer_norm(x.clone(), weights.norm_weight, weights.norm_bias, Form::Reference);
    let linear = |x: Tensor<3>, first: usize| {
        let weight = weights.qkv_weight.clone().narrow(1, first * d, d);
        let bias = weights.qkv_bias.clone().narrow(0, first * d, d);
        let [_, rows, _] = x.dims();
        let out = x.matmul(weight.unsqueeze()) + bias.unsqueeze();
        out.reshape([batch, rows, n_heads, d_head]).swap_dims(1, 2)
    };
    let (k, v) = (linear(normal.clone(), 1), linear(normal.clone(), 2));

    let scores = match options.score {
        // Times the reciprocal: burn 0.22 rounds the divisor to f32 in `div_scalar`'s backward.
        Score::DotProduct => {
            let q = linear(queries.of(normal), 0);
            q.matmul(k.transpose()) * (d_head as f64).sqrt().recip()
        }
        Score::Fourier { power, .. } => {
            let r = weights.fourier_r.expect("the block has checked that R is there");
            let scores = fourier_scores(linear(normal, 0), k, r, power, options.form);
            let scores = scores.reshape([batch * n_heads, tokens, tokens]);
            queries.of(scores).reshape([batch, n_heads, n_queries, tokens])
        }
    };
    let hidden = may_not_attend(batch, tokens, queries, options.first_token, &device);
    let scores =
        scores.mask_fill(hidden.expand([batch, n_heads, n_queries, tokens]), f32::NEG_INFINITY);
    let mut probs = probabilities(scores, options.score.epsilon());
    if let Some(mask) = options.dropout.and_then(|dropout| dropout.mask(Place::Attention)) {
        probs = probs * mask.tensor([batch, n_heads, n_queries, tokens], &device, dtype);
    }

    let mixed = probs.matmul(v).swap_dims(1, 2).reshape([batch, n_queries, d]);
    let mut out =
        mixed.matmul(weights.projection_weight.unsqueeze()) + weights.projection_bias.unsqueeze();
    if let Some(mask) = options.dropout.and_then(|dropout| dropout.mask(Place::Residual)) {
        out = out * mask.tensor([batch, n_queries, d], &device, dtype);
    }
    queries.of(x) + out
}

/// `[batch, 1, queries, tokens]`, `true` where the query (third axis) may not see the key.
fn may_not_attend(
    batch: usize,
    tokens: usize,
    queries: Queries,
    first_token: Option<&[usize]>,
    device: &Device,
) -> Tensor<4, Bool> {
    let n_queries = queries.count(tokens);
    let mut hidden = Vec::with_capacity(batch * n_queries * tokens);
    for sequence in 0..batch {
        let first = first_token.map_or(0, |first| first[sequence]);
        for query in (0..n_queries).map(|query| queries.token(query)) {
            hidden.extend((0..tokens).map(|key| key > query || (key < first && key != query)));
        }
    }
    Tensor::from_data(TensorData::new(hidden, [batch, 1, n_queries, tokens]), device)
}
