//! Distance of a query from its visible keys, by dimension.

use std::ops::Range;

use super::sinc::{NEAR, NEARER};
use super::{LANES, Lanes, combine};

/// The squares of all differences are at most [`NEARER`].
pub(super) const IS_NEARER: u8 = 0;
/// They are at most [`NEAR`].
pub(super) const IS_NEAR: u8 = 1;
/// Some may be larger, or NaN.
const IS_FAR: u8 = 2;

/// The nearness of the farthest dimension.
#[inline(always)]
pub(super) fn farthest<const N: usize>(nearness: &[u8; N]) -> u8 {
    nearness.iter().fold(IS_NEARER, |a, b| if *b > a { *b } else { a })
}

/// Bounds of a query's visible keys, in sixteen dimensions, times `R`.
///
/// They depend only on the visible keys: not on the future, nor on padding.
#[derive(Clone)]
pub(super) struct Bounds {
    keys: Range<usize>,
    lowest: Lanes,
    highest: Lanes,
}

impl Bounds {
    /// Bounds without keys.
    pub const NONE: Self =
        Self { keys: 0..0, lowest: [f32::INFINITY; LANES], highest: [f32::NEG_INFINITY; LANES] };

    /// Moves to a query with these visible keys. Queries must come in order.
    #[inline(always)]
    pub fn turn_to(&mut self, keys: Range<usize>, key: impl Fn(usize) -> Lanes) {
        if self.keys.start != keys.start || self.keys.is_empty() {
            *self = Self { keys: keys.start..keys.start, ..Self::NONE };
        }
        for token in self.keys.end..keys.end {
            let key = key(token);
            self.lowest = combine(&self.lowest, &key, f32::min);
            self.highest = combine(&self.highest, &key, f32::max);
        }
        self.keys = keys;
    }

    /// [`IS_NEARER`], [`IS_NEAR`] or more for each dimension of the query times `R`.
    #[inline(always)]
    pub fn of(&self, q: &Lanes) -> [u8; LANES] {
        let mut nearness = [0; LANES];
        for lane in 0..LANES {
            // Rounding is monotone: no key's own difference is larger.
            let [low, high] = [q[lane] - self.lowest[lane], q[lane] - self.highest[lane]];
            let [low, high] = [low * low, high * high];
            let larger = if low > high { low } else { high };
            nearness[lane] = IS_FAR - u8::from(larger <= NEARER) - u8::from(larger <= NEAR);
        }
        nearness
    }
}
