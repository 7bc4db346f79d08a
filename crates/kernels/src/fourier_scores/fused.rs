//! The scores of one head on slices, sixteen keys at a time; their gradients sixteen
//! dimensions at a time.
//!
//! The squares of the factors are multiplied and their product's logarithm taken once;
//! exponents are counted apart, so that the product cannot underflow.

use std::ops::Range;

use rayon::prelude::*;

use super::sinc::{self, NEAR};
use crate::Queries;
use crate::buffer::Buffer;
use crate::math::ln;
use crate::rows::add_rows;
use crate::scratch::with_scratch;
use crate::simd::vectorised;

/// Keys or dimensions in a vector; rows of scores are padded to a multiple of it.
const LANES: usize = 16;

type Lanes = [f32; LANES];

/// Factors near 1, none below 0.2, that may be multiplied before the exponent is set apart.
const NEAR_FACTORS: usize = 48;

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
        let stride = self.stride();
        with_scratch([self.d_head() * stride, stride], |[keys, exponents]| {
            self.transpose_keys(keys);
            scores(*self, keys, stride, &mut Seen::new(self.d_head()), exponents, into);
        });
    }

    /// Gradients, given that by the scores, which is zero where nothing is visible: by
    /// queries and keys into `by`, that by `R` is added to `by_r`.
    pub fn backward(&self, by_scores: &[f32], by: Destination<'_>, by_r: &mut [f32]) {
        let (stride, d_head) = (self.stride(), self.d_head());
        assert_eq!(by_scores.len(), self.n_queries() * stride, "rows are padded to whole vectors");
        let width = d_head.next_multiple_of(LANES);
        let size = self.tokens * width;
        with_scratch([size, size, width, width], |[keys, by_keys, r, by_each_r]| {
            for (into, key) in keys.chunks_exact_mut(width).zip(self.k.chunks(self.row_k)) {
                into[..d_head].copy_from_slice(&key[..d_head]);
                into[d_head..].fill(0.0);
            }
            r[..d_head].copy_from_slice(self.r);
            r[d_head..].fill(0.0);
            by_keys.fill(0.0);
            by_each_r.fill(0.0);
            let padded = Padded { keys, r, stride };
            let seen = &mut Seen::new(d_head);
            backward(*self, padded, seen, by_scores, by.q, by.row_q, by_keys, by_each_r);
            let power = self.power as f32;
            for (into, by_key) in by.k.chunks_mut(by.row_k).zip(by_keys.chunks_exact(width)) {
                for d in 0..d_head {
                    into[d] = power * r[d] * by_key[d];
                }
            }
            for (by_r, by_each) in by_r.iter_mut().zip(&*by_each_r) {
                *by_r += power * by_each;
            }
        });
    }
}

/// What the backward pass reads, padded to whole vectors of dimensions.
#[derive(Clone, Copy)]
struct Padded<'a> {
    /// `[tokens, width]`, zero in the padding.
    keys: &'a [f32],
    /// `[width]`, zero in the padding.
    r: &'a [f32],
    /// From one query's scores to the next one's.
    stride: usize,
}

/// Bounds of the keys that a query sees, which tell where it is near all of them.
///
/// They depend on what it sees alone: not on the future, nor on padding.
struct Seen {
    keys: Range<usize>,
    /// By dimension.
    lowest: Vec<f32>,
    /// By dimension.
    highest: Vec<f32>,
    /// The dimensions, those first in which the query is near all keys.
    sorted: Vec<usize>,
}

impl Seen {
    fn new(d_head: usize) -> Self {
        let [lowest, highest] = [0.0; 2].map(|bound| vec![bound; d_head]);
        Self { keys: 0..0, lowest, highest, sorted: (0..d_head).collect() }
    }

    /// Turns to a query. Queries come in order.
    #[inline(always)]
    fn turn_to(&mut self, head: Head<'_>, query: usize) {
        let keys = head.keys(query);
        if self.keys.start != keys.start || self.keys.is_empty() {
            self.keys = keys.start..keys.start;
            self.lowest.fill(f32::INFINITY);
            self.highest.fill(f32::NEG_INFINITY);
        }
        for key in self.keys.end..keys.end {
            let key = &head.k[key * head.row_k..];
            for ((lowest, highest), k) in self.lowest.iter_mut().zip(&mut self.highest).zip(key) {
                *lowest = lowest.min(*k);
                *highest = highest.max(*k);
            }
        }
        self.keys.end = keys.end;
    }

    /// In how many dimensions from `start` on the query is near all keys.
    #[inline(always)]
    fn n_near(&self, q: &[f32], r: &[f32], start: usize) -> usize {
        let bounds = self.lowest[start..].iter().zip(&self.highest[start..]);
        let near = |q: f32, r: f32, low: f32, high: f32| {
            // Rounding is monotone: no key's own product is larger.
            let [low, high] = [(q - low) * r, (q - high) * r];
            u32::from(low * low <= NEAR) & u32::from(high * high <= NEAR)
        };
        let all = q.iter().zip(r).zip(bounds);
        all.map(|((q, r), (low, high))| near(*q, *r, *low, *high)).sum::<u32>() as usize
    }

    /// The dimensions in which the query is near all keys, and the others.
    #[inline(always)]
    fn split(&mut self, q: &[f32], r: &[f32]) -> (&[usize], &[usize]) {
        let n_near = self.n_near(&q[..r.len()], r, 0);
        if n_near == r.len() {
            self.sorted.iter_mut().enumerate().for_each(|(d, sorted)| *sorted = d);
        } else {
            let (mut near, mut far) = (0, n_near);
            for d in 0..r.len() {
                let is_near = self.n_near(&q[d..=d], &r[d..=d], d) == 1;
                let place = if is_near { &mut near } else { &mut far };
                self.sorted[*place] = d;
                *place += 1;
            }
        }
        self.sorted.split_at(n_near)
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

/// The whole vectors that hold these keys, as a range of elements.
#[inline(always)]
fn window(keys: Range<usize>) -> Range<usize> {
    keys.start / LANES * LANES..keys.end.next_multiple_of(LANES)
}

/// `sinc` at one dimension of the query and a key, which are near.
#[inline(always)]
fn near_factor(k: f32, [q, r]: [f32; 2]) -> f32 {
    let x = (q - k) * r;
    // Keys in the vector that are not visible may be far.
    sinc::near((x * x).min(NEAR))
}

/// `products *= sinc²` at one dimension of the query and some keys, all near.
#[inline(always)]
fn multiply_near(products: &mut [f32], keys: &[f32], q: [f32; 2]) {
    for (product, k) in products.iter_mut().zip(keys) {
        let factor = near_factor(*k, q);
        *product *= factor * factor;
    }
}

/// The same at two dimensions.
#[inline(always)]
fn multiply_near_two(products: &mut [f32], keys: [&[f32]; 2], q: [[f32; 2]; 2]) {
    for ((product, one), two) in products.iter_mut().zip(keys[0]).zip(keys[1]) {
        let factor = near_factor(*one, q[0]) * near_factor(*two, q[1]);
        *product *= factor * factor;
    }
}

/// The same at one dimension, wherever the keys are.
#[inline(always)]
fn multiply_far(products: &mut [f32], keys: &[f32], q: f32, r: f32) {
    for (product, k) in products.iter_mut().zip(keys) {
        *product *= sinc::square((q - k) * r);
    }
}

/// Takes powers of two out of products, to `[1, 2)`, and adds their exponents.
#[inline(always)]
fn normalise(products: &mut [f32], exponents: &mut [f32]) {
    for (product, exponent) in products.iter_mut().zip(exponents) {
        let bits = product.to_bits();
        *exponent += ((bits >> 23) as i32 - 127) as f32;
        *product = f32::from_bits((bits & 0x007f_ffff) | 0x3f80_0000);
    }
}

vectorised! {
    fn scores(
        head: Head<'_>,
        keys: &[f32],
        stride: usize,
        seen: &mut Seen,
        exponents: &mut [f32],
        into: &mut [f32],
    ) {
        // The product is of squares.
        let scale = 0.5 * head.power as f32;
        for (query, row) in into.chunks_exact_mut(stride).enumerate() {
            let q = &head.q[query * head.row_q..];
            seen.turn_to(head, query);
            let (near, far) = seen.split(q, head.r);
            let window = window(head.keys(query));
            let (products, exponents) = (&mut row[window.clone()], &mut exponents[window.clone()]);
            products.fill(1.0);
            exponents.fill(0.0);
            for some in near.chunks(NEAR_FACTORS) {
                let keys = |d: usize| &keys[d * stride..][window.clone()];
                let q = |d: usize| [q[d], head.r[d]];
                let (pairs, rest) = some.as_chunks();
                for &pair in pairs {
                    multiply_near_two(products, pair.map(keys), pair.map(q));
                }
                for &d in rest {
                    multiply_near(products, keys(d), q(d));
                }
                normalise(products, exponents);
            }
            for &d in far {
                multiply_far(products, &keys[d * stride..][window.clone()], q[d], head.r[d]);
                normalise(products, exponents);
            }
            for (score, exponent) in products.iter_mut().zip(exponents) {
                *score = scale * (*exponent * std::f32::consts::LN_2 + ln(*score));
            }
        }
    }

    fn backward(
        head: Head<'_>,
        padded: Padded<'_>,
        seen: &mut Seen,
        by_scores: &[f32],
        by_q: &mut [f32],
        row_q: usize,
        by_keys: &mut [f32],
        by_r: &mut [f32],
    ) {
        let (power, d_head) = (head.power as f32, head.d_head());
        for (query, by_scores) in by_scores.chunks_exact(padded.stride).enumerate() {
            let q = &head.q[query * head.row_q..][..d_head];
            let by_q = &mut by_q[query * row_q..][..d_head];
            seen.turn_to(head, query);
            for (i, (q, by_q)) in q.chunks(LANES).zip(by_q.chunks_mut(LANES)).enumerate() {
                let start = i * LANES;
                let r = at(padded.r, start);
                let mut lanes = [0.0; LANES];
                lanes[..q.len()].copy_from_slice(q);
                let is_near = seen.n_near(q, r, start) == q.len();
                let (keys, by_r) = (head.keys(query), at_mut(by_r, start));
                // Not through a function pointer: that would not be compiled for vectors.
                let by = if is_near {
                    slopes::<true>(&lanes, r, padded, by_scores, by_keys, keys, start, by_r)
                } else {
                    slopes::<false>(&lanes, r, padded, by_scores, by_keys, keys, start, by_r)
                };
                for (d, by_q) in by_q.iter_mut().enumerate() {
                    *by_q = power * r[d] * by[d];
                }
            }
        }
    }
}

/// One query and sixteen dimensions from `start` on: subtracts from `by_keys` the gradients
/// by `R` times the keys, adds to `by_r` that by `R`, and returns that by `R` times the query,
/// all for a power of 1.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn slopes<const IS_NEAR: bool>(
    q: &Lanes,
    r: &Lanes,
    padded: Padded<'_>,
    by_scores: &[f32],
    by_keys: &mut [f32],
    keys: Range<usize>,
    start: usize,
    by_r: &mut Lanes,
) -> Lanes {
    let width = padded.r.len();
    let (mut by_q, mut by_each_r) = ([0.0; LANES], *by_r);
    for key in keys {
        let by_score = by_scores[key];
        let k = at(padded.keys, key * width + start);
        let by_k = at_mut(by_keys, key * width + start);
        for lane in 0..LANES {
            let apart = q[lane] - k[lane];
            let x = apart * r[lane];
            let slope = if IS_NEAR { sinc::near_slope(x, x * x) } else { sinc::slope(x) };
            let by = by_score * slope;
            by_k[lane] -= by;
            by_q[lane] += by;
            by_each_r[lane] = by.mul_add(apart, by_each_r[lane]);
        }
    }
    *by_r = by_each_r;
    by_q
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
    pub fn scores(&self, q: &[f32], k: &[f32], r: &[f32]) -> Buffer {
        let n = self.tokens;
        let n_heads = q.len() * self.heads / (n * r.len());
        let mut out = Buffer::new(n_heads * n * n);
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
    pub fn gradients(&self, q: &[f32], k: &[f32], r: &[f32], gradient: &[f32]) -> [Buffer; 3] {
        let n = self.tokens;
        let d_head = r.len() / self.heads;
        let size = n * d_head;
        let (mut by_q, mut by_k) = (Buffer::new(q.len()), Buffer::new(k.len()));
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
        let mut by_r = Buffer::zeros(r.len());
        add_rows(&by_each_r, &mut by_r);
        [by_q, by_k, by_r]
    }
}
