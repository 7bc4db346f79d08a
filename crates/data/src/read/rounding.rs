//! [`Rounding`]: values of a file that their type changed: `f32` makes some equal, and unsigned types
//! make negative ones large.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};

use crate::read::array_names::LOG_PROBS;
use crate::read::wrapped::Wrapped;

/// Elements of an array that are looked at, from its beginning.
const LOOKED_AT: usize = 1 << 20;

/// Wider rows of unsigned numbers are memory or pictures, whose values may be anything.
const WIDEST_UNSIGNED: usize = 64;

/// Share of the different values that must stay different.
const KEPT: f64 = 0.9;

/// Counts of values, by array and place in a row.
#[derive(Debug, Default)]
pub(crate) struct Rounding {
    /// Different values before and after rounding.
    distinct: RefCell<BTreeMap<(String, usize), Distinct>>,
    /// Values of unsigned types.
    unsigned: RefCell<BTreeMap<(String, usize), Wrapped>>,
}

/// Different values of one column.
#[derive(Clone, Copy, Debug, Default)]
struct Distinct {
    before: usize,
    after: usize,
    example: f64,
}

impl Rounding {
    /// Counts the values of array `name`, rows of `width` numbers, on their way to `f32`.
    pub fn note(&self, name: &str, values: &[f64], width: usize) {
        let Some(array) = trained_on(name) else { return };
        let width = width.max(1);
        let rows = (values.len() / width).min((LOOKED_AT / width).max(1));
        for place in 0..width {
            let column = || (0..rows).map(|row| values[row * width + place]);
            if column().all(|value| f64::from(value as f32) == value) {
                continue;
            }
            let before = column().map(f64::to_bits).collect::<HashSet<_>>().len();
            let after =
                column().map(|value| (value as f32).to_bits()).collect::<HashSet<_>>().len();
            let mut counts = self.distinct.borrow_mut();
            let so_far = counts.entry((array.clone(), place)).or_default();
            so_far.before += before;
            so_far.after += after;
            so_far.example = column().next().unwrap_or_default();
        }
    }

    /// Counts the values of array `name`, rows of `width` numbers of an unsigned type whose largest
    /// value is `largest`.
    pub fn note_unsigned(&self, name: &str, values: &[f32], width: usize, largest: f32) {
        let Some(array) = trained_on(name) else { return };
        let width = width.max(1);
        if width > WIDEST_UNSIGNED {
            return;
        }
        let mut counts = self.unsigned.borrow_mut();
        for place in 0..width {
            let wrapped =
                counts.entry((array.clone(), place)).or_insert_with(|| Wrapped::new(largest));
            values.iter().skip(place).step_by(width).for_each(|&value| wrapped.add(value));
        }
    }

    /// A sentence about each column in which more than a tenth of the values became equal, or
    /// negative values seem to have become large ones.
    pub fn sentences(&self) -> Vec<String> {
        let counts = self.distinct.borrow();
        let lost = counts.iter().filter(|(_, of)| (of.after as f64) < KEPT * of.before as f64);
        let sentence = |((array, place), of): (&(String, usize), &Distinct)| {
            let Distinct { before, after, example } = of;
            format!(
                "{array}, place {place}: float32 leaves {after} of {before} different values, such \
                 as {example:?}; subtract the smallest value before you save them, or leave the \
                 number out"
            )
        };
        let unsigned = self.unsigned.borrow();
        let wrapped = unsigned.iter().filter_map(|((array, place), wrapped)| {
            wrapped
                .sentence(array != "rewards")
                .map(|what| format!("{array}, place {place}: {what}"))
        });
        lost.map(sentence).chain(wrapped).collect()
    }
}

/// The array that an episode's array `name` is a part of, if training reads it.
fn trained_on(name: &str) -> Option<String> {
    if name.contains("infos/") || name.contains("next_") || name == LOG_PROBS {
        return None;
    }
    let last = name.rsplit('/').next().unwrap_or(name);
    let array = last.trim_end_matches(|c: char| c.is_ascii_digit());
    Some(if array.len() < last.len() { array.trim_end_matches('_') } else { last }.to_owned())
}

#[cfg(test)]
mod tests {
    use super::Rounding;

    #[track_caller]
    fn check(values: &[f64], width: usize, expected: Option<&str>) {
        let rounding = Rounding::default();
        rounding.note("observations", values, width);
        let sentences = rounding.sentences();
        match expected {
            None => assert_eq!(sentences, [""; 0]),
            Some(part) => {
                assert!(sentences.len() == 1 && sentences[0].contains(part), "{sentences:?}");
            }
        }
    }

    #[test]
    fn a_clock_in_seconds_is_lost_and_a_sensor_is_not() {
        let rows = (0..2000).flat_map(|t| [(f64::from(t) * 0.37).sin(), 1.764e9 + f64::from(t)]);
        let clock: Vec<f64> = rows.collect();
        // float32 steps by 128 there.
        check(&clock, 2, Some("observations, place 1: float32 leaves 17 of 2000"));
        let sensor: Vec<f64> = clock.iter().step_by(2).copied().collect();
        check(&sensor, 1, None);
        check(&[1e9, 1e9 + 1.0], 1, Some("leaves 1 of 2 different values"));
        check(&[16_777_216.0, 3.0], 1, None);
        check(&[0.1; 50], 1, None);
    }

    #[test]
    fn episodes_of_one_array_are_counted_together() {
        let rounding = Rounding::default();
        for episode in 0..3 {
            let values: Vec<f64> = (0..100).map(|t| 1e10 + f64::from(t)).collect();
            rounding.note(&format!("episode_{episode}/rewards"), &values, 1);
            rounding.note(&format!("actions_{episode}"), &values, 1);
            rounding.note("infos/time", &values, 1);
            rounding.note("next_observations", &values, 1);
        }
        let sentences = rounding.sentences();
        assert_eq!(sentences.len(), 2, "{sentences:?}");
        assert!(sentences[0].starts_with("actions, place 0: float32 leaves 3 of 300"));
        assert!(sentences[1].starts_with("rewards, place 0"), "{sentences:?}");
    }
}
