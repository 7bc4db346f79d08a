//! Counts of the contents of a log.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::spread::{Returns, Spread};
use super::table::write_table;
use crate::read::replay_log::{Ending, ReplayLog};

/// The contents of a log.
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
    /// Finished episodes that the step limit ended, not the game.
    pub step_limit_episodes: u64,
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
    /// Stale slots that hold a step no other file holds.
    pub recovered_slots: u64,
    /// Returns of the finished episodes.
    pub returns: Returns,
    /// Lengths of the finished episodes, in agent steps.
    pub lengths: Spread,
    /// Agent steps on which each action was chosen.
    pub action_histogram: Vec<u64>,
    /// Agent steps on which each reward came.
    pub reward_histogram: BTreeMap<String, u64>,
    /// Agent steps with any other reward, where there are very many distinct ones.
    pub other_rewards: u64,
    /// How much of the frames was read: `all`, or `headers` in logs too large to read.
    pub frames_read: &'static str,
}

impl LogInspection {
    /// Counts the contents of `log`; either all of its frames were read or none.
    pub(crate) fn of(log: &ReplayLog, frames_read: bool) -> Self {
        let counts = &log.counts;
        let ended = |ending| log.episodes.iter().filter(move |episode| episode.ending == ending);
        let n_actions =
            counts.actions.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
        Self {
            game: log.folder.game.clone(),
            run: log.folder.run.clone(),
            files: log.files.len(),
            slots: counts.slots,
            transitions: counts.transitions,
            episodes: log.finished().count() as u64,
            step_limit_episodes: ended(Ending::StepLimit).count() as u64,
            cut_episodes: ended(Ending::Cut).count() as u64,
            cut_transitions: ended(Ending::Cut).map(|episode| episode.length).sum(),
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
            other_rewards: counts.other_rewards,
            frames_read: if frames_read { "all" } else { "headers" },
        }
    }
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
        let stale = format!(
            "{} ({} hold a step between two files)",
            self.stale_slots, self.recovered_slots
        );
        let headless = format!(
            "{} ({} steps, beginning not in the log)",
            self.headless_episodes, self.headless_transitions
        );
        let episodes =
            format!("{} finished, {} by the step limit", self.episodes, self.step_limit_episodes);
        let rows = [
            ("game, run", format!("{}, {}", self.game, self.run)),
            ("files", self.files.to_string()),
            ("slots", self.slots.to_string()),
            ("transitions", format!("{} (padding not counted)", self.transitions)),
            ("episodes", episodes),
            ("cut episodes", format!("{} ({} steps)", self.cut_episodes, self.cut_transitions)),
            ("headless", headless),
            ("padding slots", self.padding_slots.to_string()),
            ("stale slots", stale),
            ("returns", format!("{} [clipped units]", spread(&self.returns.spread))),
            ("lengths", format!("{} [agent steps]", spread(&self.lengths))),
        ];
        let mut rows = rows.to_vec();
        let mut actions = self.action_histogram.iter().enumerate();
        let actions = histogram(&mut actions.by_ref().map(|(i, &count)| (i.to_string(), count)));
        let mut rewards = self.reward_histogram.iter();
        let mut rewards =
            histogram(&mut rewards.by_ref().map(|(reward, &count)| (reward.clone(), count)));
        if self.other_rewards > 0 {
            rewards.push(format!("others: {}", self.other_rewards));
        }
        for (name, entries) in [("actions", actions), ("rewards", rewards)] {
            for (i, line) in entries.chunks(6).enumerate() {
                rows.push((if i == 0 { name } else { "" }, line.join("  ")));
            }
        }
        rows.push(("frames read", self.frames_read.to_owned()));
        write_table(f, &rows)
    }
}
