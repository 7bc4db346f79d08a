//! A run of DQN-replay files.

use std::fs;
use std::path::Path;

use rayon::prelude::*;

use crate::card::CardCounts;
use crate::error::DataError;
use crate::expected::Expected;
use crate::findings::{Findings, Tally};
use crate::read::replay_log::{FRAME, OddKind, PADDING, ReplayLog, STEP_LIMIT, SmallColumns};
use crate::read::run_folder::Column;

/// Finds what is wrong with the run below `path`.
///
/// # Errors
/// When there is no run.
pub(crate) fn lint(
    path: &Path,
    expected: &Expected<'_>,
    findings: &mut Findings,
) -> Result<(), DataError> {
    let (log, broken) = ReplayLog::open_sound(path)?;
    for error in &broken {
        findings.refused(error);
    }
    let read_frames = expected.frames.of(&log);
    let n_actions = expected.n_actions();
    let padding = log.padding_slots();
    // Each file by itself, in any order, and told in theirs.
    let of_files: Vec<Findings> = (0..log.files.len())
        .into_par_iter()
        .map(|file| {
            let mut findings = Findings::default();
            let lint = FileLint { log: &log, file, padding: &padding[file] };
            if let Err(error) = lint.find(n_actions, read_frames, &mut findings) {
                findings.refused(&error);
            }
            findings
        })
        .collect();
    for of_file in of_files {
        findings.take(of_file);
    }
    findings.of(&log.folder.folder);
    odd(&log, findings);
    episodes(&log, expected.horizon.unwrap_or(STEP_LIMIT), findings);
    let counts =
        expected.card.and_then(|card| card.counts_of(card.named(&log.folder.folder).as_ref()));
    if let Some(counts) = counts {
        compare(&log, counts, broken.is_empty(), findings);
    }
    if !read_frames && !log.files.is_empty() {
        findings.note(
            "frames-not-read",
            "",
            "frames that were looked at",
            "their headers alone, because they are large",
            "Have all frames read (--all-frames), which takes minutes, before the data is relied on.",
        );
    }
    Ok(())
}

/// What the walk over the files found odd.
fn odd(log: &ReplayLog, findings: &mut Findings) {
    for odd in &log.odd {
        let found = odd.to_string();
        match odd.kind {
            OddKind::NothingNew => findings.warning(
                "repeated-file",
                "",
                "a pass of the ring in each file",
                found,
                "Take the file away, or fetch the one of this number again.",
            ),
            OddKind::MissingSlots => findings.warning(
                "missing-slots",
                "",
                "files that follow one another",
                found,
                "Fetch the files between, unless they were left out on purpose.",
            ),
            OddKind::LateBeginning => findings.note(
                "late-beginning",
                "",
                "the recording's beginning",
                found,
                "Fetch the earlier files, unless they were left out on purpose.",
            ),
            OddKind::Cursor => findings.warning(
                "stale-slots",
                "",
                "one stale slot, the last",
                found,
                "Check that the file is of this run: its last slots are of an earlier pass.",
            ),
            OddKind::InvalidRange => findings.note(
                "invalid-range",
                "",
                "the slots around the cursor",
                found,
                "Nothing need be done: it is not used.",
            ),
            OddKind::Padding => findings.warning(
                "missing-padding",
                "",
                format!("{PADDING} padding slots before each episode"),
                found,
                "Check the terminals of this file: an episode may have been cut in two.",
            ),
            OddKind::Headless => findings.note(
                "headless-steps",
                "",
                "episodes whose beginning is in the log",
                found,
                "Nothing need be done: these steps are not trained on.",
            ),
            OddKind::More => findings.warning(
                "more-oddities",
                "",
                "a log as Dopamine writes it",
                found,
                "Mend what is named here first, and look again.",
            ),
        }
    }
}

fn episodes(log: &ReplayLog, limit: u64, findings: &mut Findings) {
    if log.finished().next().is_none() {
        findings.error(
            "no-episode",
            "",
            "at least one finished episode",
            "none",
            "Fetch more files: nothing here can be trained on.",
        );
    }
    let mut long = Tally::default();
    for episode in log.episodes.iter().filter(|episode| episode.length > limit) {
        let place = || match log.locate(episode.adds()).first() {
            Some(at) => format!("file {}, slot {}", log.files[at.file].number, at.slot),
            None => format!("add {}", episode.first),
        };
        long.add(place);
    }
    if let Some(found) = long.told("longer episodes") {
        findings.error(
            "episode-too-long",
            "",
            format!("at most {limit} steps an episode"),
            found,
            "Check the terminals there: episodes that are not told apart have wrong returns.",
        );
    }
}

fn compare(log: &ReplayLog, counts: &CardCounts, all_read: bool, findings: &mut Findings) {
    let numbers = log.folder.numbers.len() as u64;
    if let Some(files) = counts.files.filter(|&files| files != numbers) {
        findings.warning(
            "file-count",
            "",
            format!("{files} files, as the dataset's description says"),
            numbers.to_string(),
            "Fetch the others, unless they were left out on purpose.",
        );
        return;
    }
    if !all_read {
        return;
    }
    if let Some(slots) = counts.slots_per_file {
        findings.compare("slot-count", "slots a file", slots, log.capacity as u64);
    }
    if let Some(transitions) = counts.transitions {
        let what = "agent steps";
        findings.compare("transition-count", what, transitions, log.counts.transitions);
    }
    if let Some(episodes) = counts.episodes {
        let finished = log.finished().count() as u64;
        findings.compare("episode-count", "finished episodes", episodes, finished);
    }
    if let Some(bytes) = counts.bytes {
        let folder = &log.folder;
        let columns = |number: u32| Column::ALL.map(|column| folder.column(column, number));
        let small = |number: u32| [folder.add_count(number), folder.invalid_range(number)];
        let files = folder.numbers.iter().flat_map(|&n| columns(n).into_iter().chain(small(n)));
        let found = files.map(|path| fs::metadata(path).map_or(0, |data| data.len())).sum();
        findings.compare("byte-count", "bytes in all files", bytes, found);
    }
}

/// One file, and which of its slots are padding.
struct FileLint<'a> {
    log: &'a ReplayLog,
    file: usize,
    padding: &'a [usize],
}

impl FileLint<'_> {
    fn find(
        &self,
        n_actions: Option<usize>,
        read_frames: bool,
        findings: &mut Findings,
    ) -> Result<(), DataError> {
        let columns = self.log.columns(self.file)?;
        self.rewards(&columns, findings);
        self.actions(&columns, n_actions, findings);
        let still = read_frames.then(|| self.frames(&columns, findings)).transpose()?;
        self.stale(&columns, still.is_some_and(|frames| frames.stale), findings);
        Ok(())
    }

    fn of(&self, column: Column, findings: &mut Findings) {
        findings.of(&self.log.folder.column(column, self.log.files[self.file].number));
    }

    fn rewards(&self, columns: &SmallColumns, findings: &mut Findings) {
        let (mut outside, mut broken) = (Tally::default(), Tally::default());
        for (slot, &reward) in columns.rewards.iter().enumerate() {
            let place = || format!("slot {slot}: {reward}");
            if !(-1.0..=1.0).contains(&reward) {
                outside.add(place);
            } else if reward.fract() != 0.0 {
                broken.add(place);
            }
        }
        self.of(Column::Reward, findings);
        if let Some(found) = outside.told("rewards outside") {
            findings.error(
                "unclipped-rewards",
                "",
                "rewards clipped to [-1, 1]",
                found,
                "Clip the rewards before training, or targets and returns are in other units.",
            );
        }
        if let Some(found) = broken.told("rewards between") {
            findings.warning(
                "fractional-rewards",
                "",
                "rewards -1, 0 and 1",
                found,
                "Check how they were made: a game's clipped scores are whole numbers.",
            );
        }
    }

    fn actions(&self, columns: &SmallColumns, n_actions: Option<usize>, findings: &mut Findings) {
        let Some(n_actions) = n_actions else { return };
        let mut beyond = Tally::default();
        for (slot, &action) in columns.actions.iter().enumerate() {
            if usize::from(action) >= n_actions {
                beyond.add(|| format!("slot {slot}: {action}"));
            }
        }
        self.of(Column::Action, findings);
        if let Some(found) = beyond.told("actions beyond it") {
            findings.error(
                "action-beyond-set",
                "",
                format!("actions 0 to {}, the game's set", n_actions.saturating_sub(1)),
                found,
                "Check that the file is of this game, or correct the task's actions.",
            );
        }
    }

    /// Stale slots of the first pass, which nothing was ever written to.
    fn stale(&self, columns: &SmallColumns, pictures: bool, findings: &mut Findings) {
        let (log, fresh) = (self.log, self.log.fresh_slots(self.file));
        let first_pass = log.files[self.file].add_count < log.capacity as u64;
        let written = |slot: usize| {
            columns.actions[slot] != 0 || columns.rewards[slot] != 0.0 || columns.terminals[slot]
        };
        if first_pass && (pictures || (fresh..log.capacity).any(written)) {
            self.of(if pictures { Column::Observation } else { Column::Action }, findings);
            findings.warning(
                "written-stale-slots",
                "",
                format!("nothing from slot {fresh} on, which the first pass had not reached"),
                "a step",
                "Check that the files are of one run: add_count does not fit the others.",
            );
        }
    }

    fn frames(
        &self,
        columns: &SmallColumns,
        findings: &mut Findings,
    ) -> Result<FrameFacts, DataError> {
        let fresh = self.log.fresh_slots(self.file);
        let idle = |slot: usize| {
            columns.actions[slot] == 0 && columns.rewards[slot] == 0.0 && !columns.terminals[slot]
        };
        let mut facts = FrameFacts::default();
        let mut previous: Option<Vec<u8>> = None;
        let (mut run, mut after_step) = (0, false);
        let (mut pictures, mut unended) = (Tally::default(), Tally::default());
        self.log.each_frame(self.file, |slot, frame| {
            let black = frame.iter().all(|&pixel| pixel == 0);
            let padded = self.padding.binary_search(&slot).is_ok();
            if slot >= fresh {
                facts.stale |= !black;
                return;
            }
            if padded {
                if !black {
                    pictures.add(|| format!("slot {slot}"));
                }
                (run, after_step) = (0, false);
                return;
            }
            // As many idle black slots as padding has, between two pictures.
            if black && idle(slot) {
                run += 1;
            } else {
                if run == PADDING && after_step && !black {
                    unended.add(|| format!("slot {}", slot - PADDING as usize));
                }
                (run, after_step) = (0, true);
            }
            facts.steps += 1;
            match &mut previous {
                Some(first) => facts.differ |= first.as_slice() != frame,
                None => previous = Some(frame.to_vec()),
            }
        })?;
        self.of(Column::Observation, findings);
        if let Some(found) = pictures.told("padding slots with a picture") {
            findings.error(
                "padding-not-black",
                "",
                "black padding slots",
                found,
                "Fetch the file again, or check the terminals: padding follows each of them.",
            );
        }
        if facts.steps > 1 && !facts.differ {
            findings.error(
                "equal-frames",
                "",
                "frames that change",
                format!("all {} frames equal ({FRAME} bytes each)", facts.steps),
                "Fetch the file again, or check the recording: the screen was not stored.",
            );
        }
        self.of(Column::Terminal, findings);
        if let Some(found) = unended.told("times padding inside an episode") {
            findings.warning(
                "missing-terminal",
                "",
                "a terminal before each episode's padding",
                found,
                "Set the terminal before it: the two episodes are read as one.",
            );
        }
        Ok(facts)
    }
}

/// What the frames of a file showed.
#[derive(Default)]
struct FrameFacts {
    steps: u64,
    differ: bool,
    /// Whether a stale slot holds a picture.
    stale: bool,
}
