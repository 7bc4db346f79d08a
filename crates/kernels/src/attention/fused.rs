//! The attention block on slices, a few sequences at a time in cache.

mod backward;
mod forward;
mod probabilities;
mod score;

pub(super) use backward::backward;
pub(super) use forward::forward;

use probabilities::Visible;

use super::Score;
use crate::Queries;
use crate::buffer::Buffer;
use crate::dropout::Mask;
use crate::matrix::{Matrix, Panels};

/// Tokens that go through the products with the weights together, about.
const TOGETHER: usize = 192;
/// Groups of sequences, at least, as far as there are sequences: work for several threads.
const GROUPS: usize = 8;

/// What a call computes, beside its inputs.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub batch: usize,
    pub tokens: usize,
    pub n_heads: usize,
    pub score: Score,
    pub queries: Queries,
    /// One per sequence, or none at all.
    pub first_token: Option<Vec<usize>>,
    pub attention_mask: Option<Mask>,
    pub residual_mask: Option<Mask>,
}

impl Plan {
    fn n_queries(&self) -> usize {
        self.queries.count(self.tokens)
    }

    /// Sequences in a group. It depends on sizes alone, so that sums over a group do too.
    fn group(&self) -> usize {
        (TOGETHER / self.tokens).min(self.batch / GROUPS).max(1)
    }

    fn head(&self, head: usize, d: usize) -> Head {
        let Self { tokens, queries, .. } = *self;
        Head { tokens, queries, d, d_head: d / self.n_heads, head }
    }

    fn visible(&self, sequence: usize) -> Visible {
        let first_token = self.first_token.as_ref().map_or(0, |first| first[sequence]);
        Visible { first_token, queries: self.queries }
    }

    /// The score of one more key, which has no value: `ln epsilon`.
    fn score_of_nothing(&self) -> f32 {
        self.score.epsilon().ln() as f32
    }

    /// Whether the probabilities are kept for the backward pass, which otherwise computes
    /// them again: where they take less memory than half of what a block returns.
    fn keeps_probs(&self, d: usize) -> bool {
        2 * self.n_heads * self.score_stride() <= d
    }

    /// Where a row of scores begins after the one before: rows are padded to whole
    /// vectors.
    fn score_stride(&self) -> usize {
        self.tokens.next_multiple_of(probabilities::LANES)
    }
}

/// The parameters as slices, laid out as in [`AttentionWeights`](super::AttentionWeights).
#[derive(Clone, Copy)]
pub(super) struct Parameters<'a> {
    pub norm_weight: &'a [f32],
    pub norm_bias: &'a [f32],
    pub qkv_weight: &'a [f32],
    pub qkv_bias: &'a [f32],
    pub projection_weight: &'a [f32],
    pub projection_bias: &'a [f32],
    /// `[n_heads, d_head]`; empty where the score has no parameter.
    pub fourier_r: &'a [f32],
}

impl<'a> Parameters<'a> {
    fn width(&self) -> usize {
        self.projection_bias.len()
    }

    /// The columns of queries: `[d, d]`.
    fn q(&self) -> Matrix<'a> {
        Matrix::strided(self.qkv_weight, self.width(), self.width(), 3 * self.width())
    }

    /// The columns of keys and values: `[d, 2 d]`.
    fn kv(&self) -> Matrix<'a> {
        let d = self.width();
        Matrix::strided(&self.qkv_weight[d..], d, 2 * d, 3 * d)
    }

    fn projection(&self) -> Matrix<'a> {
        Matrix::new(self.projection_weight, self.width(), self.width())
    }
}

/// The weights as products read them.
struct Products {
    q: Panels,
    kv: Panels,
    projection: Panels,
}

impl Products {
    fn new(parameters: Parameters<'_>) -> Self {
        Self {
            q: Panels::new(parameters.q()),
            kv: Panels::new(parameters.kv()),
            projection: Panels::new(parameters.projection()),
        }
    }

    /// Of the transposed weights: from the gradient by a result to that by its input.
    fn backward(parameters: Parameters<'_>) -> Self {
        Self {
            q: Panels::new(parameters.q().transposed()),
            kv: Panels::new(parameters.kv().transposed()),
            projection: Panels::new(parameters.projection().transposed()),
        }
    }
}

/// What the backward pass needs again.
pub(super) struct Saved {
    /// Queries: `[batch * n_queries, d]`.
    q: Buffer,
    /// Keys and values: `[batch * tokens, 2 d]`.
    kv: Buffer,
    /// What the heads return, before the projection: `[batch * n_queries, d]`.
    mixed: Buffer,
    /// Attention probabilities before dropout, `[batch, n_heads, n_queries, stride]`; empty
    /// where they are not kept.
    probs: Buffer,
}

/// The columns of one head in one sequence's queries, keys and values, or in gradients of
/// their shapes.
#[derive(Clone, Copy)]
struct Head {
    tokens: usize,
    queries: Queries,
    /// The block's width.
    d: usize,
    d_head: usize,
    head: usize,
}

impl Head {
    fn n_queries(self) -> usize {
        self.queries.count(self.tokens)
    }

    /// Where the head's columns begin in rows of the block's width.
    fn start(self) -> usize {
        self.head * self.d_head
    }

    /// The head's columns of `[n_queries, d]`.
    fn of_queries(self, values: &[f32]) -> Matrix<'_> {
        Matrix::strided(&values[self.start()..], self.n_queries(), self.d_head, self.d)
    }

    /// The head's keys in `[tokens, 2 d]` keys and values.
    fn keys(self, kv: &[f32]) -> Matrix<'_> {
        Matrix::strided(&kv[self.start()..], self.tokens, self.d_head, 2 * self.d)
    }

    /// The head's values in `[tokens, 2 d]` keys and values.
    fn values(self, kv: &[f32]) -> Matrix<'_> {
        Matrix::strided(&kv[self.d + self.start()..], self.tokens, self.d_head, 2 * self.d)
    }

    /// The head's elements of `R`, none where there are none.
    fn own_r(self, r: &[f32]) -> std::ops::Range<usize> {
        if r.is_empty() { 0..0 } else { self.start()..self.start() + self.d_head }
    }
}
