//! Rules that select the transitions of a log for training.

use std::fmt;
use std::ops::Range;

use overtone_core::seed;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{DataError, Fault};
use crate::hex::hex;
use crate::read::replay_log::{Ending, ReplayLog, SlotRange};
use crate::sample::shuffle::{below, permutation};

/// Slots of each file the reference can reach: it opens them with this capacity.
const RELEASED_REACH: usize = 100_000;

/// A rule for choosing transitions; both are seeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "rule", deny_unknown_fields)]
pub enum Selection {
    /// As the released Decision Transformer builds its dataset: until `num_steps` rows are
    /// there, draw one of the last `num_buffers` files, and read on in it for
    /// `trajectories_per_buffer + 1` episodes (the reference's count is off by one), from
    /// its first 100,000 slots only. The three padding slots of each episode are kept as
    /// rows, as the reference does.
    ///
    /// Differences from the reference; they do not change the training result:
    /// - files are drawn by this project's generator, not NumPy's;
    /// - a visit that reaches the end of a file's reach is dropped *with* its episode ends
    ///   (the reference keeps the ends, so its episode table would be wrong);
    /// - a file used up so is not drawn again, and when all are, the selection ends with what
    ///   it has (the reference would draw for ever);
    /// - a file that begins in the middle of an episode gives the rest of it as an episode, as
    ///   in the reference (so it has no padding rows);
    /// - timesteps count from 0 in every episode (the reference gives an episode's first step
    ///   the length of the one before, and counts the others from one too low);
    /// - a stack at a padding row shows the previous row of the dataset, which at the first
    ///   rows of a visit is not the previous slot of the file;
    /// - the stale slot is never read (the reference's reach of 100,000 excludes it in the
    ///   published files; here it does so in smaller ones as well).
    Released {
        /// Rows to collect at least.
        num_steps: usize,
        /// Number of files, counted from the last, that are drawn from.
        num_buffers: usize,
        /// Episodes a visit, less one.
        trajectories_per_buffer: usize,
    },
    /// Whole finished episodes of all files, drawn without replacement until `num_steps`
    /// transitions are reached, kept in the log's order; all of them in a smaller log.
    /// Padding is not stored as rows. Cut episodes are left out: their returns-to-go are unknown.
    Uniform {
        /// Transitions to collect at least.
        num_steps: usize,
    },
}

impl Selection {
    /// The reference's rule with its own numbers: 500,000 steps from all 50 files.
    pub const RELEASED: Self =
        Self::Released { num_steps: 500_000, num_buffers: 50, trajectories_per_buffer: 10 };

    /// Enough whole episodes to hold `num_steps` transitions.
    pub fn uniform(num_steps: usize) -> Self {
        Self::Uniform { num_steps }
    }

    /// Draws the transitions.
    ///
    /// # Errors
    /// If nothing is left: the log has no finished episode, or the rule's numbers are 0.
    pub fn draw(&self, log: &ReplayLog, run_seed: u64) -> Result<Selected, DataError> {
        let mut selected = match *self {
            Self::Uniform { num_steps } => draw_uniform(log, num_steps, run_seed),
            Self::Released { num_steps, num_buffers, trajectories_per_buffer } => {
                draw_released(log, num_steps, num_buffers, trajectories_per_buffer, run_seed)?
            }
        };
        if selected.episodes.is_empty() {
            return Err(Fault::NothingSelected(match self {
                Self::Uniform { .. } => format!(
                    "the log has {} finished episodes, and the rule is `{self}`",
                    log.finished().count()
                ),
                Self::Released { .. } => format!(
                    "no file of {} slots holds a whole visit of `{self}`; use the uniform rule",
                    log.capacity
                ),
            })
            .at(&log.folder.folder));
        }
        selected.hash = selected.digest();
        Ok(selected)
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Released { num_steps, num_buffers, trajectories_per_buffer } => {
                write!(f, "released-{num_steps}-{num_buffers}-{trajectories_per_buffer}")
            }
            Self::Uniform { num_steps } => write!(f, "uniform-{num_steps}"),
        }
    }
}

/// One chosen episode: `rows.len()` consecutive rows of the new dataset.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectedEpisode {
    /// The places of its rows, in order.
    pub slots: Vec<SlotRange>,
    /// Its rows in the new dataset.
    pub rows: Range<usize>,
    /// Number of padding rows at the beginning.
    pub padding: usize,
    /// How it ended.
    pub ending: Ending,
}

/// The chosen transitions.
#[derive(Clone, Debug, PartialEq)]
pub struct Selected {
    /// The episodes, in the order of their rows.
    pub episodes: Vec<SelectedEpisode>,
    /// Padding slots outside the rows, whose frames must be zero.
    pub padding_checks: Vec<SlotRange>,
    /// SHA-256 of the slots that were chosen for the rows.
    pub hash: String,
}

impl Selected {
    /// Rows of the new dataset.
    pub fn n_rows(&self) -> usize {
        self.episodes.last().map_or(0, |episode| episode.rows.end)
    }

    fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for episode in &self.episodes {
            hash.update((episode.rows.start as u64).to_le_bytes());
            for range in &episode.slots {
                for number in [range.file, range.slot, range.length] {
                    hash.update((number as u64).to_le_bytes());
                }
            }
        }
        hex(&hash.finalize())
    }
}

fn draw_uniform(log: &ReplayLog, num_steps: usize, run_seed: u64) -> Selected {
    let finished: Vec<_> = log.finished().collect();
    let order = permutation(finished.len(), seed::derive(run_seed, "selection"));
    let mut chosen = Vec::new();
    let mut steps = 0u64;
    for &episode in &order {
        if steps >= num_steps as u64 {
            break;
        }
        steps += finished[episode as usize].length;
        chosen.push(episode);
    }
    chosen.sort_unstable();
    let (mut episodes, mut padding_checks) = (Vec::new(), Vec::new());
    let mut row = 0;
    for &episode in &chosen {
        let episode = finished[episode as usize];
        let rows = row..row + episode.length as usize;
        row = rows.end;
        episodes.push(SelectedEpisode {
            slots: log.locate(episode.adds()),
            rows,
            padding: 0,
            ending: episode.ending,
        });
        padding_checks.extend(log.locate(episode.padding_adds()));
    }
    Selected { episodes, padding_checks, hash: String::new() }
}

fn draw_released(
    log: &ReplayLog,
    num_steps: usize,
    num_buffers: usize,
    trajectories_per_buffer: usize,
    run_seed: u64,
) -> Result<Selected, DataError> {
    let mut rng = seed::generator(run_seed, "selection");
    let first = log.files.len().saturating_sub(num_buffers);
    let mut left: Vec<usize> = (first..log.files.len()).collect();
    let mut cursors = vec![0usize; log.files.len()];
    // Terminal slots within reach, read when a file is first drawn.
    let mut ends: Vec<Option<Vec<usize>>> = vec![None; log.files.len()];
    let mut episodes = Vec::new();
    let mut row = 0;
    while row < num_steps && !left.is_empty() {
        let drawn = below(&mut rng, left.len());
        let file = left[drawn];
        if ends[file].is_none() {
            let fresh = log.fresh_slots(file).min(RELEASED_REACH);
            let terminals = log.columns(file)?.terminals;
            ends[file] = Some((0..fresh).filter(|&slot| terminals[slot]).collect());
        }
        let ends = ends[file].as_deref().unwrap_or_default();
        let next = ends.partition_point(|&end| end < cursors[file]);
        let visit = ends.get(next..next + trajectories_per_buffer + 1);
        let Some(visit) = visit else {
            left.remove(drawn);
            continue;
        };
        for &end in visit {
            let slot = cursors[file];
            let length = end + 1 - slot;
            let padding = log.padding_at(file, slot);
            let ending = Ending::of_terminal((length - padding) as u64);
            episodes.push(SelectedEpisode {
                slots: vec![SlotRange { file, slot, length }],
                rows: row..row + length,
                padding,
                ending,
            });
            row += length;
            cursors[file] = end + 1;
        }
    }
    Ok(Selected { episodes, padding_checks: Vec::new(), hash: String::new() })
}
