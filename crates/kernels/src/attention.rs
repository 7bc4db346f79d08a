//! Causal self-attention as one residual block.

#[cfg(feature = "cube")]
mod cube;
mod fused;
mod reference;

use burn::backend::DispatchTensor;
use burn::tensor::{Int, Tensor};

use crate::buffer::Buffer;
use crate::flex::{self, Fused, is_flex_f32};
use crate::fourier_scores::{check_power, each_dimension};
use crate::mask::Place;
use crate::{Dropout, Form, Queries};
use fused::FusedScore;

/// The parameters of an attention block of width `d`. Linear weights are `[in, out]`.
#[derive(Clone, Debug)]
pub struct AttentionWeights {
    /// `[d]`
    pub norm_weight: Tensor<1>,
    /// `[d]`
    pub norm_bias: Tensor<1>,
    /// `[d, 3 d]`: queries, then keys, then values; heads are contiguous within each.
    pub qkv_weight: Tensor<2>,
    /// `[3 d]`
    pub qkv_bias: Tensor<1>,
    /// `[d, d]`
    pub projection_weight: Tensor<2>,
    /// `[d]`
    pub projection_bias: Tensor<1>,
    /// The learned parameter of the score. [`Score::Fourier`]: `R`, `[n_heads or 1, d_head or 1]`;
    /// [`Score::DotProduct`]: `None`; [`Score::Tensors`]: any.
    pub score_parameter: Option<Tensor<2>>,
}

/// The comparison of a query with a key.
#[derive(Clone, Copy, Debug, Default)]
pub enum Score<'a> {
    /// `q · k / sqrt(d_head)`
    #[default]
    DotProduct,
    /// `power · Σ_d ln |sinc(R_d (q_d − k_d))|`, see [`fourier_scores`](crate::fourier_scores()).
    /// With weights `w = exp(score)`, the probabilities are `w / (Σ w + epsilon)`.
    Fourier {
        /// Even; the paper's main experiments use 4.
        power: u32,
        /// 0 is the paper's formula. The paper's code uses 1e-6, so that a query with only small
        /// weights sees nothing.
        epsilon: f64,
    },
    /// A user's own score, in tensors. The block then runs in its reference form, on any device.
    Tensors(&'a dyn TensorScore),
}

/// A comparison of queries with keys in burn tensors, with burn's automatic gradient.
pub trait TensorScore: std::fmt::Debug {
    /// The score of every query and key. The weights are its softmax over the keys that are visible
    /// to the query.
    ///
    /// # Shapes
    /// - `q`: `[batch, heads, queries, d_head]`
    /// - `k`: `[batch, heads, tokens, d_head]`
    /// - result: `[batch, heads, queries, tokens]`
    fn scores(&self, q: Tensor<4>, k: Tensor<4>, parameter: Option<Tensor<2>>) -> Tensor<4>;
}

/// Options of an attention block, in addition to its parameters.
#[derive(Clone, Debug)]
pub struct AttentionOptions<'a> {
    /// Number of heads; divides the width.
    pub n_heads: usize,
    /// The comparison of queries with keys.
    pub score: Score<'a>,
    /// The tokens at which the result is computed. Dropout's rows count only these.
    pub queries: Queries,
    /// `[batch]`, the index of the first real token of each sequence: earlier ones are padding, and
    /// real tokens do not attend to them. `None`: no padding. A padding token attends only to itself.
    pub first_token: Option<Tensor<1, Int>>,
    /// Dropout on the attention probabilities and on the sum that is added to `x`.
    pub dropout: Option<Dropout>,
    /// The form of the computation.
    pub form: Form,
}

/// `x + dropout(project(dropout(softmax(scores)) v))`, with `q, k, v` from the layer norm
/// of `x`: one pre-norm attention block.
///
/// A token attends to itself and to earlier real tokens of its sequence.
///
/// # Shapes
/// - `x`: `[batch, tokens, d]`
/// - result: `[batch, queries, d]`, the rows of `options.queries`
///
/// # Panics
/// When shapes do not fit together, `n_heads` does not divide `d`, or `queries` are not tokens of a
/// sequence. Also when `first_token` has another length than the batch, or the score's parameter
/// does not fit the score.
pub fn attention_block(
    x: Tensor<3>,
    mut weights: AttentionWeights,
    options: AttentionOptions<'_>,
) -> Tensor<3> {
    let [batch, tokens, d] = x.dims();
    let n_heads = options.n_heads;
    assert!(n_heads > 0 && d % n_heads == 0, "{n_heads} heads do not divide a width of {d}");
    assert_eq!(weights.norm_weight.dims(), [d], "norm_weight");
    assert_eq!(weights.norm_bias.dims(), [d], "norm_bias");
    assert_eq!(weights.qkv_weight.dims(), [d, 3 * d], "qkv_weight");
    assert_eq!(weights.qkv_bias.dims(), [3 * d], "qkv_bias");
    assert_eq!(weights.projection_weight.dims(), [d, d], "projection_weight");
    assert_eq!(weights.projection_bias.dims(), [d], "projection_bias");
    weights.score_parameter = match (weights.score_parameter, options.score) {
        (None, Score::DotProduct) => None,
        (parameter, Score::Tensors(_)) => parameter,
        (Some(r), Score::Fourier { power, epsilon }) => {
            check_power(power);
            assert!(epsilon >= 0.0, "epsilon {epsilon} must not be negative");
            Some(each_dimension(r, n_heads, d / n_heads))
        }
        (r, score) => panic!("{score:?} with a parameter of shape {:?}", r.map(|r| r.dims())),
    };
    options.queries.check(tokens);
    if let Some(first_token) = &options.first_token {
        assert_eq!(first_token.dims(), [batch], "first_token has one entry per sequence");
    }
    if options.form == Form::Auto
        && let Some(score) = FusedScore::of(options.score)
        && is_flex_f32(&x)
        && weights.all_flex_f32()
    {
        let mask = |place| options.dropout.as_ref().and_then(|dropout| dropout.mask(place));
        let plan = fused::AttentionPlan {
            batch,
            tokens,
            n_heads,
            score,
            queries: options.queries,
            first_token: options
                .first_token
                .map(|first| first.into_data().iter::<i64>().map(|token| token as usize).collect()),
            attention_mask: mask(Place::Attention),
            residual_mask: mask(Place::Residual),
        };
        let shape = [batch, options.queries.count(tokens), d];
        return flex::apply(plan, weights.inputs(x), shape);
    }
    #[cfg(feature = "cube")]
    if cube::is_possible(&x, &weights, &options) {
        return cube::attention(x, weights, options);
    }
    reference::attention(x, weights, options)
}

impl AttentionWeights {
    fn all_flex_f32(&self) -> bool {
        [&self.norm_weight, &self.norm_bias, &self.qkv_bias, &self.projection_bias]
            .into_iter()
            .all(is_flex_f32)
            && [&self.qkv_weight, &self.projection_weight]
                .into_iter()
                .chain(&self.score_parameter)
                .all(is_flex_f32)
    }

    /// Dot products have no parameter: any tensor without a gradient stands in its place.
    fn inputs(self, x: Tensor<3>) -> [DispatchTensor; 8] {
        let r = self.score_parameter.map(Tensor::into_dispatch);
        let r = r.unwrap_or_else(|| self.norm_bias.clone().detach().into_dispatch());
        [
            x.into_dispatch(),
            self.norm_weight.into_dispatch(),
            self.norm_bias.into_dispatch(),
            self.qkv_weight.into_dispatch(),
            self.qkv_bias.into_dispatch(),
            self.projection_weight.into_dispatch(),
            self.projection_bias.into_dispatch(),
            r,
        ]
    }
}

fn parameters(inputs: [&[f32]; 8]) -> (&[f32], fused::AttentionParameters<'_>) {
    let [x, norm_weight, norm_bias, qkv_weight, qkv_bias, projection_weight, projection_bias, r] =
        inputs;
    let parameters = fused::AttentionParameters {
        norm_weight,
        norm_bias,
        qkv_weight,
        qkv_bias,
        projection_weight,
        projection_bias,
        fourier_r: r,
    };
    (x, parameters)
}

/// The float inputs are `x`, then the parameters in the order of their declaration.
impl Fused<8> for fused::AttentionPlan {
    type Saved = fused::SavedAttention;

    fn forward(&self, inputs: [&[f32]; 8], keep: bool) -> (Buffer, Option<fused::SavedAttention>) {
        let (x, parameters) = parameters(inputs);
        fused::forward(x, parameters, self, keep)
    }

    fn backward(
        &self,
        inputs: [&[f32]; 8],
        _output: &[f32],
        saved: &fused::SavedAttention,
        gradient: &[f32],
    ) -> [Buffer; 8] {
        let (x, parameters) = parameters(inputs);
        fused::backward(x, parameters, self, saved, gradient)
    }
}
