//! [`DoubtedNumber`]: what one number of every row may be besides a quantity.

use std::collections::BTreeSet;
use std::f32::consts::TAU;

use overtone_core::counted;

use crate::describe::findings::Tally;

/// Different whole numbers that are counted.
const MOST_VALUES: usize = 1024;

/// Rows whose whole numbers are counted.
const COUNTED_ROWS: usize = 100_000;

/// Jumps back of a number that repeats, at least: a step counter may restart once or twice.
const FEWEST_CYCLES: usize = 3;

/// A turn, in each unit of angles.
const TURNS: [f32; 2] = [360.0, TAU];

/// One number of every row, as far as it was seen.
#[derive(Clone, Default)]
pub(super) struct DoubtedNumber {
    rows: usize,
    low: f32,
    high: f32,
    /// Whether a value is not whole.
    real: bool,
    /// Its values in the first rows, as long as all are whole; one more than are counted where
    /// there are more.
    values: BTreeSet<i64>,
    last: f32,
    angles: [Angle; 2],
    counter: Counter,
}

/// Steps between values, if they are angles of this unit.
#[derive(Clone, Copy, Default)]
struct Angle {
    /// Nearly a turn.
    wraps: usize,
    /// Too far for an angle that is followed from row to row.
    jumps: usize,
}

/// A number that counts rows, as far as it was seen to.
#[derive(Clone, Default)]
struct Counter {
    first: f32,
    step: Option<f32>,
    is_other: bool,
    /// Rows at which it restarts inside an episode.
    restarts: Tally,
    cycle: Cycle,
}

/// A number that counts from one end of its range to the other, again and again, as an hour.
#[derive(Clone, Copy, Default)]
struct Cycle {
    step: Option<f32>,
    /// The values before and after its first jump back.
    ends: Option<[f32; 2]>,
    jumps: usize,
    is_other: bool,
}

impl DoubtedNumber {
    /// Adds the next value; `first`: of its episode.
    pub fn add(&mut self, value: f32, first: bool, here: impl Fn() -> String) {
        if self.rows == 0 {
            (self.low, self.high) = (value, value);
            self.counter.first = value;
        }
        let change = value - self.last;
        if !first {
            let size = change.abs();
            for (angle, turn) in self.angles.iter_mut().zip(TURNS) {
                angle.wraps += usize::from(size > 0.9 * turn);
                angle.jumps += usize::from(size > 0.25 * turn && size <= 0.9 * turn);
            }
        }
        self.counter.add(value, change, first, here);
        if !first {
            self.counter.cycle.add(self.last, value);
        }
        self.low = self.low.min(value);
        self.high = self.high.max(value);
        if !self.real {
            self.real = value.fract() != 0.0 || !value.is_finite();
            let is_new = value != self.last || self.rows == 0;
            if is_new && self.rows < COUNTED_ROWS && self.values.len() <= MOST_VALUES {
                self.values.insert(value as i64);
            }
        }
        self.last = value;
        self.rows += 1;
    }

    /// Whether all values are whole.
    pub fn is_whole(&self) -> bool {
        self.rows > 0 && !self.real
    }

    /// How many different whole numbers there are; `None` where they are too many.
    pub fn n_values(&self) -> Option<usize> {
        (self.values.len() <= MOST_VALUES).then_some(self.values.len())
    }

    /// The smallest and the greatest.
    pub fn range(&self) -> [f32; 2] {
        [self.low, self.high]
    }

    /// Whether all are between two bounds.
    pub fn is_within(&self, low: f32, high: f32) -> bool {
        self.low >= low && self.high <= high
    }

    /// How an angle jumps from one end of its turn to the other; `None` of anything else.
    pub fn wrapped(&self) -> Option<String> {
        let range = self.high - self.low;
        let is_turn = |turn: f32| {
            let within = self.is_within(-turn / 2.0 * 1.001, turn / 2.0 * 1.001)
                || self.is_within(0.0, turn * 1.001);
            within && range > 0.95 * turn
        };
        let mut known = self.angles.iter().zip(TURNS);
        let (angle, _) =
            known.find(|(angle, turn)| angle.wraps > 0 && angle.jumps == 0 && is_turn(*turn))?;
        Some(format!(
            "{} from one end of [{}, {}] to the other",
            counted(angle.wraps, "step"),
            self.low,
            self.high
        ))
    }

    /// How a number that counts up repeats within episodes; `None` if it does not.
    pub fn repeats(&self) -> Option<String> {
        let Cycle { ends, jumps, is_other, .. } = self.counter.cycle;
        let [high, low] = ends.filter(|_| !is_other && jumps >= FEWEST_CYCLES)?;
        let is_range = [low, high] == [self.low, self.high];
        is_range.then(|| format!("repeats from {low} to {high}, {jumps} times"))
    }

    /// The rows at which a number that counts rows restarts without a flag; `None` if it does not.
    pub fn restarted(&self) -> Option<String> {
        let Counter { is_other, restarts, step, .. } = &self.counter;
        let counts = !is_other && step.is_some() && 5 * restarts.count < self.rows as u64;
        restarts.counted(["row", ""]).filter(|_| counts)
    }
}

impl Cycle {
    fn add(&mut self, last: f32, value: f32) {
        let change = value - last;
        if self.is_other || change == 0.0 {
            return;
        }
        if change < 0.0 {
            self.jumps += 1;
            let ends = *self.ends.get_or_insert([last, value]);
            self.is_other = ends != [last, value];
        } else {
            let step = *self.step.get_or_insert(change);
            self.is_other = (change - step).abs() > 1e-3 * step;
        }
        // Two values that alternate are a switch.
        let is_switch = |[high, low]: [f32; 2]| self.step.is_some_and(|step| high - low <= step);
        self.is_other |= self.ends.is_some_and(is_switch);
    }
}

impl Counter {
    fn add(&mut self, value: f32, change: f32, first: bool, here: impl Fn() -> String) {
        if self.is_other || first {
            return;
        }
        let step = *self.step.get_or_insert(change);
        if value == self.first && change != step {
            self.restarts.add(here);
        } else if step <= 0.0 || (change - step).abs() > 1e-3 * step {
            self.is_other = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f32]) -> DoubtedNumber {
        let mut number = DoubtedNumber::default();
        for (row, &value) in values.iter().enumerate() {
            number.add(value, row == 0, || format!("row {row}"));
        }
        number
    }

    #[test]
    fn whole_numbers_are_counted() {
        let number = of(&[3.0, 1.0, 3.0, 2.0]);
        assert!(number.is_whole());
        assert_eq!((number.n_values(), number.range()), (Some(3), [1.0, 3.0]));
        assert!(!of(&[3.0, 1.5]).is_whole());
        assert!(!of(&[]).is_whole());
        let many: Vec<f32> = (0..2000).map(|value| value as f32).collect();
        assert_eq!(of(&many).n_values(), None);
    }

    #[test]
    fn an_angle_jumps_by_a_turn() {
        // In steps of 10 degrees, from -180 to 180 and over the end.
        let degrees: Vec<f32> = (0..80).map(|row| (row * 10 % 360) as f32 - 180.0).collect();
        let found = of(&degrees).wrapped().unwrap();
        assert!(found.starts_with("2 steps from one end of [-180, 170]"), "{found}");
        let radians: Vec<f32> = degrees.iter().map(|angle| angle.to_radians()).collect();
        assert!(of(&radians).wrapped().is_some());
        // Other quantities of this range: one that does not jump, and noise, whose jumps are of any size.
        let there_and_back: Vec<f32> = (0..80).map(|row| ((row * 9) - 360) as f32 / 2.0).collect();
        assert_eq!(of(&there_and_back).wrapped(), None);
        let noise: Vec<f32> = (0..200).map(|row| (row * row * 7 % 361) as f32 - 180.0).collect();
        assert_eq!(of(&noise).wrapped(), None);
    }

    #[test]
    fn an_hour_repeats() {
        // From the sixth hour, each for four rows.
        let hours: Vec<f32> = (0..400).map(|row| ((row / 4 + 6) % 24) as f32).collect();
        assert_eq!(of(&hours).repeats().unwrap(), "repeats from 0 to 23, 4 times");
        let shares: Vec<f32> = hours.iter().map(|hour| hour / 24.0).collect();
        assert!(of(&shares).repeats().is_some());
        // Steps of episodes of different lengths, a switch, and a quantity.
        let lengths = [10, 12, 9, 11];
        let steps: Vec<f32> = lengths.iter().flat_map(|&n| (0..n).map(|row| row as f32)).collect();
        assert_eq!(of(&steps).repeats(), None);
        assert_eq!(of(&[0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]).repeats(), None);
        let wave: Vec<f32> = (0..200).map(|row| (row as f32 * 0.3).sin()).collect();
        assert_eq!(of(&wave).repeats(), None);
    }

    #[test]
    fn a_counter_that_begins_anew_is_told() {
        let steps: Vec<f32> = (0..30).map(|row| (row % 10) as f32).collect();
        assert_eq!(of(&steps).restarted().unwrap(), "2 rows, the first in row 10");
        let shares: Vec<f32> = steps.iter().map(|step| step / 10.0).collect();
        assert_eq!(of(&shares).restarted().unwrap(), "2 rows, the first in row 10");
        // A number that continues, two alternating values, and a number that does not count.
        assert_eq!(of(&(0..30).map(|row| row as f32).collect::<Vec<_>>()).restarted(), None);
        assert_eq!(of(&[0.0, 1.0, 0.0, 1.0, 0.0, 1.0]).restarted(), None);
        assert_eq!(of(&[0.0, 1.0, 3.0, 0.0, 1.0, 3.0]).restarted(), None);
    }
}
