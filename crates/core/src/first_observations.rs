//! [`FirstObservations`]: a summary of the observations with which episodes begin.

use serde::{Deserialize, Serialize};

use crate::normalization::Normalization;

/// Episodes on both sides that a comparison needs.
const LEAST: usize = 10;

/// Difference that does not count, as a fraction of a number's standard deviation in the recording.
const TOLERANCE: f32 = 0.01;

/// The first observations of episodes, number by number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstObservations {
    episodes: usize,
    /// `[width]`: the lowest value, the quartiles around the median, and the highest.
    spread: Vec<[f32; 4]>,
}

impl FirstObservations {
    /// A summary of rows of `width` numbers, one for each episode; `None` without a row.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a [f32]>, width: usize) -> Option<Self> {
        let mut columns = vec![Vec::new(); width];
        for row in rows {
            columns.iter_mut().zip(row).for_each(|(column, &number)| column.push(number));
        }
        let episodes = columns.first().filter(|column| !column.is_empty())?.len();
        let spread = columns.into_iter().map(|mut column| {
            column.sort_by(f32::total_cmp);
            [0, episodes / 4, episodes - 1 - episodes / 4, episodes - 1].map(|place| column[place])
        });
        Some(Self { episodes, spread: spread.collect() })
    }

    /// The lowest and the highest value of a number.
    pub fn range(&self, number: usize) -> [f32; 2] {
        let [lowest, _, _, highest] = self.spread[number];
        [lowest, highest]
    }

    /// The numbers with which episodes begin elsewhere than those of `other`: half of the episodes
    /// of one side are outside of all of the other side, by more than the width of its range.
    ///
    /// Numbers that `normalization` sets to 0 do not count. Empty if one side has fewer than ten
    /// episodes.
    pub fn differing(&self, other: &Self, normalization: &Normalization) -> Vec<usize> {
        if self.episodes.min(other.episodes) < LEAST {
            return Vec::new();
        }
        let pairs = self.spread.iter().zip(&other.spread).zip(&normalization.std).enumerate();
        pairs
            .filter(|(_, ((one, other), std))| {
                let tolerance = TOLERANCE * **std;
                **std > 0.0
                    && (is_outside(one, other, tolerance) || is_outside(other, one, tolerance))
            })
            .map(|(number, _)| number)
            .collect()
    }
}

/// Whether three quarters of `one` are on one side of `other`, or a quarter on each.
fn is_outside(one: &[f32; 4], other: &[f32; 4], tolerance: f32) -> bool {
    let ([_, first, third, _], [lowest, _, _, highest]) = (*one, *other);
    let margin = highest - lowest + tolerance;
    let (low, high) = (lowest - margin, highest + margin);
    first > high || third < low || first < low && third > high
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten first observations of one number, evenly between `low` and `high`.
    fn between(low: f32, high: f32) -> FirstObservations {
        let rows: Vec<[f32; 1]> = (0..10).map(|i| [low + (high - low) * i as f32 / 9.0]).collect();
        FirstObservations::of(rows.iter().map(|row| &row[..]), 1).unwrap()
    }

    #[track_caller]
    fn check(recorded: [f32; 2], reset: [f32; 2], std: f32, is_other: bool) {
        let [recorded, reset] = [recorded, reset].map(|[low, high]| between(low, high));
        let normalization = Normalization { mean: vec![0.0], std: vec![std] };
        let differing = recorded.differing(&reset, &normalization);
        assert_eq!(differing, if is_other { vec![0] } else { Vec::new() });
        assert_eq!(reset.differing(&recorded, &normalization), differing);
    }

    #[test]
    fn quartiles_and_ends() {
        let expected = FirstObservations { episodes: 10, spread: vec![[0.0, 2.0, 7.0, 9.0]] };
        assert_eq!(between(0.0, 9.0), expected);
        assert_eq!(FirstObservations::of([], 3), None);
    }

    #[test]
    fn episodes_that_begin_elsewhere() {
        check([-0.05, 0.05], [-0.05, 0.05], 0.2, false);
        // Normalized: the same centre and another scale.
        check([-3.0, 3.0], [-0.05, 0.05], 1.0, true);
        // Another centre.
        check([0.4, 0.6], [1.245, 1.255], 0.1, true);
        // A part of where the task begins, twice its width, and its neighbourhood.
        check([-0.02, 0.01], [-0.05, 0.05], 0.2, false);
        check([-0.1, 0.1], [-0.05, 0.05], 0.2, false);
        check([0.05, 0.1], [-0.05, 0.05], 0.2, false);
        // Always the same value, up to rounding or not; and one that the agent does not see.
        check([1.25, 1.25], [1.2500001, 1.2500001], 0.1, false);
        check([1.25, 1.25], [2.5, 2.5], 0.1, true);
        check([1.25, 1.25], [2.5, 2.5], 0.0, false);
    }

    #[test]
    fn few_episodes_are_not_compared() {
        let one = FirstObservations::of([&[7.0f32][..]], 1).unwrap();
        let normalization = Normalization { mean: vec![0.0], std: vec![1.0] };
        assert!(one.differing(&between(0.0, 1.0), &normalization).is_empty());
    }
}
