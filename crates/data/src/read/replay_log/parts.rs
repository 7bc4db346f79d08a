//! The parts of a log in the DQN Replay Dataset's form.

use std::collections::BTreeMap;
use std::ops::Range;

/// Padding slots at each episode's start.
pub const PADDING: u64 = 3;
/// Actions of the Arcade Learning Environment.
pub const MAX_ACTIONS: usize = 18;
/// Agent steps after which the recorded episodes were cut (108,000 raw frames, skip 4);
/// Dopamine stores `terminal` there as well.
pub const STEP_LIMIT: u64 = 27_000;
/// Distinct rewards counted one by one; clipped ones are usually -1, 0 and 1.
pub const MAX_REWARDS: usize = 1000;

/// Why an episode of the log has no further step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its last step has `terminal` set.
    GameOver,
    /// Its last step has `terminal` set because the step limit was reached.
    StepLimit,
    /// The log, or its unbroken part, ends first.
    Cut,
}

/// An episode whose beginning is in the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoggedEpisode {
    /// Add number of its first step (padding excluded).
    pub first: u64,
    /// Agent steps.
    pub length: u64,
    /// Padding slots right before it: [`PADDING`], unless the log is odd.
    pub padding: u64,
    /// Sum of its rewards as the log has them; Dopamine clips them to [-1, 1], and a log where
    /// it did not is refused before anything is trained on it.
    pub clipped_return: f64,
    /// How it ended.
    pub ending: Ending,
}

/// One file (all its columns) of a run.
#[derive(Clone, Debug)]
pub struct LogFile {
    /// The number in its names.
    pub number: u32,
    /// Adds up to when it was saved.
    pub add_count: u64,
    /// Adds it contributes: those it holds and no earlier file does.
    pub adds: Range<u64>,
}

/// Slots `slot .. slot + length` of file `file` (an index into [`crate::ReplayLog::files`]),
/// which hold consecutive adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotRange {
    /// Index of the file.
    pub file: usize,
    /// First slot.
    pub slot: usize,
    /// Number of slots.
    pub length: usize,
}

/// The facts in a log's small columns, counted over agent steps only.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Slots of all files.
    pub slots: u64,
    /// Agent steps, each once.
    pub transitions: u64,
    /// Padding slots.
    pub padding: u64,
    /// Slots at or after the cursor of their file: left from the pass before, or never written.
    pub stale: u64,
    /// Stale slots that supply the step between two files.
    pub recovered: u64,
    /// Stretches of steps whose beginning is not in the log.
    pub headless: u64,
    /// Agent steps in them.
    pub headless_transitions: u64,
    /// Times each action was chosen.
    pub actions: [u64; MAX_ACTIONS],
    /// Times each reward came, by its bits (of finite numbers only); the first
    /// [`MAX_REWARDS`] distinct ones.
    pub rewards: BTreeMap<u32, u64>,
    /// Times any other reward came.
    pub other_rewards: u64,
    /// Times a reward outside [-1, 1] came.
    pub rewards_outside: u64,
}

/// Something in a log that is not as Dopamine writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Odd {
    /// The kind: the code of the finding.
    pub code: &'static str,
    /// One sentence, without a full stop.
    pub sentence: String,
}

impl LoggedEpisode {
    /// Add numbers of its steps.
    pub fn adds(&self) -> Range<u64> {
        self.first..self.first + self.length
    }

    /// Add numbers of the padding before it.
    pub fn padding_adds(&self) -> Range<u64> {
        self.first - self.padding..self.first
    }
}

impl Ending {
    /// How an episode of `steps` agent steps that ends with `terminal` set ended.
    pub fn of_terminal(steps: u64) -> Self {
        if steps == STEP_LIMIT { Self::StepLimit } else { Self::GameOver }
    }
}
