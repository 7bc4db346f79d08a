//! [`Wrapped`]: negative values that an unsigned type made large.

use std::collections::BTreeSet;

/// Distance from the type's largest value within which the largest wrapped value lies: a small
/// negative number, such as a reward of -1, occurs.
const NEAREST: f32 = 16.0;

/// Different values that are kept.
const MOST_KEPT: usize = 3;

/// The largest value of an unsigned type of `size` bytes.
pub(super) fn unsigned_max(size: usize) -> f32 {
    (256f64.powi(size as i32) - 1.0) as f32
}

/// Values of one number, of an unsigned type.
#[derive(Clone, Debug)]
pub(super) struct Wrapped {
    /// The type's largest value.
    type_max: f32,
    n: usize,
    n_large: usize,
    /// Whether a value lies between small and large ones.
    has_middle: bool,
    largest_small: f32,
    smallest_large: f32,
    largest: f32,
    /// Bits of the first few different values.
    different: BTreeSet<u32>,
}

impl Wrapped {
    pub fn new(type_max: f32) -> Self {
        Self {
            type_max,
            n: 0,
            n_large: 0,
            has_middle: false,
            largest_small: f32::NEG_INFINITY,
            smallest_large: f32::INFINITY,
            largest: f32::NEG_INFINITY,
            different: BTreeSet::new(),
        }
    }

    pub fn add(&mut self, value: f32) {
        self.n += 1;
        if self.different.len() < MOST_KEPT {
            self.different.insert(value.to_bits());
        }
        self.largest = self.largest.max(value);
        if value > self.type_max / 2.0 {
            self.n_large += 1;
            self.smallest_large = self.smallest_large.min(value);
        } else if value > self.type_max / 4.0 {
            self.has_middle = true;
        } else {
            self.largest_small = self.largest_small.max(value);
        }
    }

    /// What the values look like, if small ones and ones near the type's largest occur, and none
    /// between. `needs_three`: two different values may be a switch.
    pub fn sentence(&self, needs_three: bool) -> Option<String> {
        let is_wrapped = !self.has_middle
            && self.n_large > 0
            && self.n_large < self.n
            && self.largest >= self.type_max - NEAREST
            && (self.different.len() == MOST_KEPT || !needs_three);
        let large = if self.smallest_large == self.largest {
            self.largest.to_string()
        } else {
            format!("{} to {}", self.smallest_large, self.largest)
        };
        is_wrapped.then(|| {
            format!(
                "{} of {} values are {large}, and the others at most {}: negative numbers become \
                 large in an unsigned type; save them in a signed type, \
                 `.astype(numpy.int64)` before the subtraction",
                self.n_large, self.n, self.largest_small
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(type_max: f32, values: &[f32], needs_three: bool) -> Option<String> {
        let mut wrapped = Wrapped::new(type_max);
        values.iter().for_each(|&value| wrapped.add(value));
        wrapped.sentence(needs_three)
    }

    #[test]
    fn negative_values_of_unsigned_types_are_found() {
        let found = sentence(255.0, &[0.0, 255.0, 1.0, 156.0, 0.0], true).unwrap();
        assert!(found.starts_with("2 of 5 values are 156 to 255, and the others at most 1"));
        let one_value = sentence(65_535.0, &[0.0, 65_535.0, 10.0], false).unwrap();
        assert!(one_value.starts_with("1 of 3 values are 65535, and"), "{one_value}");
        assert!(sentence(u64::MAX as f32, &[0.0, u64::MAX as f32], false).is_some());
    }

    #[test]
    fn other_values_are_not() {
        // A switch, points of a game, a byte of any value, and large values only.
        assert_eq!(sentence(255.0, &[0.0, 255.0, 0.0], true), None);
        assert_eq!(sentence(255.0, &[0.0, 20.0, 200.0, 10.0], false), None);
        assert_eq!(sentence(255.0, &[0.0, 100.0, 255.0, 1.0], false), None);
        assert_eq!(sentence(255.0, &[255.0, 254.0, 253.0], false), None);
        assert_eq!(sentence(255.0, &[], false), None);
    }
}
