//! Causal softmax and its gradient, over rows padded to whole vectors.

use crate::dropout::Mask;
use crate::math::exp;
use crate::simd::vectorised;

/// Rows of scores are padded to a multiple of this.
pub(super) const LANES: usize = 16;

type Lanes = [f32; LANES];

/// The vectors of a row that hold keys which the query may see, as a range of elements.
#[inline(always)]
fn window(query: usize, first: usize) -> std::ops::Range<usize> {
    first / LANES * LANES..(query + 1).next_multiple_of(LANES)
}

#[inline(always)]
fn lanes(row: &[f32]) -> impl Iterator<Item = &Lanes> {
    row.as_chunks().0.iter()
}

#[inline(always)]
fn lanes_mut(row: &mut [f32]) -> impl Iterator<Item = &mut Lanes> {
    row.as_chunks_mut().0.iter_mut()
}

/// The result of combining all lanes.
#[inline(always)]
fn fold(lanes: Lanes, combine: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = lanes;
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = combine(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// First key that a query may see.
#[inline(always)]
fn first_key(query: usize, first_token: usize) -> usize {
    // Padding sees itself, so that every row has something to see.
    first_token.min(query)
}

vectorised! {
    /// In place, row by row: scores to probabilities; what a query may not see gets zero.
    /// `nothing` is one more score of every row, whose probability is left out; `-∞`: none.
    pub(super) fn softmax(scores: &mut [f32], stride: usize, first_token: usize, nothing: f32) {
        for (query, row) in scores.chunks_exact_mut(stride).enumerate() {
            let first = first_key(query, first_token);
            let window = window(query, first);
            row[window.start..first].fill(f32::NEG_INFINITY);
            row[query + 1..window.end].fill(f32::NEG_INFINITY);
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

    /// Probabilities after dropout; the mask's rows begin at `first_row`.
    pub(super) fn drop(
        probs: &[f32],
        stride: usize,
        first_token: usize,
        mask: Mask,
        first_row: usize,
        into: &mut [f32],
    ) {
        let rows = probs.chunks_exact(stride).zip(into.chunks_exact_mut(stride));
        for (query, (probs, into)) in rows.enumerate() {
            let mask = mask.row(first_row + query);
            let window = window(query, first_key(query, first_token));
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

    /// In place: the gradient by the dropped probabilities to that by the scores.
    ///
    /// `inner[i]` is `Σⱼ dropped[i, j] · gradient[i, j]`, from the gradient by the mixed
    /// values: `Σ_c mixed[i, c] · by_mixed[i, c]`.
    pub(super) fn softmax_backward(
        probs: &[f32],
        gradient: &mut [f32],
        stride: usize,
        first_token: usize,
        mask: Option<Mask>,
        first_row: usize,
        inner: &[f32],
    ) {
        let rows = probs.chunks_exact(stride).zip(gradient.chunks_exact_mut(stride)).zip(inner);
        for (query, ((probs, gradient), inner)) in rows.enumerate() {
            let window = window(query, first_key(query, first_token));
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_of_what_may_be_seen() {
        // Three tokens, the first of them padding.
        let mut scores = vec![f32::NAN; 3 * LANES];
        for query in 0..3 {
            scores[query * LANES..][..3].copy_from_slice(&[1.0, 2.0, 2.0 + 3.0f32.ln()]);
        }
        softmax(&mut scores, LANES, 1, f32::NEG_INFINITY);
        assert_eq!(scores[..4], [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(scores[LANES..][..4], [0.0, 1.0, 0.0, 0.0]);
        // e² : 3 e²
        assert!((scores[2 * LANES + 1] - 0.25).abs() < 1e-6);
        assert!((scores[2 * LANES + 2] - 0.75).abs() < 1e-6);
        assert!(scores[2 * LANES + 3..].iter().all(|prob| *prob == 0.0));
    }

    #[test]
    fn nothing_takes_its_share() {
        // Weights 1 and 2 beside 5; then far below it.
        let mut scores = vec![0.0; 2 * LANES];
        scores[LANES + 1] = 2.0f32.ln();
        softmax(&mut scores, LANES, 0, 5.0f32.ln());
        for (prob, expected) in [(scores[0], 1.0 / 6.0), (scores[LANES + 1], 0.25)] {
            assert!((prob - expected).abs() < 1e-6, "{prob}");
        }
        scores[..2].copy_from_slice(&[-200.0, 0.0]);
        softmax(&mut scores[..LANES], LANES, 0, -10.0);
        assert_eq!(scores[0], 0.0);
    }
}
