//! [`Sequence`]: the rows of a recording in order, and how far each is from the next.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use overtone_core::picture::SIDE;
use overtone_core::{Episode, Outcome};

use super::super::steps::Steps;
use crate::read::column::{ActionColumn, ObservationColumn};
use crate::read::hdf5_arrays::place;

/// Numbers of observations that are kept at most: 64 MB. Later rows are not inspected.
const MOST_NUMBERS: usize = 1 << 24;

/// Pairs of rows from which the usual change of a number is taken at most.
const SAMPLED_PAIRS: usize = 20_000;

/// Pixels of a frame that become one number, along each axis.
const BLOCK: usize = 12;

/// One row.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// A hash of the action.
    pub action: u64,
    /// Whether the action is 0 in all numbers.
    pub is_zero_action: bool,
    pub reward: f32,
    /// Why a finished episode ends here, if one does.
    pub end: Option<Outcome>,
}

/// Rows in order, the first ones of a long recording.
#[derive(Default)]
pub(super) struct Sequence {
    pub rows: Vec<Row>,
    /// `[rows, width]`; of pictures the means of their blocks.
    observations: Vec<f32>,
    width: usize,
    pub is_pictures: bool,
    /// `[rows]`, whether the next observation of a row is not the next row's; empty if unknown.
    pub breaks: Vec<bool>,
    /// The first row of each part and the prefix of its name.
    parts: Vec<(usize, String)>,
    /// Whether rows were left out.
    is_cut: bool,
}

impl Sequence {
    /// Adds the steps of `episodes`, which cover them. An unfinished one ends only where no flags
    /// in rows cut the recording.
    pub fn add(&mut self, part: &Steps<'_>, episodes: &[Episode], finished: &[bool]) {
        let (Some(observations), Some(actions), Some(rewards)) =
            (part.observations, part.actions, part.rewards)
        else {
            return self.is_cut = true;
        };
        let n = rewards.len();
        let width = match observations {
            ObservationColumn::Vectors { width, .. } => *width,
            ObservationColumn::Frames { .. } => (SIDE / BLOCK) * (SIDE / BLOCK),
        };
        let is_other = !self.rows.is_empty() && width != self.width;
        let is_uneven = observations.rows() != n || actions.rows() != n;
        let is_covered = episodes.last().is_some_and(|last| last.end() == n);
        if is_other || is_uneven || !is_covered || self.is_cut {
            return self.is_cut = true;
        }
        self.width = width;
        let n = n.min((MOST_NUMBERS - self.observations.len()) / width.max(1));
        self.is_cut = n < rewards.len();
        self.parts.push((self.rows.len(), part.prefix.to_owned()));
        match observations {
            ObservationColumn::Vectors { values, .. } => {
                self.observations.extend_from_slice(&values[..n * width]);
            }
            ObservationColumn::Frames { pixels } => {
                self.is_pictures = true;
                for frame in pixels.chunks_exact(SIDE * SIDE).take(n) {
                    self.observations.extend(blocks(frame));
                }
            }
        }
        let first = self.rows.len();
        for (row, &reward) in rewards[..n].iter().enumerate() {
            let (action, is_zero_action) = match actions {
                ActionColumn::Discrete { values, .. } => (u64::from(values[row]), values[row] == 0),
                ActionColumn::Continuous { width, values } => {
                    let numbers = &values[row * width..(row + 1) * width];
                    let bits: Vec<u32> = numbers.iter().map(|number| number.to_bits()).collect();
                    (hash(&bits), numbers.iter().all(|&number| number == 0.0))
                }
            };
            self.rows.push(Row { action, is_zero_action, reward, end: None });
        }
        for (episode, &finished) in episodes.iter().zip(finished) {
            if let Some(row) = self.rows.get_mut(first + episode.end() - 1) {
                row.end = (finished || !part.stored.flagged).then_some(episode.outcome);
            }
        }
        let breaks = part.stored.breaks.iter().copied();
        self.breaks.extend(breaks.take(n));
    }

    /// The observation of a row.
    pub fn observation(&self, row: usize) -> &[f32] {
        &self.observations[row * self.width..(row + 1) * self.width]
    }

    /// Numbers of an observation.
    pub fn width(&self) -> usize {
        self.width
    }

    /// A row's name.
    pub fn place(&self, row: usize) -> String {
        let part = self.parts.partition_point(|&(first, _)| first <= row).saturating_sub(1);
        let (first, prefix) = &self.parts[part];
        place(prefix, row - first)
    }

    /// Whether most observations occur once, among the rows that differ from the row before.
    pub fn rarely_repeats(&self) -> bool {
        let bits = |row: usize| {
            hash(&self.observation(row).iter().map(|number| number.to_bits()).collect::<Vec<_>>())
        };
        let changed = |&row: &usize| row == 0 || self.observation(row) != self.observation(row - 1);
        let changed: Vec<usize> = (0..self.rows.len()).filter(changed).collect();
        let distinct: HashSet<u64> = changed.iter().map(|&row| bits(row)).collect();
        2 * distinct.len() > changed.len()
    }

    /// `[width]`, 1 / the usual change of each number from row to row: the median of its changes
    /// other than 0. Of a number that never changes, 0.
    pub fn scales(&self) -> Vec<f32> {
        let n_pairs = self.rows.len().saturating_sub(1);
        // An odd stride: environments in turn are often a power of two.
        let stride = (n_pairs / SAMPLED_PAIRS) | 1;
        let scale = |at: usize| {
            let value = |row: usize| self.observations[row * self.width + at];
            let changes =
                (0..n_pairs).step_by(stride).map(|row| (value(row + 1) - value(row)).abs());
            let mut changes: Vec<f32> = changes.filter(|&change| change > 0.0).collect();
            if changes.is_empty() {
                return 0.0;
            }
            let middle = changes.len() / 2;
            1.0 / *changes.select_nth_unstable_by(middle, f32::total_cmp).1
        };
        (0..self.width).map(scale).collect()
    }

    /// The distance of each row from the one `lag` rows on, among the first `most` rows: the mean
    /// over its numbers of their changes, as multiples of the usual change.
    pub fn distances(&self, scales: &[f32], lag: usize, most: usize) -> Vec<f32> {
        let n = self.rows.len().min(most).saturating_sub(lag);
        let distance = |row: usize| {
            let pairs = self.observation(row).iter().zip(self.observation(row + lag)).zip(scales);
            let sum: f32 = pairs.map(|((here, there), scale)| (there - here).abs() * scale).sum();
            sum / self.width.max(1) as f32
        };
        (0..n).map(distance).collect()
    }
}

/// Mean of each block of a frame.
fn blocks(frame: &[u8]) -> impl Iterator<Item = f32> + '_ {
    const PER_SIDE: usize = SIDE / BLOCK;
    (0..PER_SIDE * PER_SIDE).map(move |block| {
        let (top, left) = (block / PER_SIDE * BLOCK, block % PER_SIDE * BLOCK);
        let rows = (top..top + BLOCK).map(|y| &frame[y * SIDE + left..][..BLOCK]);
        rows.flatten().map(|&byte| u32::from(byte)).sum::<u32>() as f32
    })
}

fn hash(bits: &[u32]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bits.hash(&mut hasher);
    hasher.finish()
}
