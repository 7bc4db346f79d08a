//! A DQN-replay log read as what it is: a ring buffer, photographed once per pass.
//!
//! # How the files come about
//!
//! Dopamine's logged replay buffer is a ring of `capacity` slots. Each agent step is written
//! at the cursor, `add_count % capacity`, and `add_count` goes up by one. At the very start,
//! and after each step with `terminal` set, three all-zero slots are written first (stack
//! size 4 less one), so that a stack of four frames never reaches into the episode before.
//! After an agent step (not after a padding slot) that leaves the cursor at `capacity - 1`,
//! the *whole ring* is saved as file `k`. So in file `k`, with `A` its `add_count`:
//!
//! - slots `0 .. cursor` were written in this pass: adds `A - cursor .. A`;
//! - slots `cursor .. capacity` (normally just the last one) are **stale**: they still hold
//!   adds `A - capacity .. A - cursor` of the pass before, or nothing in the first pass.
//!
//! Slot `s` of file `k` therefore holds add number `a`, the largest `a < A` with
//! `a % capacity == s`. That is all this reader uses: it puts the adds of all files in one
//! order, each add once. The stale slot of file `k` is then exactly the step between the last
//! slot of file `k - 1` and the first of file `k`, and episodes run across file ends without
//! a gap. The published sets (50 files of 1,000,000 slots) and the small starter sets are the
//! same at different capacities.
//!
//! When `add_count` of one file does not follow from the one before (a file is missing, or
//! the save was skipped because the cursor passed `capacity - 1` inside padding), there is a
//! gap: the episode under way before it is **cut**, and steps after it up to the next
//! terminal are **headless** (their true timestep and earlier frames are unknown).
//!
//! # Padding
//!
//! Which slots are padding follows from position (the three after a terminal, and the first
//! three ever), checked against what padding must hold: action 0, reward 0, terminal 0, and
//! all-zero frames where the frames are read. A slot that fails the check is an ordinary
//! step, and the log is reported as odd.

mod columns;
mod parts;
mod scan;

use std::io;
use std::ops::Range;
use std::path::Path;

use overtone_core::picture::FRAME;
use rayon::prelude::*;

use crate::error::{DataError, Fault};
use crate::read::npy::NpyStream;
pub use crate::read::replay_log::columns::SmallColumns;
use crate::read::replay_log::columns::load;
pub use crate::read::replay_log::parts::{
    Counts, Ending, LogFile, LoggedEpisode, MAX_ACTIONS, MAX_REWARDS, Odd, PADDING, STEP_LIMIT,
    SlotRange,
};
use crate::read::replay_log::scan::Scan;
use crate::read::run_folder::{Column, RunFolder};

/// A run's log: its files in order, and the episodes in them.
#[derive(Clone, Debug)]
pub struct ReplayLog {
    /// The paths of the files.
    pub folder: RunFolder,
    /// Slots per file.
    pub capacity: usize,
    /// The files, in order.
    pub files: Vec<LogFile>,
    /// Episodes whose beginning is in the log, in order.
    pub episodes: Vec<LoggedEpisode>,
    /// The counts.
    pub counts: Counts,
    /// Anything that is not as Dopamine writes it.
    pub odd: Vec<Odd>,
}

/// Threads to read the run at `path` with: a forked process has lost its parent's.
pub(crate) fn own_threads(path: &Path) -> Result<rayon::ThreadPool, DataError> {
    let threads = rayon::ThreadPoolBuilder::new().build();
    threads.map_err(io::Error::other).map_err(DataError::io(path, "read"))
}

impl ReplayLog {
    /// Reads the small columns of the run below `path` (see [`RunFolder::find`]), and of the
    /// frames only the headers.
    ///
    /// # Errors
    /// Anything wrong with the files; see [`DataError`].
    pub fn open(path: &Path) -> Result<Self, DataError> {
        Self::open_each(path, |_, _, read| read.map(drop).or_else(first))
    }

    /// As [`ReplayLog::open`], and gives the small columns of each file to `each`, or what is
    /// wrong with it: where `each` accepts that, the file is left out as if it were not there.
    ///
    /// # Errors
    /// If there is not a run below `path`, and errors of `each`.
    pub(crate) fn open_each(
        path: &Path,
        mut each: impl FnMut(
            &RunFolder,
            u32,
            Result<&SmallColumns, Vec<DataError>>,
        ) -> Result<(), DataError>,
    ) -> Result<Self, DataError> {
        let folder = RunFolder::find(path)?;
        let mut scan = Scan::default();
        let mut files: Vec<LogFile> = Vec::new();
        let mut capacity = None;
        let threads = own_threads(path)?;
        // A few files at a time: their columns are some 6 MB each in a published set.
        for numbers in folder.numbers.chunks(threads.current_num_threads().max(1)) {
            let load_all = || numbers.par_iter().map(|&number| load(&folder, number)).collect();
            let loaded: Vec<_> = threads.install(load_all);
            for (&number, loaded) in numbers.iter().zip(loaded) {
                let loaded = match loaded {
                    Ok(loaded) => loaded,
                    Err(errors) => {
                        each(&folder, number, Err(errors))?;
                        continue;
                    }
                };
                let slots = loaded.columns.actions.len();
                let expected = *capacity.get_or_insert(slots);
                if slots != expected {
                    let wrong = Fault::Inconsistent(format!(
                        "has {slots} slots where the run's first file has {expected}; it \
                             belongs to another run"
                    ))
                    .at(folder.column(Column::Action, number));
                    each(&folder, number, Err(vec![wrong]))?;
                    continue;
                }
                each(&folder, number, Ok(&loaded.columns))?;
                files.push(scan.file(number, &loaded));
            }
        }
        scan.break_off();
        let Scan { episodes, counts, odd, .. } = scan;
        let capacity = capacity.unwrap_or(0);
        Ok(Self { folder, capacity, files, episodes, counts, odd })
    }

    /// Episodes whose beginning and end are both in the log.
    pub fn finished(&self) -> impl Iterator<Item = &LoggedEpisode> {
        self.episodes.iter().filter(|episode| episode.ending != Ending::Cut)
    }

    /// Slot that holds add number `add`.
    pub fn slot(&self, add: u64) -> usize {
        (add % self.capacity as u64) as usize
    }

    /// The places of `adds`, in order; adds that no file holds are left out.
    pub fn locate(&self, adds: Range<u64>) -> Vec<SlotRange> {
        let mut found = Vec::new();
        let first = self.files.partition_point(|file| file.adds.end <= adds.start);
        for (file, held) in self.files.iter().enumerate().skip(first) {
            let mut at = adds.start.max(held.adds.start);
            let end = adds.end.min(held.adds.end);
            if held.adds.start >= adds.end {
                break;
            }
            while at < end {
                let slot = self.slot(at);
                let length = ((self.capacity - slot) as u64).min(end - at) as usize;
                found.push(SlotRange { file, slot, length });
                at += length as u64;
            }
        }
        found
    }

    /// Slots of file `file` that were written in its own pass: those before the cursor.
    pub fn fresh_slots(&self, file: usize) -> usize {
        match self.slot(self.files[file].add_count) {
            0 => self.capacity,
            cursor => cursor,
        }
    }

    /// How many of the slots from fresh slot `slot` of file `file` on are padding.
    pub fn padding_at(&self, file: usize, slot: usize) -> usize {
        let newest = self.files[file].add_count;
        let add = newest - self.fresh_slots(file) as u64 + slot as u64;
        let next = self.episodes.partition_point(|episode| episode.first <= add);
        self.episodes.get(next).map_or(0, |episode| {
            let inside = add >= episode.first - episode.padding;
            if inside { (episode.first - add) as usize } else { 0 }
        })
    }

    /// The small columns of file `file` (an index into [`ReplayLog::files`]).
    ///
    /// # Errors
    /// As [`ReplayLog::open`].
    pub fn columns(&self, file: usize) -> Result<SmallColumns, DataError> {
        let loaded = load(&self.folder, self.files[file].number);
        loaded.map(|loaded| loaded.columns).map_err(|mut errors| errors.swap_remove(0))
    }

    /// Opens the frames of file `file` for reading.
    ///
    /// # Errors
    /// As [`ReplayLog::open`].
    pub fn frames(&self, file: usize) -> Result<NpyStream, DataError> {
        let path = self.folder.column(Column::Observation, self.files[file].number);
        let npy = NpyStream::open(&path)?;
        npy.expect::<u8>(&[Some(self.capacity), Some(84), Some(84)])?;
        Ok(npy)
    }

    /// Reads the frames of file `file` to their end, giving each slot and its frame to `each`.
    ///
    /// # Errors
    /// As [`ReplayLog::open`].
    pub(crate) fn each_frame(
        &self,
        file: usize,
        mut each: impl FnMut(usize, &[u8]),
    ) -> Result<(), DataError> {
        let mut frames = self.frames(file)?;
        let mut frame = vec![0; FRAME];
        for slot in 0..self.capacity {
            frames.read_exact(&mut frame)?;
            each(slot, &frame);
        }
        frames.finish()
    }

    /// For each file, the slots that pad an episode's start, ascending.
    pub(crate) fn padding_slots(&self) -> Vec<Vec<usize>> {
        let mut padding = vec![Vec::new(); self.files.len()];
        for range in self.episodes.iter().flat_map(|episode| self.locate(episode.padding_adds())) {
            padding[range.file].extend(range.slot..range.slot + range.length);
        }
        padding.iter_mut().for_each(|slots| slots.sort_unstable());
        padding
    }
}

/// The first of `errors`, if any.
pub(crate) fn first(errors: Vec<DataError>) -> Result<(), DataError> {
    errors.into_iter().next().map_or(Ok(()), Err)
}
