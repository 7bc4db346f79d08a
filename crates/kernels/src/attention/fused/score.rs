//! The comparison of queries with keys, and its gradient.

use super::{Head, Score};
use crate::fourier_scores::{self, Destination, Visible};
use crate::matrix::{Into, Matrix, multiply_strided};

/// A head of one sequence, as its score sees it.
#[derive(Clone, Copy)]
pub(super) struct Compared<'a> {
    pub head: Head,
    pub qkv: &'a [f32],
    /// Earlier tokens are padding.
    pub first_token: usize,
    /// The head's `R`; empty where the score has no parameter.
    pub r: &'a [f32],
}

impl<'a> Compared<'a> {
    fn fourier(self, power: u32) -> fourier_scores::Head<'a> {
        fourier_scores::Head {
            q: &self.qkv[self.head.start(0)..],
            k: &self.qkv[self.head.start(1)..],
            row: 3 * self.head.d,
            tokens: self.head.tokens,
            r: self.r,
            power,
            visible: Visible::Causal { first_token: self.first_token },
        }
    }
}

impl Score {
    /// `scores[i, j]` of query `i` and every key `j` it may see, rows `stride` apart. Other
    /// scores are arbitrary.
    pub(super) fn forward(self, compared: Compared<'_>, scores: &mut [f32], stride: usize) {
        match self {
            Self::DotProduct => {
                let Compared { head, qkv, .. } = compared;
                let scale = 1.0 / (head.d_head as f32).sqrt();
                let (q, k) = (head.part(qkv, 0), head.part(qkv, 1));
                multiply_strided(scores, stride, Into::Fresh, scale, q, k.transposed());
            }
            Self::Fourier { power, .. } => compared.fourier(power).scores(scores),
        }
    }

    /// Writes the gradients by queries and keys into their columns of `by_qkv`, given that
    /// by the scores, which is zero where nothing may be seen; adds that by `R` to `by_r`.
    pub(super) fn backward(
        self,
        compared: Compared<'_>,
        by_scores: &[f32],
        stride: usize,
        by_qkv: &mut [f32],
        by_r: &mut [f32],
    ) {
        let Compared { head, qkv, .. } = compared;
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
            Self::Fourier { power, .. } => {
                let (q, k) = (head.start(0), head.start(1));
                let by = Destination { values: by_qkv, q, k, row: 3 * head.d };
                compared.fourier(power).backward(by_scores, by, by_r);
            }
        }
    }
}
