//! [`Figures`]: what an inspection counts of the numbers of an array, in one pass over its rows.

use overtone_core::normalization::has_spread;
use overtone_core::{Episode, Outcome};

use super::doubted_number::DoubtedNumber;
use super::range::Range;
use super::sample::{Sample, Unusual};
use super::steps::Rows;
use crate::read::hdf5_arrays::place;

/// Figures of each number of a row; none before the first part.
#[derive(Default)]
pub(super) struct Figures(Vec<Number>);

/// Figures of one number of every row.
#[derive(Clone, Default)]
struct Number {
    /// Over the episodes that a flag ends.
    finished: Sums,
    /// Over the other rows.
    others: Sums,
    doubted: DoubtedNumber,
}

impl Figures {
    /// Adds rows, which are as wide as those before. The names of their places begin with `prefix`.
    pub fn add(&mut self, rows: Rows<'_>, episodes: &[Episode], finished: &[bool], prefix: &str) {
        self.0.resize(rows.width, Number::default());
        // Without flags episodes do not end, which is reported already.
        let all = [Episode {
            start: 0,
            length: rows.values.len() / rows.width.max(1),
            outcome: Outcome::Truncated,
        }];
        let is_cut = !episodes.is_empty();
        let (episodes, finished) =
            if is_cut { (episodes, finished) } else { (&all[..], &[false][..]) };
        for (episode, &finished) in episodes.iter().zip(finished) {
            let values = rows.of(episode).unwrap_or_default();
            for (at, row) in values.chunks_exact(rows.width.max(1)).enumerate() {
                let here = || place(prefix, episode.start + at);
                for (number, &value) in self.0.iter_mut().zip(row) {
                    let sums = if finished { &mut number.finished } else { &mut number.others };
                    sums.add(value);
                    if is_cut {
                        number.doubted.add(value, at == 0, here);
                    }
                }
            }
        }
    }

    /// The figures of `rows` in `episodes`, as if all were finished.
    pub fn of(rows: Rows<'_>, episodes: &[Episode]) -> Self {
        let mut figures = Self::default();
        figures.add(rows, episodes, &vec![true; episodes.len()], "");
        figures
    }

    /// Numbers of a row; `None` before the first part.
    pub fn width(&self) -> Option<usize> {
        (!self.0.is_empty()).then_some(self.0.len())
    }

    /// The sums over finished episodes, like the returns; if none is finished, over all rows.
    pub fn sums(&self) -> Vec<&Sums> {
        let has_finished = self.0.iter().any(|number| number.finished.steps > 0);
        let numbers = self.0.iter();
        if has_finished {
            numbers.map(|number| &number.finished).collect()
        } else {
            numbers.map(|number| &number.others).collect()
        }
    }

    /// What each number may be besides a quantity.
    pub fn doubted(&self) -> Vec<&DoubtedNumber> {
        self.0.iter().map(|number| &number.doubted).collect()
    }
}

/// Sums over one number of the steps so far, from which a [`Range`] is made.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    steps: u64,
    /// The first value: sums are of differences from it, so that a large mean costs no digits.
    first: f32,
    sum: f64,
    squares: f64,
    min: f32,
    max: f32,
    sample: Sample,
}

impl Sums {
    pub(super) fn add(&mut self, number: f32) {
        if self.steps == 0 {
            *self = Self { first: number, min: number, max: number, ..Self::default() };
        }
        let difference = f64::from(number) - f64::from(self.first);
        self.steps += 1;
        self.sum += difference;
        self.squares += difference * difference;
        self.min = self.min.min(number);
        self.max = self.max.max(number);
        self.sample.add(number);
    }

    pub(super) fn range(&self) -> Range {
        let n = self.steps.max(1) as f64;
        let mean = self.sum / n;
        Range {
            mean: f64::from(self.first) + mean,
            std: (self.squares / n - mean * mean).max(0.0).sqrt(),
            min: self.min,
            max: self.max,
        }
    }

    /// Whether all numbers were the same.
    pub(super) fn is_constant(&self) -> bool {
        self.min == self.max
    }

    /// Whether the numbers differ by so little that agents treat them as equal.
    pub(super) fn is_negligible(&self) -> bool {
        let Range { mean, std, .. } = self.range();
        !self.is_constant() && !has_spread(mean, std)
    }

    /// Unusual properties of the numbers.
    pub(super) fn unusual(&self) -> Option<Unusual> {
        self.sample.unusual(&self.range())
    }
}
