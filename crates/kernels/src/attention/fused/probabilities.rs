//! Causal softmax and its gradient, over rows padded to whole vectors.

use multiversion::multiversion;

use std::ops::Range;

use crate::Queries;
use crate::mask::Mask;
use crate::math::exp;
use crate::simd::fold;

/// Rows of scores are padded to a multiple of this: a row then consists of whole registers, and
/// loops over it have no remainder.
pub(super) use crate::simd::LANES;

type Lanes = [f32; LANES];

/// The visible keys of a sequence's queries: their own token and earlier ones.
#[derive(Clone, Copy)]
pub(super) struct VisibleKeys {
    /// Earlier tokens are padding. A padding token sees itself, so that every row has a visible
    /// key.
    pub first_token: usize,
    pub queries: Queries,
}

impl VisibleKeys {
    /// The keys that a query sees.
    #[inline(always)]
    fn keys(self, query: usize) -> Range<usize> {
        let token = self.queries.token(query);
        self.first_token.min(token)..token + 1
    }

    /// The vectors that hold them, as a range of elements.
    #[inline(always)]
    fn window(self, query: usize) -> Range<usize> {
        let Range { start, end } = self.keys(query);
        start / LANES * LANES..end.next_multiple_of(LANES)
    }
}

#[inline(always)]
fn lanes(row: &[f32]) -> impl Iterator<Item = &Lanes> {
    row.as_chunks().0.iter()
}

#[inline(always)]
fn lanes_mut(row: &mut [f32]) -> impl Iterator<Item = &mut Lanes> {
    row.as_chunks_mut().0.iter_mut()
}

/// In place, row by row: scores to probabilities, `exp(s − max) / Σ exp(s − max)`, and 0 for
/// invisible keys. `nothing` is one more score of every row, whose probability is left out; `-∞`:
/// none.
#[multiversion(targets = "simd")]
pub(super) fn softmax(scores: &mut [f32], stride: usize, visible: VisibleKeys, nothing: f32) {
    for (query, row) in scores.chunks_exact_mut(stride).enumerate() {
        let (keys, window) = (visible.keys(query), visible.window(query));
        row[window.start..keys.start].fill(f32::NEG_INFINITY);
        row[keys.end..window.end].fill(f32::NEG_INFINITY);
        row[..window.start].fill(0.0);
        row[window.end..].fill(0.0);
        let row = &mut row[window];

        let mut largest = [f32::NEG_INFINITY; LANES];
        for scores in lanes(row) {
            for lane in 0..LANES {
                let score = scores[lane];
                largest[lane] = if score > largest[lane] { score } else { largest[lane] };
            }
        }
        let largest = fold(largest, |a, b| if a > b { a } else { b });
        let largest = if nothing > largest { nothing } else { largest };
        let mut totals = [0.0; LANES];
        for scores in lanes_mut(row) {
            for lane in 0..LANES {
                scores[lane] = exp(scores[lane] - largest);
                totals[lane] += scores[lane];
            }
        }
        let scale = 1.0 / (fold(totals, |a, b| a + b) + exp(nothing - largest));
        for probs in lanes_mut(row) {
            for prob in probs {
                *prob *= scale;
            }
        }
    }
}

/// Probabilities after dropout; the mask's rows start at `first_row`.
#[multiversion(targets = "simd")]
pub(super) fn drop(
    probs: &[f32],
    stride: usize,
    visible: VisibleKeys,
    mask: Mask,
    first_row: usize,
    into: &mut [f32],
) {
    let rows = probs.chunks_exact(stride).zip(into.chunks_exact_mut(stride));
    for (query, (probs, into)) in rows.enumerate() {
        let mask = mask.row(first_row + query);
        let window = visible.window(query);
        into[..window.start].fill(0.0);
        into[window.end..].fill(0.0);
        let mut column = window.start as u32;
        for (probs, into) in lanes(&probs[window.clone()]).zip(lanes_mut(&mut into[window])) {
            for lane in 0..LANES {
                into[lane] = probs[lane] * mask.factor(column + lane as u32);
            }
            column += LANES as u32;
        }
    }
}

/// In place: from the gradient of the dropped probabilities to the gradient of the scores,
/// `ds = p ⊙ (m ⊙ da − Σⱼ pⱼ mⱼ daⱼ)`.
///
/// `inner[i]` is that sum, `Σⱼ aᵢⱼ daᵢⱼ`. With `o = a v` and `da = do vᵀ` it is
/// `Σ_c o[i, c] · do[i, c]`, which the caller computes with `d_head` products.
#[multiversion(targets = "simd")]
pub(super) fn softmax_backward(
    probs: &[f32],
    gradient: &mut [f32],
    stride: usize,
    visible: VisibleKeys,
    mask: Option<Mask>,
    first_row: usize,
    inner: &[f32],
) {
    let rows = probs.chunks_exact(stride).zip(gradient.chunks_exact_mut(stride)).zip(inner);
    for (query, ((probs, gradient), inner)) in rows.enumerate() {
        let window = visible.window(query);
        gradient[..window.start].fill(0.0);
        gradient[window.end..].fill(0.0);
        let mut column = window.start as u32;
        let row = mask.map(|mask| mask.row(first_row + query));
        let all = lanes(&probs[window.clone()]).zip(lanes_mut(&mut gradient[window]));
        match row {
            Some(row) => {
                for (probs, gradient) in all {
                    for lane in 0..LANES {
                        let kept = gradient[lane] * row.factor(column + lane as u32);
                        gradient[lane] = probs[lane] * (kept - inner);
                    }
                    column += LANES as u32;
                }
            }
            None => {
                for (probs, gradient) in all {
                    for lane in 0..LANES {
                        gradient[lane] = probs[lane] * (gradient[lane] - inner);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_of_visible_keys() {
        // Three tokens, the first of them padding.
        let visible = VisibleKeys { first_token: 1, queries: Queries::ALL };
        let mut scores = vec![f32::NAN; 3 * LANES];
        for query in 0..3 {
            scores[query * LANES..][..3].copy_from_slice(&[1.0, 2.0, 2.0 + 3.0f32.ln()]);
        }
        softmax(&mut scores, LANES, visible, f32::NEG_INFINITY);
        assert_eq!(scores[..4], [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(scores[LANES..][..4], [0.0, 1.0, 0.0, 0.0]);
        // e² : 3 e²
        assert!((scores[2 * LANES + 1] - 0.25).abs() < 1e-6);
        assert!((scores[2 * LANES + 2] - 0.75).abs() < 1e-6);
        assert!(scores[2 * LANES + 3..].iter().all(|prob| *prob == 0.0));

        // Only the last of them.
        let mut last = vec![f32::NAN; LANES];
        last[..3].copy_from_slice(&[1.0, 2.0, 2.0 + 3.0f32.ln()]);
        let visible = VisibleKeys { queries: Queries::one(2, 3), ..visible };
        softmax(&mut last, LANES, visible, f32::NEG_INFINITY);
        assert_eq!(last, scores[2 * LANES..]);
    }

    #[test]
    fn the_extra_score_reduces_the_probabilities() {
        // Weights 1 and 2, and 5 for the extra score; then far below it.
        let visible = VisibleKeys { first_token: 0, queries: Queries::ALL };
        let mut scores = vec![0.0; 2 * LANES];
        scores[LANES + 1] = 2.0f32.ln();
        softmax(&mut scores, LANES, visible, 5.0f32.ln());
        for (prob, expected) in [(scores[0], 1.0 / 6.0), (scores[LANES + 1], 0.25)] {
            assert!((prob - expected).abs() < 1e-6, "{prob}");
        }
        scores[..2].copy_from_slice(&[-200.0, 0.0]);
        softmax(&mut scores[..LANES], LANES, visible, -10.0);
        assert_eq!(scores[0], 0.0);
    }
}
