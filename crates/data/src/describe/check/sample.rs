//! [`Sample`]: whether a few steps make the whole spread of a number.

use super::range::Range;

/// Values kept at most; beyond, every second one is dropped.
const MOST: usize = 8192;
/// Fewer steps say nothing about what is usual.
const LEAST_STEPS: u64 = 100;
/// Maximum deviation, as a multiple of the range of the usual values. For a normal distribution it
/// is a fifth of that range.
const LARGEST_RATIO: f64 = 5.0;
/// Share of the steps, at either end, that may be unusual.
const TAIL: f64 = 0.005;

/// Distance of a frequent value from all others, as a multiple of their range, from which it is no
/// quantity.
const FARTHEST_OTHER: f64 = 10.0;
/// Different other values: fewer may be states of a switch.
const FEWEST_OTHERS: usize = 10;

/// Evenly spaced values of one number of the steps so far.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    values: Vec<f32>,
    every: u64,
    seen: u64,
}

/// Unusual properties of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unusual {
    /// Values so far out that the others are nearly equal once divided by the deviation.
    Outlier {
        /// The farthest.
        farthest: f32,
        /// The two bounds of the middle 99 %.
        usual: [f32; 2],
    },
    /// One value of many steps that is far from all others, as in place of a missing number.
    Sentinel {
        /// The value.
        value: f32,
        /// Its share of the steps.
        share: f64,
        /// The two ends of all others.
        others: [f32; 2],
    },
    /// One value in all but a few steps.
    NearlyConstant {
        /// The value.
        usual: f32,
        /// The farthest other.
        farthest: f32,
        /// About how many steps have another.
        steps: u64,
    },
}

impl Default for Sample {
    fn default() -> Self {
        Self { values: Vec::new(), every: 1, seen: 0 }
    }
}

impl Sample {
    pub fn add(&mut self, value: f32) {
        if self.seen.is_multiple_of(self.every) {
            if self.values.len() == MOST {
                let mut at = 0;
                self.values.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.every *= 2;
            }
            if self.seen.is_multiple_of(self.every) {
                self.values.push(value);
            }
        }
        self.seen += 1;
    }

    /// The unusual properties, given the `range` of all values.
    pub fn unusual(&self, range: &Range) -> Option<Unusual> {
        if self.seen < LEAST_STEPS || range.std.is_nan() || range.std <= 0.0 {
            return None;
        }
        let mut sorted = self.values.clone();
        sorted.sort_unstable_by(f32::total_cmp);
        let last = sorted.len() - 1;
        let tail = (last as f64 * TAIL).ceil() as usize;
        let (low, middle, high) = (sorted[tail], sorted[last / 2], sorted[last - tail]);
        let distance = |value: f32| (f64::from(value) - f64::from(middle)).abs();
        let farthest =
            if distance(range.min) > distance(range.max) { range.min } else { range.max };
        if let Some(sentinel) = sentinel(&sorted) {
            return Some(sentinel);
        }
        if high > low {
            let is_outlier = range.std > LARGEST_RATIO * (f64::from(high) - f64::from(low));
            return is_outlier.then_some(Unusual::Outlier { farthest, usual: [low, high] });
        }
        // If k of n steps are a distance d away: n std² ≈ k d².
        let steps = self.seen as f64 * (range.std / distance(farthest)).powi(2);
        let few = (self.seen as f64 / 1000.0).max(1.5);
        let steps_told = (steps.round() as u64).max(1);
        (steps <= few).then_some(Unusual::NearlyConstant {
            usual: middle,
            farthest,
            steps: steps_told,
        })
    }
}

/// The smallest or largest of ascending values, if several steps have it and it is far from all
/// others, which differ.
fn sentinel(sorted: &[f32]) -> Option<Unusual> {
    let (&first, &last) = (sorted.first()?, sorted.last()?);
    for value in [first, last] {
        let n_equal = sorted.partition_point(|&other| other <= value)
            - sorted.partition_point(|&other| other < value);
        let others =
            if value == first { &sorted[n_equal..] } else { &sorted[..sorted.len() - n_equal] };
        let (Some(&low), Some(&high)) = (others.first(), others.last()) else { continue };
        let n_different = 1 + others.windows(2).filter(|pair| pair[0] != pair[1]).count();
        let gap = if value == first { low - value } else { value - high };
        let is_far = f64::from(gap) > FARTHEST_OTHER * (f64::from(high) - f64::from(low));
        if n_equal > 1 && n_different >= FEWEST_OTHERS && is_far {
            let share = n_equal as f64 / sorted.len() as f64;
            return Some(Unusual::Sentinel { value, share, others: [low, high] });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::figures::Sums;
    use super::*;

    fn unusual(values: impl Iterator<Item = f32>) -> Option<Unusual> {
        let (mut sample, mut sums) = (Sample::default(), Sums::default());
        for value in values {
            sample.add(value);
            sums.add(value);
        }
        sample.unusual(&sums.range())
    }

    fn wave(i: u32) -> f32 {
        (i as f32 * 0.7).sin()
    }

    #[test]
    fn one_value_that_hides_all_others_is_found_wherever_it_is() {
        for n in [100u32, 2_000, 100_000] {
            for at in [0, 1, n / 2, n - 1] {
                let found = unusual((0..n).map(|i| if i == at { -1e6 } else { 300.0 + wave(i) }));
                let Some(Unusual::Outlier { farthest, usual: [low, high] }) = found else {
                    panic!("{n}, {at}: {found:?}")
                };
                assert_eq!(farthest, -1e6);
                assert!(low > 298.9 && high < 301.1, "{low} {high}");
            }
        }
    }

    #[test]
    fn a_frequent_value_far_from_all_others_is_found() {
        for (sentinel, every) in [(-999.0, 20), (1e6, 3), (-999.0, 2), (100.0, 50)] {
            let value = |i: u32| if i % every == 1 { sentinel } else { wave(i) };
            let found = unusual((0..400).map(value));
            let Some(Unusual::Sentinel { value, share, others: [low, high] }) = found else {
                panic!("{sentinel}, {every}: {found:?}")
            };
            assert_eq!(value, sentinel);
            assert!((share - 1.0 / f64::from(every)).abs() < 0.01, "{share}");
            assert!(low > -1.001 && high < 1.001, "{low} {high}");
        }
        // A switch of three states, and a quantity that is often at its end.
        assert_eq!(unusual((0..400).map(|i| [0.0, 1.0, 100.0][i % 3])), None);
        assert_eq!(unusual((0..400).map(|i| wave(i).max(0.0) * 5.0)), None);
    }

    #[test]
    fn one_other_value_is_found() {
        let found = unusual((0..2000).map(|i| if i == 77 { 0.25 } else { 0.0 }));
        let expected = Unusual::NearlyConstant { usual: 0.0, farthest: 0.25, steps: 1 };
        assert_eq!(found, Some(expected));
    }

    #[test]
    fn usual_numbers_are_left_alone() {
        assert_eq!(unusual((0..5000).map(wave)), None);
        // A tail as of an exponential distribution; a flag in 2 % of the steps; a constant.
        assert_eq!(unusual((1..5000).map(|i| -(i as f32 / 5000.0).ln())), None);
        assert_eq!(unusual((0..5000).map(|i| f32::from(u8::from(i % 50 == 0)))), None);
        assert_eq!(unusual((0..5000).map(|_| 3.0)), None);
        // Too few to know.
        assert_eq!(unusual((0..20).map(|i| if i == 3 { 1e9 } else { wave(i) })), None);
    }
}
