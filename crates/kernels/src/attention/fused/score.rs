//! The comparison of queries with keys, and its gradient.

use super::{Head, Score};
use crate::matrix::{Into, Matrix, multiply_strided};

impl Score {
    /// `scores[i, j]` of query `i` and key `j`, rows `stride` apart.
    pub(super) fn forward(self, head: Head, qkv: &[f32], scores: &mut [f32], stride: usize) {
        match self {
            Self::DotProduct => {
                let scale = 1.0 / (head.d_head as f32).sqrt();
                let (q, k) = (head.part(qkv, 0), head.part(qkv, 1));
                multiply_strided(scores, stride, Into::Fresh, scale, q, k.transposed());
            }
        }
    }

    /// Writes the gradients by queries and keys into their columns of `by_qkv`, given that
    /// by the scores.
    pub(super) fn backward(
        self,
        head: Head,
        qkv: &[f32],
        by_scores: &[f32],
        stride: usize,
        by_qkv: &mut [f32],
    ) {
        match self {
            Self::DotProduct => {
                let scale = 1.0 / (head.d_head as f32).sqrt();
                let by_scores = Matrix::strided(by_scores, head.tokens, head.tokens, stride);
                let row = 3 * head.d;
                let by_q = &mut by_qkv[head.start(0)..];
                multiply_strided(by_q, row, Into::Fresh, scale, by_scores, head.part(qkv, 1));
                let by_k = &mut by_qkv[head.start(1)..];
                let by_scores = by_scores.transposed();
                multiply_strided(by_k, row, Into::Fresh, scale, by_scores, head.part(qkv, 0));
            }
        }
    }
}
