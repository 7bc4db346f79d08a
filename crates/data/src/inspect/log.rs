//! What a log holds, counted.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use serde::Serialize;

use crate::error::DataError;
use crate::inspect::spread::{Returns, Spread};
use crate::read::read_frames::ReadFrames;
use crate::read::replay_log::{Ending, MAX_REWARDS, ReplayLog};

/// What a log holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogInspection {
    /// The game, as its folder is named.
    pub game: String,
    /// The run, as its folder is named.
    pub run: String,
    /// Files of the run (all columns counted as one).
    pub files: usize,
    /// Slots of all files.
    pub slots: u64,
    /// Agent steps, each counted once; padding is none.
    pub transitions: u64,
    /// Episodes whose beginning and end are in the log.
    pub episodes: u64,
    /// Episodes that begin in the log and do not end in it.
    pub cut_episodes: u64,
    /// Agent steps in the cut episodes.
    pub cut_transitions: u64,
    /// Stretches of steps whose episode's beginning is not in the log.
    pub headless_episodes: u64,
    /// Agent steps in them.
    pub headless_transitions: u64,
    /// Slots that pad an episode's start.
    pub padding_slots: u64,
    /// Slots their file's pass has not reached: left from the pass before, or never written.
    pub stale_slots: u64,
    /// Of the stale slots, those that hold a step no other file holds.
    pub recovered_slots: u64,
    /// Returns of the finished episodes.
    pub returns: Returns,
    /// Lengths of the finished episodes, in agent steps.
    pub lengths: Spread,
    /// Agent steps on which each action was chosen.
    pub action_histogram: Vec<u64>,
    /// Agent steps on which each reward came.
    pub reward_histogram: BTreeMap<String, u64>,
    /// How much of the frames was read: `all`, or `headers` in logs too large to read.
    pub frames_read: &'static str,
    /// Anything that is not as Dopamine writes it.
    pub odd: Vec<String>,
}

impl LogInspection {
    /// Counts what is in `log`; `frames` says which of its frames are read.
    ///
    /// # Errors
    /// Anything wrong with the files; see [`DataError`].
    pub fn of(log: &ReplayLog, frames: ReadFrames) -> Result<Self, DataError> {
        let mut odd: Vec<String> = log.odd.iter().map(ToString::to_string).collect();
        let read = frames.of(log);
        if read {
            let pictures = pictures_in_padding(log)?;
            if pictures > 0 {
                odd.push(format!("{pictures} padding slots hold a picture, and must be black"));
            }
        }
        let counts = &log.counts;
        let outside = counts.rewards_outside();
        if outside > 0 {
            odd.push(format!("{outside} rewards lie outside [-1, 1]: they are not clipped"));
        }
        if counts.other_rewards > 0 {
            odd.push(format!(
                "more than {MAX_REWARDS} distinct rewards: {} are not in the histogram",
                counts.other_rewards
            ));
        }
        if log.finished().next().is_none() {
            odd.push("no episode is finished".into());
        }
        let limit =
            log.episodes.iter().filter(|episode| episode.ending == Ending::StepLimit).count();
        if limit > 0 {
            odd.push(format!(
                "{limit} finished episodes were ended by the step limit, not by the game"
            ));
        }
        let cut = log.episodes.iter().filter(|episode| episode.ending == Ending::Cut);
        let n_actions =
            counts.actions.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
        Ok(Self {
            game: log.folder.game.clone(),
            run: log.folder.run.clone(),
            files: log.files.len(),
            slots: counts.slots,
            transitions: counts.transitions,
            episodes: log.finished().count() as u64,
            cut_episodes: cut.clone().count() as u64,
            cut_transitions: cut.map(|episode| episode.length).sum(),
            headless_episodes: counts.headless,
            headless_transitions: counts.headless_transitions,
            padding_slots: counts.padding,
            stale_slots: counts.stale,
            recovered_slots: counts.recovered,
            returns: Returns {
                units: "clipped",
                spread: Spread::of(log.finished().map(|episode| episode.clipped_return).collect()),
            },
            lengths: Spread::of(log.finished().map(|episode| episode.length as f64).collect()),
            action_histogram: counts.actions[..n_actions].to_vec(),
            reward_histogram: counts
                .rewards
                .iter()
                .map(|(&bits, &count)| (f32::from_bits(bits).to_string(), count))
                .collect(),
            frames_read: if read { "all" } else { "headers" },
            odd,
        })
    }
}

/// Reads all frames, so that a damaged shard is noticed, and counts padding that is not black.
fn pictures_in_padding(log: &ReplayLog) -> Result<u64, DataError> {
    let pictures = AtomicU64::new(0);
    log.padding_slots().par_iter().enumerate().try_for_each(|(file, padding)| {
        log.each_frame(file, |slot, frame| {
            let padded = padding.binary_search(&slot).is_ok();
            if padded && frame.iter().any(|&pixel| pixel != 0) {
                pictures.fetch_add(1, Ordering::Relaxed);
            }
        })
    })?;
    Ok(pictures.into_inner())
}

impl fmt::Display for LogInspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spread = |spread: &Spread| {
            let Spread { mean, sd, min, median, max } = spread;
            format!("mean {mean:.2} ± {sd:.2} (sd), min {min}, median {median}, max {max}")
        };
        let histogram = |entries: &mut dyn Iterator<Item = (String, u64)>| {
            let total = self.transitions.max(1) as f64;
            entries
                .map(|(name, count)| {
                    format!("{name}: {count} ({:.1} %)", 100.0 * count as f64 / total)
                })
                .collect::<Vec<_>>()
        };
        let headless = format!(
            "{} ({} steps, beginning not in the log)",
            self.headless_episodes, self.headless_transitions
        );
        let rows = [
            ("game, run", format!("{}, {}", self.game, self.run)),
            ("files", self.files.to_string()),
            ("slots", self.slots.to_string()),
            ("transitions", format!("{} (padding not counted)", self.transitions)),
            ("episodes", format!("{} finished", self.episodes)),
            ("cut episodes", format!("{} ({} steps)", self.cut_episodes, self.cut_transitions)),
            ("headless", headless),
            ("padding slots", self.padding_slots.to_string()),
            (
                "stale slots",
                format!(
                    "{} ({} hold a step between two files)",
                    self.stale_slots, self.recovered_slots
                ),
            ),
            ("returns", format!("{} [clipped units]", spread(&self.returns.spread))),
            ("lengths", format!("{} [agent steps]", spread(&self.lengths))),
        ];
        for (name, value) in rows {
            writeln!(f, "{name:<14} {value}")?;
        }
        let mut actions = self.action_histogram.iter().enumerate();
        let actions = histogram(&mut actions.by_ref().map(|(i, &count)| (i.to_string(), count)));
        for (i, line) in actions.chunks(6).enumerate() {
            writeln!(f, "{:<14} {}", if i == 0 { "actions" } else { "" }, line.join("  "))?;
        }
        let mut rewards = self.reward_histogram.iter();
        let rewards =
            histogram(&mut rewards.by_ref().map(|(reward, &count)| (reward.clone(), count)));
        for (i, line) in rewards.chunks(6).enumerate() {
            writeln!(f, "{:<14} {}", if i == 0 { "rewards" } else { "" }, line.join("  "))?;
        }
        writeln!(f, "{:<14} {}", "frames read", self.frames_read)?;
        if self.odd.is_empty() {
            return write!(f, "{:<14} nothing", "odd");
        }
        let lines: Vec<_> = self.odd.iter().map(|line| format!("{:<14} {line}", "odd")).collect();
        f.write_str(&lines.join("\n"))
    }
}
