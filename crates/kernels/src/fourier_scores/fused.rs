//! The scores of one head on slices, sixteen keys at a time; their gradients sixteen
//! dimensions at a time.
//!
//! Queries and keys are first multiplied by `R`. If a dimension of a query is near all its visible
//! keys, the logarithm of `sinc` is a polynomial. Otherwise its square is multiplied into a
//! product, and the logarithm of the product is computed once.

mod backward;
mod forward;
mod nearness;

use std::ops::Range;

use rayon::prelude::*;

use super::sinc;
use crate::Queries;
use crate::buffer::Buffer;
use crate::rows::add_rows;
use crate::scratch::with_scratch;

/// Keys or dimensions in a vector; rows of scores are padded to a multiple of it.
const LANES: usize = 16;

type Lanes = [f32; LANES];

/// The computation of a call on tensors, without its inputs.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScoresPlan {
    pub heads: usize,
    pub queries: usize,
    pub keys: usize,
    pub power: u32,
}

/// The keys that a query is compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Visible {
    /// All.
    All,
    /// Itself and earlier ones from `first_token` on; only itself before that.
    Causal { first_token: usize },
}

impl Visible {
    /// The visible keys of the query at this token.
    fn keys(self, token: usize, tokens: usize) -> Range<usize> {
        match self {
            Self::All => 0..tokens,
            Self::Causal { first_token } => first_token.min(token)..token + 1,
        }
    }
}

/// One head of one sequence.
#[derive(Clone, Copy)]
pub(crate) struct ScoredHead<'a> {
    /// `[n_queries, d_head]`, rows `row_q` apart.
    pub q: &'a [f32],
    pub row_q: usize,
    /// `[tokens, d_head]`, rows `row_k` apart.
    pub k: &'a [f32],
    pub row_k: usize,
    pub n_queries: usize,
    /// The tokens that are queries, if queries and keys have the same tokens.
    pub queries: Queries,
    /// Keys.
    pub tokens: usize,
    /// `R`: `[d_head]`.
    pub r: &'a [f32],
    pub power: u32,
    pub visible: Visible,
}

/// Destinations of the gradients of queries and keys, laid out as in [`ScoredHead`].
pub(crate) struct Destination<'a> {
    pub q: &'a mut [f32],
    pub row_q: usize,
    pub k: &'a mut [f32],
    pub row_k: usize,
}

impl ScoredHead<'_> {
    fn stride(&self) -> usize {
        self.tokens.next_multiple_of(LANES)
    }

    fn d_head(&self) -> usize {
        self.r.len()
    }

    /// The visible keys of a query.
    #[inline(always)]
    fn keys(&self, query: usize) -> Range<usize> {
        self.visible.keys(self.queries.token(query), self.tokens)
    }

    /// Its dimensions in blocks of sixteen.
    fn blocks(&self) -> impl Iterator<Item = DimensionBlock<'_>> {
        (0..self.d_head()).step_by(LANES).map(|start| DimensionBlock::new(*self, start))
    }

    /// The scores of every query's visible keys, in rows padded to whole vectors; other elements
    /// are arbitrary.
    pub fn scores(&self, into: &mut [f32]) {
        let (stride, blocks) = (self.stride(), self.blocks().collect::<Vec<_>>());
        assert_eq!(into.len(), self.n_queries * stride, "rows are padded to whole vectors");
        let size = blocks.len() * LANES * stride;
        with_scratch([size, size, stride, stride], |[keys, plain, products, exponents]| {
            forward::scores(*self, &blocks, keys, plain, [products, exponents], into);
        });
    }

    /// Gradients from the gradient of the scores, which must be zero for invisible keys. The
    /// gradients of queries and keys are written to `by`; the gradient of `R` is added to `by_r`.
    pub fn backward(&self, by_scores: &[f32], by: Destination<'_>, by_r: &mut [f32]) {
        let size = self.n_queries * self.stride();
        assert_eq!(by_scores.len(), size, "rows are padded to whole vectors");
        let size = self.tokens * LANES;
        with_scratch([size, size], |[keys, by_keys]| {
            let [keys, by_keys] = [keys, by_keys].map(|memory| memory.as_chunks_mut().0);
            let mut by = by;
            for block in self.blocks() {
                let by_r = &mut by_r[block.start..][..block.width];
                backward::gradients(block, keys, by_keys, by_scores, &mut by, by_r);
            }
        });
    }
}

/// At most sixteen dimensions of a head, padded with zeros.
#[derive(Clone, Copy)]
struct DimensionBlock<'a> {
    head: ScoredHead<'a>,
    start: usize,
    /// Dimensions that are not padding.
    width: usize,
    r: Lanes,
}

impl<'a> DimensionBlock<'a> {
    fn new(head: ScoredHead<'a>, start: usize) -> Self {
        let width = LANES.min(head.d_head() - start);
        Self { head, start, width, r: load(&head.r[start..], width) }
    }

    /// The start of these dimensions in a row; rows are `row` apart.
    #[inline(always)]
    fn place(&self, index: usize, row: usize) -> usize {
        index * row + self.start
    }

    #[inline(always)]
    fn query(&self, query: usize) -> Lanes {
        load(&self.head.q[self.place(query, self.head.row_q)..], self.width)
    }

    #[inline(always)]
    fn key(&self, token: usize) -> Lanes {
        load(&self.head.k[self.place(token, self.head.row_k)..], self.width)
    }

    /// The product with `R`.
    #[inline(always)]
    fn scaled(&self, values: Lanes) -> Lanes {
        product(&values, &self.r)
    }
}

#[inline(always)]
fn combine(a: &Lanes, b: &Lanes, f: impl Fn(f32, f32) -> f32) -> Lanes {
    let mut combined = [0.0; LANES];
    for lane in 0..LANES {
        combined[lane] = f(a[lane], b[lane]);
    }
    combined
}

#[inline(always)]
fn product(a: &Lanes, b: &Lanes) -> Lanes {
    combine(a, b, |a, b| a * b)
}

/// The first `width` of `values`, then zeros.
#[inline(always)]
fn load(values: &[f32], width: usize) -> Lanes {
    match values.first_chunk() {
        Some(lanes) if width == LANES => *lanes,
        _ => {
            let mut lanes = [0.0; LANES];
            lanes[..width].copy_from_slice(&values[..width]);
            lanes
        }
    }
}

/// Copies the first `width` lanes to the start of `into`.
#[inline(always)]
fn store(lanes: &Lanes, width: usize, into: &mut [f32]) {
    match into.first_chunk_mut() {
        Some(into) if width == LANES => *into = *lanes,
        _ => into[..width].copy_from_slice(&lanes[..width]),
    }
}

impl ScoresPlan {
    fn head<'a>(&self, index: usize, q: &'a [f32], k: &'a [f32], r: &'a [f32]) -> ScoredHead<'a> {
        let d_head = r.len() / self.heads;
        ScoredHead {
            q: &q[index * self.queries * d_head..],
            row_q: d_head,
            k: &k[index * self.keys * d_head..],
            row_k: d_head,
            n_queries: self.queries,
            queries: Queries::ALL,
            tokens: self.keys,
            r: &r[index % self.heads * d_head..][..d_head],
            power: self.power,
            visible: Visible::All,
        }
    }

    /// `[batch, heads, queries, keys]`
    pub fn scores(&self, q: &[f32], k: &[f32], r: &[f32]) -> Buffer {
        let size = self.queries * self.keys;
        let n_heads = q.len() * self.heads / (self.queries * r.len());
        let mut out = Buffer::new(n_heads * size);
        out.par_chunks_mut(size).enumerate().for_each(|(i, out)| {
            let head = self.head(i, q, k, r);
            with_scratch([self.queries * head.stride()], |[padded]| {
                head.scores(padded);
                let rows = padded.chunks_exact(head.stride());
                for (out, row) in out.chunks_exact_mut(self.keys).zip(rows) {
                    out.copy_from_slice(&row[..self.keys]);
                }
            });
        });
        out
    }

    /// Gradients of queries, keys and `R`.
    pub fn gradients(&self, q: &[f32], k: &[f32], r: &[f32], gradient: &[f32]) -> [Buffer; 3] {
        let Self { queries, keys, .. } = *self;
        let d_head = r.len() / self.heads;
        let (mut by_q, mut by_k) = (Buffer::new(q.len()), Buffer::new(k.len()));
        let mut by_each_r = vec![0.0; q.len() / queries];
        by_q.par_chunks_mut(queries * d_head)
            .zip(by_k.par_chunks_mut(keys * d_head))
            .zip(by_each_r.par_chunks_mut(d_head))
            .zip(gradient.par_chunks(queries * keys))
            .enumerate()
            .for_each(|(i, (((by_q, by_k), by_r), gradient))| {
                let head = self.head(i, q, k, r);
                let stride = head.stride();
                with_scratch([queries * stride], |[padded]| {
                    for (into, row) in padded.chunks_exact_mut(stride).zip(gradient.chunks(keys)) {
                        into[..keys].copy_from_slice(row);
                        into[keys..].fill(0.0);
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
