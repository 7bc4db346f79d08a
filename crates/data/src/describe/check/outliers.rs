//! [`Sample`]: whether a few steps make the whole spread of a number.

use super::columns::{Range, Sums};
use crate::findings::Findings;

/// Values kept at most; beyond, every second one is dropped.
const MOST: usize = 8192;
/// Fewer steps say nothing about what is usual.
const LEAST_STEPS: u64 = 100;
/// Maximum deviation, as a multiple of the range of the usual values. For a normal distribution it
/// is a fifth of that range.
const LARGEST_RATIO: f64 = 5.0;
/// Share of the steps, at either end, that may be unusual.
const TAIL: f64 = 0.005;

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

/// Sums over each number of rows of `width`.
pub(super) fn sums(values: &[f32], width: usize) -> Vec<Sums> {
    let mut sums = vec![Sums::default(); width];
    for row in values.chunks_exact(width.max(1)) {
        sums.iter_mut().zip(row).for_each(|(sums, &number)| sums.add(number));
    }
    sums
}

/// Reports numbers whose deviation does not describe their spread, by array: observations,
/// continuous actions, rewards.
pub(super) fn tell(arrays: [&[Sums]; 3], findings: &mut Findings<'_>) {
    for (array, all) in ["observations", "actions", "rewards"].into_iter().zip(arrays) {
        for (place, sums) in all.iter().enumerate() {
            let at = if array == "rewards" { "".into() } else { format!("at place {place} ") };
            // Only observations: a reward that is paid once is usual.
            let is_seen = array == "observations";
            if is_seen && sums.is_negligible() {
                let Range { mean, std, .. } = sums.range();
                let found = format!("{at}a deviation of {std:.1e} around {mean}");
                findings.tell("negligible-spread", array, found);
            }
            match sums.unusual() {
                Some(Unusual::Outlier { farthest, usual: [low, high] }) => findings.tell(
                    "outlier",
                    array,
                    format!("{at}{farthest}, where 99 % are between {low} and {high}"),
                ),
                Some(Unusual::NearlyConstant { usual, farthest, steps }) if is_seen => {
                    let found =
                        format!("{at}{usual} in all but about {steps} steps, and {farthest} there");
                    findings.tell("nearly-constant", array, found);
                }
                _ => {}
            }
        }
    }
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

#[cfg(test)]
mod tests {
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
