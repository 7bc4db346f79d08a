//! The attention block in burn tensors.

use burn::tensor::{Bool, Device, Tensor, TensorData};

use super::{AttentionOptions, AttentionWeights, Score};
use crate::dropout::Place;
use crate::fourier_scores::{fourier_scores, probabilities};
use crate::norm::layer_norm;

pub(super) fn attention(
    x: Tensor<3>,
    weights: AttentionWeights,
    options: AttentionOptions<'_>,
) -> Tensor<3> {
    let [batch, tokens, d] = x.dims();
    let n_heads = options.n_heads;
    let d_head = d / n_heads;
    let (device, dtype) = (x.device(), x.dtype());

    let normal = layer_norm(x.clone(), weights.norm_weight, weights.norm_bias);
    let qkv = normal.matmul(weights.qkv_weight.unsqueeze()) + weights.qkv_bias.unsqueeze();
    let head = |part: usize| {
        let part = qkv.clone().narrow(2, part * d, d);
        part.reshape([batch, tokens, n_heads, d_head]).swap_dims(1, 2)
    };
    let (q, k, v) = (head(0), head(1), head(2));

    let scores = match options.score {
        // Times the reciprocal: burn 0.22 rounds the divisor to f32 in `div_scalar`'s backward.
        Score::DotProduct => q.matmul(k.transpose()) * (d_head as f64).sqrt().recip(),
        Score::Fourier { power, .. } => {
            let r = weights.fourier_r.expect("the block has checked that R is there");
            fourier_scores(q, k, r, power, options.form)
        }
    };
    let hidden = may_not_attend(batch, tokens, options.first_token, &device);
    let scores =
        scores.mask_fill(hidden.expand([batch, n_heads, tokens, tokens]), f32::NEG_INFINITY);
    let mut probs = probabilities(scores, options.score.epsilon());
    if let Some(mask) = options.dropout.and_then(|dropout| dropout.mask(Place::Attention)) {
        probs = probs * mask.tensor([batch, n_heads, tokens, tokens], &device, dtype);
    }

    let mixed = probs.matmul(v).swap_dims(1, 2).reshape([batch, tokens, d]);
    let mut out =
        mixed.matmul(weights.projection_weight.unsqueeze()) + weights.projection_bias.unsqueeze();
    if let Some(mask) = options.dropout.and_then(|dropout| dropout.mask(Place::Residual)) {
        out = out * mask.tensor([batch, tokens, d], &device, dtype);
    }
    x + out
}

/// `[batch, 1, tokens, tokens]`, `true` where the query (third axis) may not see the key.
fn may_not_attend(
    batch: usize,
    tokens: usize,
    first_token: Option<&[usize]>,
    device: &Device,
) -> Tensor<4, Bool> {
    let mut hidden = Vec::with_capacity(batch * tokens * tokens);
    for sequence in 0..batch {
        let first = first_token.map_or(0, |first| first[sequence]);
        for query in 0..tokens {
            hidden.extend((0..tokens).map(|key| key > query || (key < first && key != query)));
        }
    }
    Tensor::from_data(TensorData::new(hidden, [batch, 1, tokens, tokens]), device)
}
