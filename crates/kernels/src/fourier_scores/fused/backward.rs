//! The gradients of the scores.
//!
//! `s_ij = power · Σ_d ln |sinc x_ijd|` with `x_ijd = R_d (q_id − k_jd)`, and the slope of
//! `ln |sinc x|` is `σ(x) = cot x − 1/x`. From `ds`, with
//!
//! - `g_id = Σ_j ds_ij σ(x_ijd)` and `h_jd = −Σ_i ds_ij σ(x_ijd)`,
//!
//! the gradients of `R q` and of `R k` for a power of 1, the others are
//!
//! - `dq_id = power · R_d g_id`, `dk_jd = power · R_d h_jd`
//! - `dR_d = power · Σ_ij ds_ij σ(x_ijd) (q_id − k_jd) = power · (Σ_i g_id q_id + Σ_j h_jd k_jd)`
//!
//! Because `Σ_i g_id + Σ_j h_jd = 0`, the same number may be subtracted from all `q_id` and `k_jd`
//! in `dR`. Subtracting the first key preserves digits if queries and keys share a large part.
//!
//! Nothing is kept from the forward pass: the slopes are `tokens² · d_head` numbers per head, and
//! exist only in registers. Sixteen dimensions fill a register; the loop over keys runs once per
//! query.

use multiversion::multiversion;

use super::nearness::{Bounds, IS_NEAR, IS_NEARER, farthest};
use super::sinc::{self, SLOPE, SLOPE_NEARER};
use super::{Destination, DimensionBlock, LANES, Lanes, product, store};
use crate::math::polynomial;

/// Gradients in sixteen dimensions. The gradients of queries and keys are written to `by`; the
/// gradient of `R` is added to `by_r`. `keys` and `by_keys` are working memory, one vector per
/// token.
#[multiversion(targets = "simd")]
pub(super) fn gradients(
    block: DimensionBlock<'_>,
    keys: &mut [Lanes],
    by_keys: &mut [Lanes],
    by_scores: &[f32],
    by: &mut Destination<'_>,
    by_r: &mut [f32],
) {
    let head = block.head;
    for (token, key) in keys.iter_mut().enumerate() {
        *key = block.scaled(block.key(token));
    }
    by_keys.fill([0.0; LANES]);
    let mut scale = block.r;
    for scale in &mut scale {
        *scale *= head.power as f32;
    }
    // Subtracted from queries and keys in the gradient of `R`.
    let centre = block.key(0);
    let mut total = [0.0; LANES];
    let mut add = |by: &Lanes, value: Lanes| {
        for lane in 0..LANES {
            total[lane] += by[lane] * (value[lane] - centre[lane]);
        }
    };
    let mut bounds = Bounds::NONE;
    for (query, by_scores) in by_scores.chunks_exact(head.stride()).enumerate() {
        let visible = head.keys(query);
        bounds.turn_to(visible.clone(), |token| keys[token]);
        let q = block.scaled(block.query(query));
        let by_scores = &by_scores[visible.clone()];
        let (keys, by_keys) = (&keys[visible.clone()], &mut by_keys[visible.clone()]);
        let by_query = match farthest(&bounds.of(&q)) {
            IS_NEARER => near(&q, keys, by_scores, by_keys, SLOPE_NEARER),
            IS_NEAR => near(&q, keys, by_scores, by_keys, SLOPE),
            _ => far(&block, query, visible.start, by_scores, by_keys),
        };
        add(&by_query, block.query(query));
        let place = block.place(query, by.row_q);
        store(&product(&by_query, &scale), block.width, &mut by.q[place..]);
    }
    for (token, by_key) in by_keys.iter().enumerate() {
        add(by_key, block.key(token));
        let place = block.place(token, by.row_k);
        store(&product(by_key, &scale), block.width, &mut by.k[place..]);
    }
    for (by_r, total) in by_r.iter_mut().zip(total) {
        *by_r += head.power as f32 * total;
    }
}

/// One query: its gradient, and the gradients of the keys added to `by_keys`, all times `R` and for
/// a power of 1. All keys are near; the polynomial is `−1 / x` of the slope, in `x²`.
#[inline(always)]
fn near<const N: usize>(
    q: &Lanes,
    keys: &[Lanes],
    by_scores: &[f32],
    by_keys: &mut [Lanes],
    slope: [f32; N],
) -> Lanes {
    let mut by_query = [[0.0; LANES]; 2];
    let (pairs, last) = keys.as_chunks::<2>();
    let (by_pairs, by_last) = by_keys.as_chunks_mut::<2>();
    let (scores, last_score) = by_scores.as_chunks::<2>();
    // Two keys at a time, so that two dependency chains overlap.
    for ((keys, by_keys), by_scores) in pairs.iter().zip(by_pairs).zip(scores) {
        let (mut x, mut square) = ([[0.0; LANES]; 2], [[0.0; LANES]; 2]);
        for i in 0..2 {
            for lane in 0..LANES {
                x[i][lane] = q[lane] - keys[i][lane];
                square[i][lane] = x[i][lane] * x[i][lane];
            }
        }
        let mut value = [[slope[0]; LANES]; 2];
        for coefficient in &slope[1..] {
            for i in 0..2 {
                for lane in 0..LANES {
                    value[i][lane] = value[i][lane].mul_add(square[i][lane], *coefficient);
                }
            }
        }
        for i in 0..2 {
            for lane in 0..LANES {
                let by = by_scores[i] * x[i][lane] * value[i][lane];
                by_keys[i][lane] += by;
                by_query[i][lane] -= by;
            }
        }
    }
    let [mut by_query, second] = by_query;
    for lane in 0..LANES {
        by_query[lane] += second[lane];
    }
    for ((key, by_key), by_score) in last.iter().zip(by_last).zip(last_score) {
        for lane in 0..LANES {
            let x = q[lane] - key[lane];
            let by = by_score * x * polynomial(x * x, slope);
            by_key[lane] += by;
            by_query[lane] -= by;
        }
    }
    by_query
}

/// The same for keys from `first` on at any distance. Their differences are computed before the
/// multiplication by `R`, because a sine near zero amplifies every rounding error.
#[inline(always)]
fn far(
    block: &DimensionBlock<'_>,
    query: usize,
    first: usize,
    by_scores: &[f32],
    by_keys: &mut [Lanes],
) -> Lanes {
    let q = block.query(query);
    let mut by_query = [0.0; LANES];
    for (token, (by_key, by_score)) in by_keys.iter_mut().zip(by_scores).enumerate() {
        let key = block.key(first + token);
        for lane in 0..LANES {
            let by = by_score * sinc::slope((q[lane] - key[lane]) * block.r[lane]);
            by_key[lane] -= by;
            by_query[lane] += by;
        }
    }
    by_query
}
