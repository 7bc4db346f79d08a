//! [`Ends`]: rows on the wrong side of an episode's end.
//!
//! Within an episode observations change a little, and at a reset they jump. The usual change is
//! learnt from the recording itself, robustly. Then flags belong where the jumps are. If resets do
//! not jump, there is no doubt. With `next_observations` the places of resets are known exactly.

mod dummies;
mod jumps;
mod misplaced;
mod padding;
mod sequence;
mod turns;

use overtone_core::Episode;

use self::jumps::Jumps;
use self::misplaced::Misplaced;
use self::sequence::Sequence;
use super::steps::Steps;
use crate::describe::findings::Findings;

/// Minimum number of rows: fewer say nothing about the usual change.
const LEAST_ROWS: usize = 20;

/// The rows of a recording and their ends.
#[derive(Default)]
pub(super) struct Ends {
    sequence: Sequence,
    /// Whether flags in rows say where episodes end.
    flagged: bool,
}

impl Ends {
    /// Adds the steps of `episodes`, and whether each is finished.
    pub fn add(&mut self, part: &Steps<'_>, episodes: &[Episode], finished: &[bool]) {
        self.flagged = part.stored.flagged;
        self.sequence.add(part, episodes, finished);
    }

    /// Adds the doubt, if any.
    pub fn tell(&self, findings: &mut Findings<'_>) {
        if let Some(Misplaced { found, advice }) = self.misplaced() {
            findings.tell_of("ends-and-jumps", "", advice, found);
        }
    }

    /// Whether rows of padding stand next to the ends of episodes.
    pub fn has_padding(&self) -> bool {
        padding::padded(&self.sequence).is_some()
    }

    fn misplaced(&self) -> Option<Misplaced> {
        let sequence = &self.sequence;
        let n_ends = sequence.rows.iter().filter(|row| row.end.is_some()).count();
        let is_short = sequence.rows.len() < LEAST_ROWS;
        if n_ends == sequence.rows.len() || (is_short && sequence.breaks.is_empty()) {
            return None;
        }
        if is_short {
            return jumps::broken(sequence, self.flagged);
        }
        let scales = sequence.scales();
        padding::padded(sequence)
            .or_else(|| turns::in_turn(sequence, &scales))
            .or_else(|| jumps::broken(sequence, self.flagged))
            .or_else(|| Jumps::of(sequence, &scales).misplaced(self.flagged))
            .or_else(|| dummies::dummies(sequence))
    }
}
