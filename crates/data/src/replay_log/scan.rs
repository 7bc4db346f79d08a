//! The walk over a log's adds in order, which finds the episodes and counts everything.

use std::cmp::Ordering;

use super::{Counts, Ending, LogFile, LoggedEpisode, MAX_REWARDS, PADDING, SmallColumns};
use crate::error::DataError;
use crate::npy;
use crate::run_folder::RunFolder;

/// Sentences kept about what is odd.
const MAX_ODD: usize = 32;

/// Where in an episode the scan stands.
#[derive(Default)]
enum Place {
    /// The beginning of what comes is not in the log; so many steps seen.
    #[default]
    Headless,
    /// This many padding slots are still to come.
    Padding(u64),
    /// Inside an episode.
    Inside { first: u64, padding: u64, length: u64, sum: f64 },
}

/// Walks the adds of all files in order.
#[derive(Default)]
pub(super) struct Scan {
    place: Place,
    headless_steps: u64,
    /// One past the last add seen.
    next: u64,
    pub(super) episodes: Vec<LoggedEpisode>,
    pub(super) counts: Counts,
    pub(super) odd: Vec<String>,
}

impl Scan {
    /// Walks the adds that file `number` has and the files before it have not.
    pub(super) fn file(
        &mut self,
        folder: &RunFolder,
        number: u32,
        columns: &SmallColumns,
        add_count: u64,
    ) -> Result<LogFile, DataError> {
        let slots = columns.actions.len();
        let capacity = slots as u64;
        let first_file = self.counts.slots == 0;
        self.counts.slots += capacity;
        let cursor = add_count % capacity;
        if cursor != 0 {
            self.counts.stale += capacity - cursor;
        }
        self.check_cursor(folder, number, capacity, cursor)?;

        let oldest = add_count.saturating_sub(capacity);
        let start = oldest.max(self.next);
        if start >= add_count {
            self.note(format!(
                "file {number} holds nothing that earlier files do not (its add_count is {add_count})"
            ));
            return Ok(LogFile { number, add_count, adds: self.next..self.next });
        }
        if start > self.next || first_file {
            if !first_file {
                self.note(format!(
                    "{} slots are missing before file {number}: the episode there is cut",
                    start - self.next
                ));
                self.break_off();
            } else if start > 0 {
                self.note(format!(
                    "the log begins at file {number}, {start} slots after the recording began"
                ));
            }
            self.place = if start == 0 { Place::Padding(PADDING) } else { Place::Headless };
        }
        self.counts.recovered += (add_count - cursor).saturating_sub(start);
        for add in start..add_count {
            let slot = (add % capacity) as usize;
            self.step(
                add,
                columns.actions[slot],
                columns.rewards[slot],
                columns.terminals[slot],
                number,
            );
        }
        self.next = add_count;
        Ok(LogFile { number, add_count, adds: start..add_count })
    }

    /// Notes a cursor that is not where Dopamine saves, or an invalid range that is not its.
    fn check_cursor(
        &mut self,
        folder: &RunFolder,
        number: u32,
        capacity: u64,
        cursor: u64,
    ) -> Result<(), DataError> {
        if cursor != capacity - 1 {
            self.note(format!(
                "file {number} was saved with the cursor at slot {cursor}, not {}",
                capacity - 1
            ));
        }
        match npy::read_small::<i64>(&folder.invalid_range(number), 64) {
            Ok(range) => {
                let expected = (0..range.len() as u64)
                    .map(|i| ((cursor + capacity - 1 + i) % capacity) as i64)
                    .collect::<Vec<_>>();
                if range != expected {
                    self.note(format!(
                        "file {number}: invalid_range is {range:?}, and the cursor gives {expected:?}"
                    ));
                }
            }
            Err(DataError::Missing { .. }) => {
                self.note(format!("file {number} has no invalid_range (it is not needed)"));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn step(&mut self, add: u64, action: u8, reward: f32, terminal: bool, number: u32) {
        if let Place::Padding(left) = self.place {
            if action == 0 && reward == 0.0 && !terminal && left > 0 {
                self.counts.padding += 1;
                self.place = Place::Padding(left - 1);
                return;
            }
            if left > 0 {
                self.note(format!(
                    "file {number}: an episode begins with {} padding slots, not {PADDING}",
                    PADDING - left
                ));
            }
            self.place = Place::Inside { first: add, padding: PADDING - left, length: 0, sum: 0.0 };
        }
        self.counts.transitions += 1;
        self.counts.actions[usize::from(action)] += 1;
        // One zero: -0.0 and 0.0 are the same reward.
        let bits = (reward + 0.0).to_bits();
        if self.counts.rewards.len() < MAX_REWARDS || self.counts.rewards.contains_key(&bits) {
            *self.counts.rewards.entry(bits).or_default() += 1;
        } else {
            self.counts.other_rewards += 1;
        }
        match &mut self.place {
            Place::Inside { first, padding, length, sum } => {
                *length += 1;
                *sum += f64::from(reward);
                if terminal {
                    self.episodes.push(LoggedEpisode {
                        first: *first,
                        length: *length,
                        padding: *padding,
                        clipped_return: *sum,
                        ending: Ending::of_terminal(*length),
                    });
                }
            }
            Place::Headless | Place::Padding(_) => {
                self.counts.headless_transitions += 1;
                self.headless_steps += 1;
            }
        }
        if terminal {
            self.end_headless();
            self.place = Place::Padding(PADDING);
        }
    }

    /// Adds a sentence to the odd list, which a hostile log must not make endless.
    fn note(&mut self, sentence: String) {
        match self.odd.len().cmp(&MAX_ODD) {
            Ordering::Less => self.odd.push(sentence),
            Ordering::Equal => self.odd.push("and more of the kind".into()),
            Ordering::Greater => {}
        }
    }

    fn end_headless(&mut self) {
        if self.headless_steps > 0 {
            self.counts.headless += 1;
            self.note(format!(
                "{} steps belong to an episode whose beginning is not in the log",
                self.headless_steps
            ));
            self.headless_steps = 0;
        }
    }

    /// Ends whatever is under way without a terminal.
    pub(super) fn break_off(&mut self) {
        self.end_headless();
        if let Place::Inside { first, padding, length, sum } = self.place
            && length > 0
        {
            self.episodes.push(LoggedEpisode {
                first,
                length,
                padding,
                clipped_return: sum,
                ending: Ending::Cut,
            });
        }
        self.place = Place::Headless;
    }
}
