//! The scores of one head on slices, sixteen keys at a time.
//!
//! The squares of the factors are multiplied and their product's logarithm taken once;
//! exponents are counted apart, so that the product cannot underflow.

use std::ops::Range;

use rayon::prelude::*;

use super::sinc::{self, NEAR};
use crate::Queries;
use crate::math::ln;
use crate::rows::add_rows;
use crate::scratch::with_scratch;
use crate::simd::vectorised;

/// Keys in a vector; rows of scores are padded to a multiple of it.
const LANES: usize = 16;

type Lanes = [f32; LANES];

/// Factors near 1, none below 0.2, that may be multiplied before the exponent is set apart.
const NEAR_FACTORS: usize = 16;

/// What a call on tensors computes, beside its inputs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub heads: usize,
    pub tokens: usize,
    pub power: u32,
}

/// Which keys a query is compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Visible {
    /// All.
    All,
    /// Itself and earlier ones from `first_token` on; only itself before that.
    Causal { first_token: usize },
}

impl Visible {
    /// Of the query which is this token.
    fn keys(self, token: usize, tokens: usize) -> Range<usize> {
        match self {
            Self::All => 0..tokens,
            Self::Causal { first_token } => first_token.min(token)..token + 1,
        }
    }
}

/// One head of one sequence.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a> {
    /// `[n_queries, d_head]`, rows `row_q` apart.
    pub q: &'a [f32],
    pub row_q: usize,
    /// `[tokens, d_head]`, rows `row_k` apart.
    pub k: &'a [f32],
    pub row_k: usize,
    /// Which of the tokens are queries.
    pub queries: Queries,
    pub tokens: usize,
    /// `R`: `[d_head]`.
    pub r: &'a [f32],
    pub power: u32,
    pub visible: Visible,
}

/// Where gradients by queries and keys go, laid out as in [`Head`].
pub(crate) struct Destination<'a> {
    pub q: &'a mut [f32],
    pub row_q: usize,
    pub k: &'a mut [f32],
    pub row_k: usize,
}

impl Head<'_> {
    fn stride(&self) -> usize {
        self.tokens.next_multiple_of(LANES)
    }

    fn d_head(&self) -> usize {
        self.r.len()
    }

    fn n_queries(&self) -> usize {
        self.queries.count(self.tokens)
    }

    /// The keys that a query sees.
    #[inline(always)]
    fn keys(&self, query: usize) -> Range<usize> {
        self.visible.keys(self.queries.token(query), self.tokens)
    }

    /// Keys as `[d_head, stride]`, zero in the padding.
    fn transpose_keys(&self, into: &mut [f32]) {
        let stride = self.stride();
        into.fill(0.0);
        for token in 0..self.tokens {
            for d in 0..self.d_head() {
                into[d * stride + token] = self.k[token * self.row_k + d];
            }
        }
    }

    /// The scores of every query's visible keys, in rows padded to whole vectors; other
    /// elements are arbitrary.
    pub fn scores(&self, into: &mut [f32]) {
        assert_eq!(
            into.len(),
            self.n_queries() * self.stride(),
            "rows are padded to whole vectors"
        );
        with_scratch([self.d_head() * self.stride()], |[keys]| {
            self.transpose_keys(keys);
            scores(*self, keys, self.stride(), &mut Sorted::new(self.d_head()), into);
        });
    }

    /// Gradients, given that by the scores, which is zero where nothing is visible: by
    /// queries and keys into `by`, that by `R` is added to `by_r`.
    pub fn backward(&self, by_scores: &[f32], by: Destination<'_>, by_r: &mut [f32]) {
        let (stride, d_head) = (self.stride(), self.d_head());
        assert_eq!(by_scores.len(), self.n_queries() * stride, "rows are padded to whole vectors");
        with_scratch([d_head * stride, d_head * stride], |[keys, by_keys]| {
            self.transpose_keys(keys);
            by_keys.fill(0.0);
            let sorted = &mut Sorted::new(d_head);
            backward(*self, keys, stride, sorted, by_scores, by.q, by.row_q, by_keys, by_r);
            for token in 0..self.tokens {
                for d in 0..d_head {
                    by.k[token * by.row_k + d] =
                        self.power as f32 * self.r[d] * by_keys[d * stride + token];
                }
            }
        });
    }
}

/// The dimensions, those first in which a query is near all keys it sees.
///
/// A query's split depends on what it sees alone: not on the future, nor on padding.
struct Sorted {
    dimensions: Vec<usize>,
    /// Bounds of the keys seen so far, by dimension.
    bounds: Vec<[f32; 2]>,
    seen: Range<usize>,
}

impl Sorted {
    fn new(d_head: usize) -> Self {
        Self { dimensions: vec![0; d_head], bounds: vec![[0.0; 2]; d_head], seen: 0..0 }
    }

    /// The near and the far dimensions of a query. Queries come in order.
    #[inline(always)]
    fn split(&mut self, head: Head<'_>, query: usize) -> (&[usize], &[usize]) {
        let keys = head.keys(query);
        if self.seen.start != keys.start || self.seen.is_empty() {
            self.seen = keys.start..keys.start;
            self.bounds.fill([f32::INFINITY, f32::NEG_INFINITY]);
        }
        for key in self.seen.end..keys.end {
            let key = &head.k[key * head.row_k..][..self.bounds.len()];
            for (bounds, k) in self.bounds.iter_mut().zip(key) {
                *bounds = [bounds[0].min(*k), bounds[1].max(*k)];
            }
        }
        self.seen.end = keys.end;

        let q = &head.q[query * head.row_q..];
        let (mut n_near, mut n_far) = (0, 0);
        let last = self.dimensions.len() - 1;
        for (d, [low, high]) in self.bounds.iter().enumerate() {
            // Rounding is monotone: no key's own product is larger.
            let [low, high] = [(q[d] - low) * head.r[d], (q[d] - high) * head.r[d]];
            if low * low <= NEAR && high * high <= NEAR {
                self.dimensions[n_near] = d;
                n_near += 1;
            } else {
                self.dimensions[last - n_far] = d;
                n_far += 1;
            }
        }
        self.dimensions.split_at(n_near)
    }
}

#[inline(always)]
fn at(values: &[f32], start: usize) -> &Lanes {
    values[start..].first_chunk().expect("rows are padded to whole vectors")
}

#[inline(always)]
fn at_mut(values: &mut [f32], start: usize) -> &mut Lanes {
    values[start..].first_chunk_mut().expect("rows are padded to whole vectors")
}

/// The starts of the vectors that hold these keys.
#[inline(always)]
fn vectors(keys: Range<usize>) -> impl Iterator<Item = usize> {
    (keys.start / LANES * LANES..keys.end).step_by(LANES)
}

#[inline(always)]
fn total(lanes: Lanes) -> f32 {
    let mut lanes = lanes;
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// A product in every lane: `mantissa · 2^exponent`.
struct Product {
    mantissa: Lanes,
    exponent: [i32; LANES],
}

impl Product {
    #[inline(always)]
    fn one() -> Self {
        Self { mantissa: [1.0; LANES], exponent: [0; LANES] }
    }

    /// Brings mantissas back to `[1, 2)`.
    #[inline(always)]
    fn normalise(&mut self) {
        for lane in 0..LANES {
            let bits = self.mantissa[lane].to_bits();
            self.exponent[lane] += (bits >> 23) as i32 - 127;
            self.mantissa[lane] = f32::from_bits((bits & 0x007f_ffff) | 0x3f80_0000);
        }
    }
}

vectorised! {
    fn scores(head: Head<'_>, keys: &[f32], stride: usize, sorted: &mut Sorted, into: &mut [f32]) {
        // The product is of squares.
        let scale = 0.5 * head.power as f32;
        for (query, row) in into.chunks_exact_mut(stride).enumerate() {
            let q = &head.q[query * head.row_q..];
            let (near, far) = sorted.split(head, query);
            for start in vectors(head.keys(query)) {
                let mut product = Product::one();
                for some in near.chunks(NEAR_FACTORS) {
                    for &d in some {
                        let (q, r, k) = (q[d], head.r[d], at(keys, d * stride + start));
                        for (mantissa, k) in product.mantissa.iter_mut().zip(k) {
                            let x = (q - k) * r;
                            let square = x * x;
                            // Keys in the vector that are not visible may be far.
                            let factor = sinc::near(if square < NEAR { square } else { NEAR });
                            *mantissa *= factor * factor;
                        }
                    }
                    product.normalise();
                }
                for &d in far {
                    let (q, r, k) = (q[d], head.r[d], at(keys, d * stride + start));
                    for (mantissa, k) in product.mantissa.iter_mut().zip(k) {
                        *mantissa *= sinc::square((q - k) * r);
                    }
                    product.normalise();
                }
                let parts = product.exponent.iter().zip(&product.mantissa);
                for (score, (exponent, mantissa)) in at_mut(row, start).iter_mut().zip(parts) {
                    let exponent = *exponent as f32 * std::f32::consts::LN_2;
                    *score = scale * (exponent + ln(*mantissa));
                }
            }
        }
    }

    fn backward(
        head: Head<'_>,
        keys: &[f32],
        stride: usize,
        sorted: &mut Sorted,
        by_scores: &[f32],
        by_q: &mut [f32],
        by_q_row: usize,
        by_keys: &mut [f32],
        by_r: &mut [f32],
    ) {
        let power = head.power as f32;
        for (query, by_scores) in by_scores.chunks_exact(stride).enumerate() {
            let q = &head.q[query * head.row_q..];
            let by_q = &mut by_q[query * by_q_row..];
            let (near, far) = sorted.split(head, query);
            let visible = head.keys(query);
            let mut by_dimension = |d: usize, [by_x, by_x_apart]: [f32; 2]| {
                by_q[d] = power * head.r[d] * by_x;
                by_r[d] += power * by_x_apart;
            };
            for &d in near {
                let (k, by_k) = (&keys[d * stride..], &mut by_keys[d * stride..]);
                let sums = slopes::<true>(q[d], head.r[d], k, by_scores, by_k, visible.clone());
                by_dimension(d, sums);
            }
            for &d in far {
                let (k, by_k) = (&keys[d * stride..], &mut by_keys[d * stride..]);
                let sums = slopes::<false>(q[d], head.r[d], k, by_scores, by_k, visible.clone());
                by_dimension(d, sums);
            }
        }
    }
}

/// One query and one dimension: subtracts from `by_k` the gradients by `R` times the keys,
/// and returns that by `R` times the query and that by `R`, all for a power of 1.
#[inline(always)]
fn slopes<const IS_NEAR: bool>(
    q: f32,
    r: f32,
    k: &[f32],
    by_scores: &[f32],
    by_k: &mut [f32],
    visible: Range<usize>,
) -> [f32; 2] {
    let (mut by_q, mut by_r) = ([0.0; LANES], [0.0; LANES]);
    for start in vectors(visible) {
        let (k, by_score, by_k) = (at(k, start), at(by_scores, start), at_mut(by_k, start));
        for lane in 0..LANES {
            let apart = q - k[lane];
            let x = apart * r;
            let slope = if IS_NEAR {
                let square = x * x;
                sinc::near_slope(x, if square < NEAR { square } else { NEAR })
            } else {
                sinc::slope(x)
            };
            let by = by_score[lane] * slope;
            by_k[lane] -= by;
            by_q[lane] += by;
            by_r[lane] += by * apart;
        }
    }
    [total(by_q), total(by_r)]
}

impl Plan {
    fn head<'a>(&self, index: usize, q: &'a [f32], k: &'a [f32], r: &'a [f32]) -> Head<'a> {
        let d_head = r.len() / self.heads;
        let start = index * self.tokens * d_head;
        Head {
            q: &q[start..],
            row_q: d_head,
            k: &k[start..],
            row_k: d_head,
            queries: Queries::ALL,
            tokens: self.tokens,
            r: &r[index % self.heads * d_head..][..d_head],
            power: self.power,
            visible: Visible::All,
        }
    }

    /// `[batch, heads, tokens, tokens]`
    pub fn scores(&self, q: &[f32], k: &[f32], r: &[f32]) -> Vec<f32> {
        let n = self.tokens;
        let n_heads = q.len() * self.heads / (n * r.len());
        let mut out = vec![0.0; n_heads * n * n];
        out.par_chunks_mut(n * n).enumerate().for_each(|(i, out)| {
            let head = self.head(i, q, k, r);
            with_scratch([n * head.stride()], |[padded]| {
                head.scores(padded);
                let rows = padded.chunks_exact(head.stride());
                for (out, row) in out.chunks_exact_mut(n).zip(rows) {
                    out.copy_from_slice(&row[..n]);
                }
            });
        });
        out
    }

    /// Gradients by queries, keys and `R`.
    pub fn gradients(&self, q: &[f32], k: &[f32], r: &[f32], gradient: &[f32]) -> [Vec<f32>; 3] {
        let n = self.tokens;
        let d_head = r.len() / self.heads;
        let size = n * d_head;
        let (mut by_q, mut by_k) = (vec![0.0; q.len()], vec![0.0; k.len()]);
        let mut by_each_r = vec![0.0; q.len() / n];
        by_q.par_chunks_mut(size)
            .zip(by_k.par_chunks_mut(size))
            .zip(by_each_r.par_chunks_mut(d_head))
            .zip(gradient.par_chunks(n * n))
            .enumerate()
            .for_each(|(i, (((by_q, by_k), by_r), gradient))| {
                let head = self.head(i, q, k, r);
                let stride = head.stride();
                with_scratch([n * stride], |[padded]| {
                    for (into, row) in padded.chunks_exact_mut(stride).zip(gradient.chunks(n)) {
                        into[..n].copy_from_slice(row);
                        into[n..].fill(0.0);
                    }
                    let by = Destination { q: by_q, row_q: d_head, k: by_k, row_k: d_head };
                    head.backward(padded, by, by_r);
                });
            });
        let mut by_r = vec![0.0; r.len()];
        add_rows(&by_each_r, &mut by_r);
        [by_q, by_k, by_r]
    }
}
