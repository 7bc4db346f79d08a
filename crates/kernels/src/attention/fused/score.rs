//! The comparison of queries with keys, and its gradient.
//!
//! Dot products: `s = q kᵀ / √d_head`, so `dq = ds k / √d_head` and `dk = dsᵀ q / √d_head`.
//! The Fourier scores' gradients are in `fourier_scores/fused/backward.rs`.

use super::HeadColumns;
use crate::attention::Score;
use crate::fourier_scores::{self, Destination, Visible};
use crate::matrix::{Accumulate, Matrix, multiply_strided};

/// The inputs of a head's score in one sequence.
#[derive(Clone, Copy)]
pub(super) struct Compared<'a> {
    pub head: HeadColumns,
    /// `[n_queries, d]`
    pub q: &'a [f32],
    /// `[tokens, 2 d]`
    pub kv: &'a [f32],
    /// Earlier tokens are padding.
    pub first_token: usize,
    /// The head's `R`; any numbers if the score has no parameter.
    pub r: &'a [f32],
}

impl<'a> Compared<'a> {
    fn fourier(self, power: u32) -> fourier_scores::ScoredHead<'a> {
        fourier_scores::ScoredHead {
            q: &self.q[self.head.start()..],
            row_q: self.head.d,
            k: &self.kv[self.head.start()..],
            row_k: 2 * self.head.d,
            n_queries: self.head.n_queries(),
            queries: self.head.queries,
            tokens: self.head.tokens,
            r: self.r,
            power,
            visible: Visible::Causal { first_token: self.first_token },
        }
    }
}

/// The scores that have a fused form.
#[derive(Clone, Copy, Debug)]
pub(in crate::attention) enum FusedScore {
    DotProduct,
    Fourier { power: u32, epsilon: f64 },
}

impl FusedScore {
    pub(in crate::attention) fn of(score: Score<'_>) -> Option<Self> {
        match score {
            Score::DotProduct => Some(Self::DotProduct),
            Score::Fourier { power, epsilon } => Some(Self::Fourier { power, epsilon }),
            Score::Tensors(_) => None,
        }
    }

    /// The constant that is added to the weights' divisor.
    pub(super) fn epsilon(self) -> f64 {
        match self {
            Self::DotProduct => 0.0,
            Self::Fourier { epsilon, .. } => epsilon,
        }
    }

    /// `scores[i, j]` of query `i` and every visible key `j`, rows `stride` apart. Other scores are
    /// arbitrary.
    pub(super) fn forward(self, compared: Compared<'_>, scores: &mut [f32], stride: usize) {
        match self {
            Self::DotProduct => {
                let Compared { head, q, kv, .. } = compared;
                let scale = 1.0 / (head.d_head as f32).sqrt();
                let (q, k) = (head.of_queries(q), head.keys(kv));
                multiply_strided(scores, stride, Accumulate::Overwrite, scale, q, k.transposed());
            }
            Self::Fourier { power, .. } => compared.fourier(power).scores(scores),
        }
    }

    /// Writes the gradients of queries and keys into their columns of `by_q` and `by_kv`, and adds
    /// the gradient of `R` to `by_r`. `by_scores` is the gradient of the scores, which is zero for
    /// invisible keys.
    pub(super) fn backward(
        self,
        compared: Compared<'_>,
        by_scores: &[f32],
        stride: usize,
        [by_q, by_kv]: [&mut [f32]; 2],
        by_r: &mut [f32],
    ) {
        let Compared { head, q, kv, .. } = compared;
        let (by_q, by_k) = (&mut by_q[head.start()..], &mut by_kv[head.start()..]);
        let (row_q, row_k) = (head.d, 2 * head.d);
        match self {
            Self::DotProduct => {
                let scale = 1.0 / (head.d_head as f32).sqrt();
                let by_scores = Matrix::strided(by_scores, head.n_queries(), head.tokens, stride);
                multiply_strided(
                    by_q,
                    row_q,
                    Accumulate::Overwrite,
                    scale,
                    by_scores,
                    head.keys(kv),
                );
                let by_scores = by_scores.transposed();
                multiply_strided(
                    by_k,
                    row_k,
                    Accumulate::Overwrite,
                    scale,
                    by_scores,
                    head.of_queries(q),
                );
            }
            Self::Fourier { power, .. } => {
                let by = Destination { q: by_q, row_q, k: by_k, row_k };
                compared.fourier(power).backward(by_scores, by, by_r);
            }
        }
    }
}
