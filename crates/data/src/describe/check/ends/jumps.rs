//! Jumps of observations from row to row, and the flags that belong to them.

use overtone_core::Outcome::{self, Terminated, Truncated};
use overtone_core::counted;

use super::Misplaced;
use super::sequence::Sequence;

/// Minimum number of pairs of rows away from flags, and of flags: fewer say nothing.
const LEAST_USUAL: usize = 30;
pub(super) const LEAST_FLAGS: usize = 3;

/// The place among usual distances from which one is a jump, and that of most jumps.
pub(super) const JUMP: f64 = 0.95;
const MOST_JUMPS: f64 = 0.98;

/// A change of a number that is far: so many times the usual.
const FAR: f32 = 4.0;

/// Distances of rows from the next, which are usual.
pub(super) struct Usual(Vec<f32>);

impl Usual {
    /// The usual distances, from these in any order.
    pub fn of(mut distances: Vec<f32>) -> Self {
        distances.sort_unstable_by(f32::total_cmp);
        Self(distances)
    }

    /// The share of them that is smaller.
    pub fn place(&self, distance: f32) -> f64 {
        let smaller = self.0.partition_point(|&usual| usual < distance);
        smaller as f64 / self.0.len().max(1) as f64
    }
}

/// The finding about rows whose next observation, which the file holds, is not the next row's.
pub(super) fn broken(sequence: &Sequence, flagged: bool) -> Option<Misplaced> {
    let (rows, breaks) = (&sequence.rows, &sequence.breaks);
    if breaks.len() != rows.len() {
        return None;
    }
    let is_end = |row: usize| rows[row].end.is_some();
    let last = rows.len().saturating_sub(1);
    let unflagged: Vec<usize> = (0..last).filter(|&row| breaks[row] && !is_end(row)).collect();
    let first = *unflagged.first()?;
    let ends: Vec<usize> = (0..last).filter(|&row| is_end(row)).collect();
    let is_unflagged = |row: usize| row < last && breaks[row] && !is_end(row);
    let before = |&&end: &&usize| !breaks[end] && end > 0 && is_unflagged(end - 1);
    let after = |&&end: &&usize| !breaks[end] && is_unflagged(end + 1);
    let (late, early) = (ends.iter().filter(before).count(), ends.iter().filter(after).count());
    for (n, side) in [(late, Side::Late), (early, Side::Early)] {
        if 2 * n >= ends.len().max(1) && 2 * n >= unflagged.len() {
            let what = format!("{n} of {} flags", ends.len());
            return Some(side.misplaced(&what, &sequence.place(ends[0]), flagged));
        }
    }
    let found = format!(
        "{} without a flag whose next_observations are not the next row's observations, the first \
         in {}",
        counted(unflagged.len(), "row"),
        sequence.place(first)
    );
    if 2 * unflagged.len() > rows.len() {
        let advice = "Save the rows in the order in which they happened: a step's next observation \
                      is read from the row after it";
        return Some(Misplaced::new(found, advice));
    }
    Some(Misplaced::new(found, MERGED))
}

/// Advice for episodes that run into one another.
const MERGED: &str = "Set a timeout in these rows, if episodes end there: episodes that run into \
                      one another have wrong returns";

/// The side of an end on which flags are.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    /// In the first row of the next episode.
    Late,
    /// In the row before the last.
    Early,
    /// In the last step, before a row that holds a reset.
    BeforeReset,
}

impl Side {
    fn misplaced(self, flags: &str, first: &str, flagged: bool) -> Misplaced {
        let (jump, advice) = match (self, flagged) {
            (Self::Late, true) => (
                "before the flagged row, and not after it",
                "Move these flags one row up (`numpy.roll(flags, -1)`): an episode's last step has \
                 the flag",
            ),
            (Self::Late, false) => (
                "before an episode's last row, and not after it",
                "Move the last row of each episode to the next one, where it is the first",
            ),
            (Self::Early, true) => (
                "one row after the flagged row, and not at it",
                "Move these flags one row down (`numpy.roll(flags, 1)`): an episode's last step has \
                 the flag",
            ),
            (Self::Early, false) => (
                "after an episode's first row, and not before it",
                "Move the first row of each episode to the one before, where it is the last",
            ),
            (Self::BeforeReset, true) => (
                "one row after the flagged row, and not at it, with a reward of 0 there",
                "Leave the row after each flag out of every array, if a vector environment reset in \
                 it: it holds no step",
            ),
            (Self::BeforeReset, false) => (
                "after an episode's first row, and not before it, with a reward of 0 there",
                "Leave the first row of each episode out of every array, if a vector environment \
                 reset in it: it holds no step",
            ),
        };
        let found = format!("observations that jump {jump}: {flags}, the first in {first}");
        Misplaced::new(found, advice)
    }
}

/// The distances of a recording's rows, and which are usual.
pub(super) struct Jumps<'a> {
    sequence: &'a Sequence,
    scales: &'a [f32],
    /// `[rows - 1]`
    distances: Vec<f32>,
    usual: Usual,
}

impl<'a> Jumps<'a> {
    /// Those away from flags are usual.
    pub fn of(sequence: &'a Sequence, scales: &'a [f32]) -> Self {
        let distances = sequence.distances(scales, 1, usize::MAX);
        let is_end = |row: usize| sequence.rows[row].end.is_some();
        let is_away =
            |row: &usize| !is_end(*row) && !is_end(*row + 1) && (*row == 0 || !is_end(*row - 1));
        let away = (0..distances.len()).filter(is_away).map(|row| distances[row]);
        let usual = Usual::of(away.collect());
        Self { sequence, scales, distances, usual }
    }

    /// The finding, if flags and jumps are apart.
    pub fn misplaced(&self, flagged: bool) -> Option<Misplaced> {
        if self.usual.0.len() < LEAST_USUAL {
            return None;
        }
        self.shifted(flagged).or_else(|| self.adjacent()).or_else(|| self.first_row()).or_else(
            || {
                // Pictures may change entirely within an episode.
                let is_known = !self.sequence.breaks.is_empty() || self.sequence.is_pictures;
                if is_known { None } else { self.unflagged() }
            },
        )
    }

    fn is_end(&self, row: usize) -> bool {
        self.sequence.rows.get(row).is_some_and(|row| row.end.is_some())
    }

    /// The ends that `matches` accepts and that a row follows.
    fn ends(&self, matches: impl Fn(usize) -> bool) -> Vec<usize> {
        (0..self.distances.len()).filter(|&row| self.is_end(row) && matches(row)).collect()
    }

    /// Whether observations jump from nearly all of these rows to the next.
    fn jump(&self, rows: impl Iterator<Item = usize>) -> bool {
        let mut places: Vec<f64> = rows.map(|row| self.usual.place(self.distances[row])).collect();
        let n_jumps = places.iter().filter(|&&place| place >= JUMP).count();
        places.len() >= LEAST_FLAGS
            && 10 * n_jumps >= 8 * places.len()
            && median(&mut places) >= MOST_JUMPS
    }

    /// Flags one row before or after the jumps. The task's ends and the limits' may differ in it.
    fn shifted(&self, flagged: bool) -> Option<Misplaced> {
        let mut shifted: Option<(Side, String, usize)> = None;
        for (outcome, whose) in [(Terminated, "the task's end"), (Truncated, "a step limit")] {
            let ends = self.ends_of(outcome);
            let Some(side) = self.side(&ends) else { continue };
            let flags = format!("{} flags of {whose}", ends.len());
            shifted = Some(match shifted {
                Some((first, before, row)) if first == side => {
                    (side, format!("{before} and {flags}"), row.min(ends[0]))
                }
                Some(other) => other,
                None => (side, flags, ends[0]),
            });
        }
        let (side, flags, first) = shifted?;
        Some(side.misplaced(&flags, &self.sequence.place(first), flagged))
    }

    /// The flags of one kind that are apart from other flags, and have a row before and two after.
    fn ends_of(&self, outcome: Outcome) -> Vec<usize> {
        self.ends(|row| {
            let is_apart = row > 0 && !self.is_end(row - 1) && !self.is_end(row + 1);
            let is_inside = row + 1 < self.distances.len();
            is_apart && is_inside && self.sequence.rows[row].end == Some(outcome)
        })
    }

    /// The side on which these flags are; `None` if they are right, or resets do not jump.
    fn side(&self, ends: &[usize]) -> Option<Side> {
        let mut at: Vec<f64> = ends.iter().map(|&end| f64::from(self.distances[end])).collect();
        let mut places: Vec<f64> =
            ends.iter().map(|&end| self.usual.place(self.distances[end])).collect();
        let is_farther = |side: &dyn Fn(usize) -> usize| {
            let n = ends.iter().filter(|&&end| self.distances[side(end)] > self.distances[end]);
            10 * n.count() >= 9 * ends.len()
        };
        let (usual_at, usual_place) = (median(&mut at), median(&mut places));
        let is_shifted = |side: &dyn Fn(usize) -> usize| {
            let mut there: Vec<f64> =
                ends.iter().map(|&end| f64::from(self.distances[side(end)])).collect();
            self.jump(ends.iter().map(|&end| side(end)))
                && is_farther(side)
                && (usual_place <= 0.9 || median(&mut there) >= 2.0 * usual_at)
        };
        if is_shifted(&|end| end - 1) {
            return Some(Side::Late);
        }
        if !is_shifted(&|end| end + 1) {
            return None;
        }
        let rows = &self.sequence.rows;
        let n_zero = ends.iter().filter(|&&end| rows[end + 1].reward == 0.0).count();
        let is_paid = rows.iter().any(|row| row.reward != 0.0);
        let is_reset = is_paid && 20 * n_zero >= 19 * ends.len();
        Some(if is_reset { Side::BeforeReset } else { Side::Early })
    }

    /// Flags right after others without a jump, such as of a robot that stays at its goal.
    fn adjacent(&self) -> Option<Misplaced> {
        let after_flag = self.ends(|row| row > 0 && self.is_end(row - 1));
        let closing = self.ends(|row| !self.is_end(row + 1));
        let n_ends = self.ends(|_| true).len();
        if after_flag.len() < LEAST_FLAGS || 10 * after_flag.len() < n_ends {
            return None;
        }
        let mut places: Vec<f64> =
            after_flag.iter().map(|&row| self.usual.place(self.distances[row - 1])).collect();
        if median(&mut places) > 0.9 || !self.jump(closing.into_iter()) {
            return None;
        }
        let (n, first) = (after_flag.len(), self.sequence.place(after_flag[0]));
        let found = format!(
            "{} right after a flagged row without a jump, the first in {first}",
            counted(n, "flagged row")
        );
        let advice = "Keep the first flag of each run, and leave out the rows after it: each flagged \
                      row is read as the end of an episode";
        Some(Misplaced::new(found, advice))
    }

    /// Flags at the first rows of episodes, if resets need not jump.
    fn first_row(&self) -> Option<Misplaced> {
        let last = (0..self.sequence.rows.len()).rev().find(|&row| self.is_end(row))?;
        let n_after = self.sequence.rows.len() - 1 - last;
        (self.is_end(0) && n_after > 1).then(|| {
            let found = format!("a flag in row 0, none in the last {n_after} rows");
            Misplaced::new(
                found,
                "Move each flag one row up, if it marks the first step of an episode",
            )
        })
    }

    /// Jumps without a flag: as far as those at flags, or else far in most numbers.
    fn unflagged(&self) -> Option<Misplaced> {
        let inside: Vec<usize> =
            (0..self.distances.len()).filter(|&row| !self.is_end(row)).collect();
        let least = self.as_at_flags(&inside).or_else(|| self.gap(&inside))?;
        let jumps: Vec<usize> =
            inside.into_iter().filter(|&row| self.distances[row] >= least).collect();
        // A value that is wrong in one row jumps there and back.
        let n_back = jumps.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
        (10 * n_back <= jumps.len()).then(|| {
            let (n, first) = (jumps.len(), self.sequence.place(jumps[0]));
            let found = format!(
                "{} without a flag after which observations jump, the first in {first}",
                counted(n, "row")
            );
            Misplaced::new(found, MERGED)
        })
    }

    /// A distance that most flagged rows reach and several others, with hardly any below it.
    fn as_at_flags(&self, inside: &[usize]) -> Option<f32> {
        let ends = self.ends(|_| true);
        let mut at: Vec<f32> = ends.iter().map(|&end| self.distances[end]).collect();
        at.sort_unstable_by(f32::total_cmp);
        let least = *at.get(at.len() / 4)?;
        let is_between = |&&row: &&usize| (0.5 * least..least).contains(&self.distances[row]);
        let n_jumps = inside.iter().filter(|&&row| self.distances[row] >= least).count();
        let n_between = inside.iter().filter(is_between).count();
        let is_apart = n_jumps >= 2 && 5 * n_between <= n_jumps;
        (is_apart && self.jump(ends.into_iter())).then_some(least)
    }

    /// The smallest distance above a wide gap among the largest, if most numbers jump there.
    fn gap(&self, inside: &[usize]) -> Option<f32> {
        let mut sorted: Vec<f32> = inside.iter().map(|&row| self.distances[row]).collect();
        sorted.sort_unstable_by(f32::total_cmp);
        let top = &sorted[sorted.len() * 9 / 10..];
        let ratio = |at: &usize| top[*at] / top[*at - 1].max(f32::MIN_POSITIVE);
        let at = (1..top.len()).max_by(|one, other| ratio(one).total_cmp(&ratio(other)))?;
        let least = top[at];
        let is_wide = ratio(&at) >= 1.5 && least >= FAR * sorted[sorted.len() / 2];
        let jumps: Vec<usize> =
            inside.iter().copied().filter(|&row| self.distances[row] >= least).collect();
        let n_whole = jumps.iter().filter(|&&row| self.jumps_in_most(row)).count();
        (is_wide && jumps.len() >= LEAST_FLAGS && 4 * n_whole >= 3 * jumps.len()).then_some(least)
    }

    /// Whether at least half of the numbers, and two, change far from a row to the next.
    fn jumps_in_most(&self, row: usize) -> bool {
        let (here, next) = (self.sequence.observation(row), self.sequence.observation(row + 1));
        let changes = here.iter().zip(next).zip(self.scales);
        let n_far = changes.filter(|((a, b), scale)| (*b - *a).abs() * **scale > FAR).count();
        2 * n_far >= self.sequence.width().max(3)
    }
}

/// The middle of some numbers; 0 of none.
fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}
