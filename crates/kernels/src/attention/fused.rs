//! The attention block on slices, one sequence at a time in cache.

mod backward;
mod forward;
mod probabilities;
mod score;

pub(super) use backward::backward;
pub(super) use forward::forward;

use super::Score;
use crate::buffer::Buffer;
use crate::dropout::Mask;
use crate::matrix::Matrix;

/// What a call computes, beside its inputs.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub batch: usize,
    pub tokens: usize,
    pub n_heads: usize,
    pub score: Score,
    /// One per sequence, or none at all.
    pub first_token: Option<Vec<usize>>,
    pub attention_mask: Option<Mask>,
    pub residual_mask: Option<Mask>,
}

impl Plan {
    fn first_token(&self, sequence: usize) -> usize {
        self.first_token.as_ref().map_or(0, |first| first[sequence])
    }

    /// The score of one more key, which has no value: `ln epsilon`.
    fn score_of_nothing(&self) -> f32 {
        self.score.epsilon().ln() as f32
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

    fn qkv(&self) -> Matrix<'a> {
        Matrix::new(self.qkv_weight, self.width(), 3 * self.width())
    }

    fn projection(&self) -> Matrix<'a> {
        Matrix::new(self.projection_weight, self.width(), self.width())
    }
}

/// What the backward pass needs again.
pub(super) struct Saved {
    /// Queries, keys and values: `[batch * tokens, 3 d]`.
    qkv: Buffer,
    /// What the heads return, before the projection: `[batch * tokens, d]`.
    mixed: Buffer,
}

/// The columns of one head in `[tokens, 3 d]` queries, keys and values, or in a gradient
/// of that shape.
#[derive(Clone, Copy)]
struct Head {
    tokens: usize,
    /// The block's width.
    d: usize,
    d_head: usize,
    head: usize,
}

impl Head {
    /// Where queries (0), keys (1) or values (2) begin.
    fn start(self, part: usize) -> usize {
        part * self.d + self.head * self.d_head
    }

    /// Queries (0), keys (1) or values (2): `[tokens, d_head]`.
    fn part(self, qkv: &[f32], part: usize) -> Matrix<'_> {
        Matrix::strided(&qkv[self.start(part)..], self.tokens, self.d_head, 3 * self.d)
    }

    /// The head's elements of `R`, none where there are none.
    fn own_r(self, r: &[f32]) -> std::ops::Range<usize> {
        if r.is_empty() { 0..0 } else { self.head * self.d_head..(self.head + 1) * self.d_head }
    }

    /// The head's columns of a `[tokens, d]` matrix.
    fn columns(self, mixed: &[f32]) -> Matrix<'_> {
        Matrix::strided(&mixed[self.head * self.d_head..], self.tokens, self.d_head, self.d)
    }
}
