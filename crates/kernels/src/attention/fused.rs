//! The attention block on slices, a few sequences at a time in cache.
//!
//! **Forward.** `n` is the layer norm of `x`, `m` and `m'` are dropout's masks, `⊙` multiplies
//! element by element. For each sequence, and for each head if there is an index:
//!
//! - `q = n W_q + b_q`, `[k v] = n W_kv + b_kv`
//! - `s_ij = score(q_i, k_j)`, `p_i = softmax(s_i)` over the keys that `i` may see
//! - `a = m ⊙ p`, `o = a v`, `y = x + m' ⊙ (o W_o + b_o)`
//!
//! **Backward**, given `dy`, in the order of the code:
//!
//! - `du = m' ⊙ dy`, `db_o = Σ_rows du`, `dW_o = oᵀ du`, `do = du W_oᵀ`
//! - `dv = aᵀ do`, `dp = m ⊙ (do vᵀ)`
//! - `ds = p ⊙ (dp − Σ_j p_j dp_j)`, the softmax. The sum equals `Σ_j a_j (do vᵀ)_j = o · do`: one
//!   product of `d_head` numbers per query instead of one over all tokens.
//! - `dq`, `dk` (and `dR`) from `ds`, by the score: `score.rs`
//! - `dW_q = nᵀ dq`, `dW_kv = nᵀ [dk dv]`, `dn = dq W_qᵀ + [dk dv] W_kvᵀ`
//! - `dx = dy +` the backward pass of the layer norm on `dn`: `norm.rs`
//!
//! **Kept** are `q`, `k`, `v` and `o`: four times the size of the result. **Computed again** are
//! `n`, the masks and, in most cases, `s` and `p`. Eight heads of 90 tokens have probabilities that
//! are six times as large as a result of width 128. Writing and reading them takes longer than the
//! product and the exponentials. One head of 60 tokens has probabilities of half the result's size,
//! and keeps them ([`AttentionPlan::keeps_probs`]).

mod backward;
mod forward;
mod probabilities;
mod score;

pub(super) use backward::backward;
pub(super) use forward::forward;
pub(super) use score::FusedScore;

use probabilities::VisibleKeys;

use crate::Queries;
use crate::buffer::Buffer;
use crate::mask::Mask;
use crate::matrix::{Matrix, Panels};

/// Approximate number of tokens that go through the products with the weights together. `x`, `n`,
/// `q`, `k`, `v` and `o` of 192 tokens of width 128 are 0.6 MB and stay in a second-level cache of 1
/// MiB. A weight is used 192 times after it has been read.
const TOGETHER: usize = 192;
/// Minimum number of groups of sequences, if there are as many sequences: work for eight threads.
const GROUPS: usize = 8;

/// A call's computation, without its inputs.
#[derive(Clone, Debug)]
pub(super) struct AttentionPlan {
    pub batch: usize,
    pub tokens: usize,
    pub n_heads: usize,
    pub score: FusedScore,
    pub queries: Queries,
    /// One per sequence, or none at all.
    pub first_token: Option<Vec<usize>>,
    pub attention_mask: Option<Mask>,
    pub residual_mask: Option<Mask>,
}

impl AttentionPlan {
    fn n_queries(&self) -> usize {
        self.queries.count(self.tokens)
    }

    /// Number of sequences in a group. It depends only on sizes, and so do the sums over a group.
    fn group(&self) -> usize {
        (TOGETHER / self.tokens).min(self.batch / GROUPS).max(1)
    }

    fn head(&self, head: usize, d: usize) -> HeadColumns {
        let Self { tokens, queries, .. } = *self;
        HeadColumns { tokens, queries, d, d_head: d / self.n_heads, head }
    }

    fn visible(&self, sequence: usize) -> VisibleKeys {
        let first_token = self.first_token.as_ref().map_or(0, |first| first[sequence]);
        VisibleKeys { first_token, queries: self.queries }
    }

    /// The score of one more key, which has no value: `ln epsilon`.
    fn score_of_nothing(&self) -> f32 {
        self.score.epsilon().ln() as f32
    }

    /// Whether the probabilities are kept for the backward pass, instead of being computed again.
    /// They are kept if they need less memory than half of a block's result.
    fn keeps_probs(&self, d: usize) -> bool {
        2 * self.n_heads * self.score_stride() <= d
    }

    /// Distance between the starts of two rows of scores: rows are padded to whole vectors.
    fn score_stride(&self) -> usize {
        self.tokens.next_multiple_of(probabilities::LANES)
    }
}

/// The parameters as slices, laid out as in [`AttentionWeights`](super::AttentionWeights).
#[derive(Clone, Copy)]
pub(super) struct AttentionParameters<'a> {
    pub norm_weight: &'a [f32],
    pub norm_bias: &'a [f32],
    pub qkv_weight: &'a [f32],
    pub qkv_bias: &'a [f32],
    pub projection_weight: &'a [f32],
    pub projection_bias: &'a [f32],
    /// `[n_heads, d_head]`; any numbers if the score has no parameter.
    pub fourier_r: &'a [f32],
}

impl<'a> AttentionParameters<'a> {
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

/// The weights in the layout of the products.
struct Products {
    q: Panels,
    kv: Panels,
    projection: Panels,
}

impl Products {
    fn new(parameters: AttentionParameters<'_>) -> Self {
        Self {
            q: Panels::new(parameters.q()),
            kv: Panels::new(parameters.kv()),
            projection: Panels::new(parameters.projection()),
        }
    }

    /// The transposed weights: from the gradient of a result to the gradient of its input.
    fn backward(parameters: AttentionParameters<'_>) -> Self {
        Self {
            q: Panels::new(parameters.q().transposed()),
            kv: Panels::new(parameters.kv().transposed()),
            projection: Panels::new(parameters.projection().transposed()),
        }
    }
}

/// Values of the forward pass that the backward pass needs.
pub(super) struct SavedAttention {
    /// Queries: `[batch * n_queries, d]`.
    q: Buffer,
    /// Keys and values: `[batch * tokens, 2 d]`.
    kv: Buffer,
    /// The output of the heads before the projection: `[batch * n_queries, d]`.
    mixed: Buffer,
    /// Attention probabilities before dropout, `[batch, n_heads, n_queries, stride]`; empty if they
    /// are not kept.
    probs: Buffer,
}

/// The columns of one head in one sequence's queries, keys and values, or in gradients of
/// their shapes.
#[derive(Clone, Copy)]
struct HeadColumns {
    tokens: usize,
    queries: Queries,
    /// The block's width.
    d: usize,
    d_head: usize,
    head: usize,
}

impl HeadColumns {
    fn n_queries(self) -> usize {
        self.queries.count(self.tokens)
    }

    /// The first of the head's columns in rows of the block's width.
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
}
