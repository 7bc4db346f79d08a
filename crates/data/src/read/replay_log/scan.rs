//! The walk over a log's adds in order, which finds the episodes and counts everything.

use std::cmp::Ordering;

use super::columns::Loaded;
use super::parts::{Counts, Ending, LogFile, LoggedEpisode, MAX_REWARDS, Odd, PADDING};

/// Oddities kept.
const MAX_ODD: usize = 32;

/// The scan's position in an episode.
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
    /// Number of the file it walks.
    number: u32,
    /// One past the last add seen.
    next: u64,
    pub(super) episodes: Vec<LoggedEpisode>,
    pub(super) counts: Counts,
    pub(super) odd: Vec<Odd>,
}

impl Scan {
    /// Walks the adds that file `number` has and the files before it have not.
    pub(super) fn file(&mut self, number: u32, loaded: &Loaded) -> LogFile {
        let Loaded { columns, add_count } = loaded;
        let add_count = *add_count;
        let slots = columns.actions.len();
        let capacity = slots as u64;
        let first_file = self.counts.slots == 0;
        self.counts.slots += capacity;
        let cursor = add_count % capacity;
        if cursor != 0 {
            self.counts.stale += capacity - cursor;
        }
        self.number = number;
        if cursor != capacity - 1 {
            let usual = capacity - 1;
            self.note(
                "stale-slots",
                format!("file {number} was saved with the cursor at slot {cursor}, not {usual}"),
            );
        }

        let oldest = add_count.saturating_sub(capacity);
        let start = oldest.max(self.next);
        if start >= add_count {
            self.note(
                "repeated-file",
                format!(
                    "file {number} holds nothing that earlier files do not (its add_count is \
                     {add_count})"
                ),
            );
            return LogFile { number, add_count, adds: self.next..self.next };
        }
        if start > self.next || first_file {
            if !first_file {
                let sentence = format!(
                    "{} slots are missing before file {number}: the episode there is cut",
                    start - self.next
                );
                self.break_off();
                self.note("missing-slots", sentence);
            } else if start > 0 {
                self.note(
                    "late-beginning",
                    format!(
                        "the log begins at file {number}, {start} slots after the recording began"
                    ),
                );
            }
            self.place = if start == 0 { Place::Padding(PADDING) } else { Place::Headless };
        }
        if cursor != 0 {
            self.counts.recovered += (add_count - cursor).saturating_sub(start);
        }
        for add in start..add_count {
            let slot = (add % capacity) as usize;
            self.step(add, columns.actions[slot], columns.rewards[slot], columns.terminals[slot]);
        }
        self.next = add_count;
        LogFile { number, add_count, adds: start..add_count }
    }

    fn step(&mut self, add: u64, action: u8, reward: f32, terminal: bool) {
        if let Place::Padding(left) = self.place {
            if action == 0 && reward == 0.0 && !terminal && left > 0 {
                self.counts.padding += 1;
                self.place = Place::Padding(left - 1);
                return;
            }
            if left > 0 {
                let (number, found) = (self.number, PADDING - left);
                self.note(
                    "missing-padding",
                    format!(
                        "file {number}: an episode begins with {found} padding slots, not {PADDING}"
                    ),
                );
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
        if !(-1.0..=1.0).contains(&reward) {
            self.counts.rewards_outside += 1;
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

    /// Adds to the odd list, which a hostile log must not make endless.
    fn note(&mut self, code: &'static str, sentence: String) {
        match self.odd.len().cmp(&MAX_ODD) {
            Ordering::Less => self.odd.push(Odd { code, sentence }),
            Ordering::Equal => {
                let sentence = "and more of the kind".into();
                self.odd.push(Odd { code: "more-oddities", sentence });
            }
            Ordering::Greater => {}
        }
    }

    fn end_headless(&mut self) {
        if self.headless_steps > 0 {
            self.counts.headless += 1;
            self.note(
                "headless-steps",
                format!(
                    "{} steps belong to an episode whose beginning is not in the log",
                    self.headless_steps
                ),
            );
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
