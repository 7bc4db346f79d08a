//! The scores.

use multiversion::multiversion;

use super::nearness::{Bounds, IS_NEAR, IS_NEARER, farthest};
use super::sinc::{self, LOG, LOG_NEARER};
use super::{DimensionBlock, LANES, Lanes, ScoredHead, product};
use crate::math::{ln, polynomial};

/// Dimensions that are added in one pass over a query's keys: four chains of `mul_add`, whose
/// latency is four cycles, keep an execution unit busy.
const GROUP: usize = 4;

/// The scores of every query's visible keys. `keys` and `plain` are working memory for all
/// dimensions of all keys, `far` has one row each for products and their exponents.
#[multiversion(targets = "simd")]
pub(super) fn scores(
    head: ScoredHead<'_>,
    blocks: &[DimensionBlock<'_>],
    keys: &mut [f32],
    plain: &mut [f32],
    far: [&mut [f32]; 2],
    into: &mut [f32],
) {
    let stride = head.stride();
    for (block, keys) in blocks.iter().zip(keys.chunks_exact_mut(LANES * stride)) {
        transpose(block, &block.r, stride, keys);
    }
    let mut bounds = vec![Bounds::NONE; blocks.len()];
    let mut has_plain = vec![false; blocks.len()];
    let [products, exponents] = far;
    for (query, row) in into.chunks_exact_mut(stride).enumerate() {
        let visible = head.keys(query);
        let window = visible.start / LANES * LANES..visible.end.next_multiple_of(LANES);
        let row = &mut row[window.clone()];
        row.fill(0.0);
        let mut far = Far {
            products: &mut products[window.clone()],
            exponents: &mut exponents[window.clone()],
            is_empty: true,
        };
        for (i, (block, bounds)) in blocks.iter().zip(&mut bounds).enumerate() {
            bounds.turn_to(visible.clone(), |token| block.scaled(block.key(token)));
            let q = block.scaled(block.query(query));
            let nearness = bounds.of(&q);
            let memory = i * LANES * stride..(i + 1) * LANES * stride;
            if farthest(&nearness) > IS_NEAR && !has_plain[i] {
                transpose(block, &[1.0; LANES], stride, &mut plain[memory.clone()]);
                has_plain[i] = true;
            }
            for (start, nearness) in nearness.as_chunks().0.iter().enumerate() {
                let group = DimensionGroup {
                    first: start * GROUP,
                    keys: &keys[memory.clone()],
                    stride,
                    start: window.start,
                    length: row.len(),
                };
                match farthest(nearness) {
                    IS_NEARER => group.add(&q, LOG_NEARER, row),
                    IS_NEAR => group.add(&q, LOG, row),
                    _ => {
                        let plain = DimensionGroup { keys: &plain[memory.clone()], ..group };
                        group.multiply(plain, block, query, nearness, row, &mut far);
                    }
                }
            }
        }
        far.add_to(row);
        for score in row {
            *score *= head.power as f32;
        }
    }
}

/// The keys of some dimensions times `scale`, `[16, stride]`; zero beyond the last token.
#[inline(always)]
fn transpose(block: &DimensionBlock<'_>, scale: &Lanes, stride: usize, keys: &mut [f32]) {
    for first in (0..stride).step_by(LANES) {
        let mut rows = [[0.0; LANES]; LANES];
        for (row, token) in rows.iter_mut().zip(first..block.head.tokens) {
            *row = product(&block.key(token), scale);
        }
        for (d, keys) in keys.chunks_exact_mut(stride).enumerate() {
            let mut column: Lanes = [0.0; LANES];
            for lane in 0..LANES {
                column[lane] = rows[lane][d];
            }
            keys[first..first + LANES].copy_from_slice(&column);
        }
    }
}

/// Four dimensions of the keys in a query's window.
#[derive(Clone, Copy)]
struct DimensionGroup<'a> {
    /// The first of them in its block.
    first: usize,
    /// The block's keys: `[16, stride]`.
    keys: &'a [f32],
    stride: usize,
    start: usize,
    length: usize,
}

impl<'a> DimensionGroup<'a> {
    #[inline(always)]
    fn dimension(self, i: usize) -> &'a [f32] {
        &self.keys[(self.first + i) * self.stride + self.start..][..self.length]
    }

    /// Adds `ln sinc` of four dimensions, all near, from `ln(sinc x) / x²` in `x²`.
    #[inline(always)]
    fn add<const N: usize>(self, q: &Lanes, log: [f32; N], sums: &mut [f32]) {
        let q: &[f32; GROUP] = q[self.first..].first_chunk().expect("groups divide a block");
        let keys = sums.iter_mut().zip(self.dimension(0)).zip(self.dimension(1));
        for ((((sum, k0), k1), k2), k3) in keys.zip(self.dimension(2)).zip(self.dimension(3)) {
            let x = [q[0] - k0, q[1] - k1, q[2] - k2, q[3] - k3];
            let square = [x[0] * x[0], x[1] * x[1], x[2] * x[2], x[3] * x[3]];
            // Coefficient by coefficient, so that four dependency chains overlap.
            let mut value = [log[0]; GROUP];
            for coefficient in &log[1..] {
                for i in 0..GROUP {
                    value[i] = value[i].mul_add(square[i], *coefficient);
                }
            }
            let first = square[0].mul_add(value[0], square[1] * value[1]);
            let second = square[2].mul_add(value[2], square[3] * value[3]);
            *sum += first + second;
        }
    }

    /// The same dimension by dimension, for keys at any distance. Far arguments are computed from
    /// unscaled differences of queries and keys, because a sine near zero amplifies every rounding
    /// error.
    #[inline(always)]
    fn multiply(
        self,
        plain: Self,
        block: &DimensionBlock<'_>,
        query: usize,
        nearness: &[u8; GROUP],
        sums: &mut [f32],
        far: &mut Far<'_>,
    ) {
        let query = block.query(query);
        for (i, nearness) in nearness.iter().enumerate() {
            let (q, r) = (query[self.first + i], block.r[self.first + i]);
            if *nearness > IS_NEAR {
                far.multiply(q, r, plain.dimension(i));
            } else {
                for (sum, k) in sums.iter_mut().zip(self.dimension(i)) {
                    let square = (q * r - k) * (q * r - k);
                    *sum = square.mul_add(polynomial(square, LOG), *sum);
                }
            }
        }
    }
}

/// The product of `sinc²` over a query's far dimensions, for each visible key. Exponents are
/// counted separately, so that it cannot underflow.
struct Far<'a> {
    /// In `[1, 2)`.
    products: &'a mut [f32],
    exponents: &'a mut [f32],
    /// Whether no dimension was multiplied yet; the memory is then arbitrary.
    is_empty: bool,
}

impl Far<'_> {
    /// One more dimension.
    #[inline(always)]
    fn multiply(&mut self, q: f32, r: f32, keys: &[f32]) {
        if self.is_empty {
            self.products.fill(1.0);
            self.exponents.fill(0.0);
            self.is_empty = false;
        }
        let all = self.products.iter_mut().zip(&mut *self.exponents);
        for ((product, exponent), k) in all.zip(keys) {
            let next = *product * sinc::square((q - k) * r);
            let bits = next.to_bits();
            // Zero times a finite number adds nothing; a NaN, whose bits are split, stays NaN here.
            *exponent += next.mul_add(0.0, ((bits >> 23) as i32 - 127) as f32);
            *product = f32::from_bits((bits & 0x007f_ffff) | 0x3f80_0000);
        }
    }

    /// Adds the logarithm of the product of `sinc`.
    #[inline(always)]
    fn add_to(&self, sums: &mut [f32]) {
        if self.is_empty {
            return;
        }
        let all = self.products.iter().zip(&*self.exponents);
        for (sum, (product, exponent)) in sums.iter_mut().zip(all) {
            *sum += 0.5 * (exponent * std::f32::consts::LN_2 + ln(*product));
        }
    }
}
