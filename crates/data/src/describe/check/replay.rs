//! Inspection of a run of DQN-replay files.

use std::path::{Path, PathBuf};
use std::{fs, mem};

use overtone_core::picture::FRAME;
use rayon::prelude::*;

use super::inspection::Inspection;
use super::log::LogInspection;
use crate::describe::card::CardCounts;
use crate::describe::findings::{Findings, Tally};
use crate::error::DataError;
use crate::read::replay_log::{PADDING, ReplayLog, STEP_LIMIT, SmallColumns, first, own_threads};
use crate::read::run_folder::{Column, RunFolder};

/// Inspects the run below `path`: first the small columns of each file, while the walk over them
/// finds the episodes. The frames follow, because they cannot be judged before.
///
/// # Errors
/// Why it cannot be trained on.
pub(crate) fn check(path: &Path, findings: &mut Findings<'_>) -> Result<Inspection, DataError> {
    let expected = findings.expected;
    let n_actions = expected.n_actions();
    let (mut refused, mut looks) = (Ok(()), Vec::new());
    let log = ReplayLog::open_each(path, |folder, number, read| {
        match read {
            Ok(loaded) => looks.push(FileLook::new(folder, number, loaded, n_actions)),
            Err(errors) => {
                errors.iter().for_each(|error| findings.refused(error));
                refused = mem::replace(&mut refused, Ok(())).and(first(errors));
            }
        }
        Ok(())
    })?;
    let all_read = refused.is_ok();
    let read_frames = expected.frames.of(&log);
    let padding = log.padding_slots();
    // Each file by itself, in any order; reported in file order.
    let look_on = |(file, look): (usize, &mut FileLook)| {
        if read_frames {
            look.frames(&log, file, &padding[file]);
        }
        look.stale(&log, file);
    };
    own_threads(path)?.install(|| looks.par_iter_mut().enumerate().for_each(look_on));
    for look in looks {
        findings.take(look.findings);
        refused = refused.and(look.refused);
    }
    findings.of(&log.folder.folder);
    // Oddities that the walk over the files found.
    log.odd.iter().for_each(|odd| findings.tell(odd.code, "", odd.sentence.as_str()));
    episodes(&log, expected.horizon.unwrap_or(STEP_LIMIT), findings);
    let counts =
        expected.card.and_then(|card| card.counts_of(card.named(&log.folder.folder).as_ref()));
    if let Some(counts) = counts {
        compare(&log, counts, all_read, findings);
    }
    if !read_frames && !log.files.is_empty() {
        findings.tell("frames-not-read", "", "their headers alone, because they are large");
    }
    refused.map(|()| Inspection::Log(Box::new(LogInspection::of(&log, read_frames))))
}

fn episodes(log: &ReplayLog, limit: u64, findings: &mut Findings<'_>) {
    if log.finished().next().is_none() {
        findings.tell("no-episode", "", "none");
    }
    let mut long = Tally::default();
    for episode in log.episodes.iter().filter(|episode| episode.length > limit) {
        let place = || match log.locate(episode.adds()).first() {
            Some(at) => format!("file {}, slot {}", log.files[at.file].number, at.slot),
            None => format!("add {}", episode.first),
        };
        long.add(place);
    }
    findings.tally_of("episode-too-long", limit, (&long, ["longer episode", ""]));
}

fn compare(log: &ReplayLog, counts: &CardCounts, all_read: bool, findings: &mut Findings<'_>) {
    let numbers = log.folder.numbers.len() as u64;
    if let Some(files) = counts.files.filter(|&files| files != numbers) {
        findings.tell_of("file-count", "", files, numbers.to_string());
        return;
    }
    if !all_read {
        return;
    }
    let folder = &log.folder;
    let columns = |number: u32| Column::ALL.map(|column| folder.column(column, number));
    let small = |number: u32| [folder.add_count(number), folder.invalid_range(number)];
    let files = folder.numbers.iter().flat_map(|&n| columns(n).into_iter().chain(small(n)));
    let bytes = files.map(|path| fs::metadata(path).map_or(0, |data| data.len())).sum();
    let finished = log.finished().count() as u64;
    for (code, what, wanted, found) in [
        ("slot-count", "slots a file", counts.slots_per_file, log.capacity as u64),
        ("transition-count", "agent steps", counts.transitions, log.counts.transitions),
        ("episode-count", "finished episodes", counts.episodes, finished),
        ("byte-count", "bytes in all files", counts.bytes, bytes),
    ] {
        findings.compare(code, what, wanted, found);
    }
}

/// One file.
struct FileLook {
    findings: Findings<'static>,
    refused: Result<(), DataError>,
    /// `[slots]`, whether a slot may be padding: without action, reward and terminal.
    idle: Vec<bool>,
    /// Whether frames showed a picture in a stale slot.
    pictures: bool,
    paths: [PathBuf; 4],
}

impl FileLook {
    /// Inspects the small columns of file `number`.
    fn new(
        folder: &RunFolder,
        number: u32,
        columns: &SmallColumns,
        n_actions: Option<usize>,
    ) -> Self {
        let idle = |slot: usize| {
            columns.actions[slot] == 0 && columns.rewards[slot] == 0.0 && !columns.terminals[slot]
        };
        let mut look = Self {
            findings: Findings::default(),
            refused: Ok(()),
            idle: (0..columns.actions.len()).map(idle).collect(),
            pictures: false,
            paths: Column::ALL.map(|column| folder.column(column, number)),
        };
        look.rewards(columns);
        look.actions(columns, n_actions);
        look
    }

    /// The next findings are of `column`.
    fn of(&mut self, column: Column) {
        self.findings.of(&self.paths[column as usize]);
    }

    fn rewards(&mut self, columns: &SmallColumns) {
        let (mut outside, mut broken) = (Tally::default(), Tally::default());
        for (slot, &reward) in columns.rewards.iter().enumerate() {
            let place = || format!("slot {slot}: {reward}");
            if !(-1.0..=1.0).contains(&reward) {
                outside.add(place);
            } else if reward.fract() != 0.0 {
                broken.add(place);
            }
        }
        self.of(Column::Reward);
        self.findings.tally("unclipped-rewards", "", &outside, ["reward", "outside"]);
        self.findings.tally("fractional-rewards", "", &broken, ["reward", "between"]);
    }

    fn actions(&mut self, columns: &SmallColumns, n_actions: Option<usize>) {
        let Some(n_actions) = n_actions else { return };
        let mut beyond = Tally::default();
        for (slot, &action) in columns.actions.iter().enumerate() {
            if usize::from(action) >= n_actions {
                beyond.add(|| format!("slot {slot}: {action}"));
            }
        }
        self.of(Column::Action);
        self.findings.tally_of(
            "action-beyond-set",
            n_actions.saturating_sub(1),
            (&beyond, ["action", "beyond it"]),
        );
    }

    /// Stale slots of the first pass, which nothing was ever written to.
    fn stale(&mut self, log: &ReplayLog, file: usize) {
        let fresh = log.fresh_slots(file);
        let first_pass = log.files[file].add_count < log.capacity as u64;
        if first_pass && (self.pictures || self.idle[fresh..].contains(&false)) {
            self.of(if self.pictures { Column::Observation } else { Column::Action });
            self.findings.tell_of("written-stale-slots", "", fresh, "a step");
        }
    }

    /// Inspects the frames; slots `padding` pad an episode's start.
    fn frames(&mut self, log: &ReplayLog, file: usize, padding: &[usize]) {
        let fresh = log.fresh_slots(file);
        let (mut steps, mut differ) = (0, false);
        let mut previous: Option<Vec<u8>> = None;
        let (mut run, mut after_step) = (0, false);
        let (mut pictures, mut unended) = (Tally::default(), Tally::default());
        let read = log.each_frame(file, |slot, frame| {
            let black = frame.iter().all(|&pixel| pixel == 0);
            if slot >= fresh {
                self.pictures |= !black;
                return;
            }
            if padding.binary_search(&slot).is_ok() {
                if !black {
                    pictures.add(|| format!("slot {slot}"));
                }
                (run, after_step) = (0, false);
                return;
            }
            // As many idle black slots as padding has, between two pictures.
            if black && self.idle[slot] {
                run += 1;
            } else {
                if run == PADDING && after_step && !black {
                    unended.add(|| format!("slot {}", slot - PADDING as usize));
                }
                (run, after_step) = (0, true);
            }
            steps += 1;
            match &previous {
                Some(first) => differ |= first.as_slice() != frame,
                None => previous = Some(frame.to_vec()),
            }
        });
        if let Err(error) = read {
            self.findings.refused(&error);
            self.refused = Err(error);
            self.pictures = false;
            return;
        }
        self.of(Column::Observation);
        self.findings.tally("padding-not-black", "", &pictures, ["padding slot", "with a picture"]);
        if steps > 1 && !differ {
            self.findings.tell(
                "equal-frames",
                "",
                format!("all {} frames equal ({FRAME} bytes each)", steps),
            );
        }
        self.of(Column::Terminal);
        self.findings.tally(
            "missing-terminal",
            "",
            &unended,
            ["time", "padding inside an episode"],
        );
    }
}
