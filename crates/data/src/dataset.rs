//! [`AtariDataset`]: a converted dataset, open and ready to be sampled.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use memmap2::Mmap;
use overtone_core::{Episode, Episodes, Outcome, returns_to_go};
use rayon::prelude::*;
use safetensors::tensor::{Dtype, SafeTensors};

use crate::content_hash::RowHashes;
use crate::episode_index::EpisodeIndex;
use crate::error::DataError;
use crate::frame_store::{Layout, MANIFEST_FILE};
use crate::manifest::{FORMAT, Manifest};
use crate::replay_log::FRAME;

/// What is wrong with a file that has fewer bytes than when it was opened.
const CUT_SHORT: &str = "it was cut short while it was in use";
/// Frames that [`AtariDataset::verify`] reads at a time.
const FRAMES_PER_READ: usize = 64;

/// Transitions of one game: small columns in memory, frames on disk.
///
/// The file must not be changed while it is open. Nothing in this project changes a finished
/// one, and one that is replaced by renaming stays as it was for whoever has it open; what
/// others do to it, [`AtariDataset::check_unchanged`] finds.
#[derive(Debug)]
pub struct AtariDataset {
    path: PathBuf,
    file: File,
    /// Its size and time when it was opened.
    opened: Stamp,
    /// Where the frames begin in the file.
    frames: usize,
    index: Arc<EpisodeIndex>,
    actions: Vec<u8>,
    rewards: Vec<f32>,
    returns_to_go: Vec<f32>,
    manifest: Manifest,
}

/// What changes when a file is written to: its size in bytes, and the time.
type Stamp = (u64, SystemTime);

fn stamp(file: &File) -> io::Result<Stamp> {
    let metadata = file.metadata()?;
    Ok((metadata.len(), metadata.modified()?))
}

impl AtariDataset {
    /// Opens a finished frame store and checks its header against its size, and its columns
    /// against each other. Frames are not read.
    ///
    /// # Errors
    /// [`DataError::Missing`] when there is none, [`DataError::Store`] when it is damaged.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        let file = File::open(path).map_err(DataError::open(path, "it is made by a conversion"))?;
        let opened = stamp(&file).map_err(DataError::io(path, "look at"))?;
        let bad = |reason: String| DataError::Store { path: path.to_path_buf(), reason };
        // Safety: the map is only read, lives no longer than this function, and finished stores
        // are replaced by renaming, never written to, so its bytes do not change under us.
        let map = unsafe { Mmap::map(&file) }.map_err(DataError::io(path, "map"))?;
        let (_, metadata) =
            SafeTensors::read_metadata(&map).map_err(|error| bad(error.to_string()))?;
        let manifest = metadata
            .metadata()
            .as_ref()
            .and_then(|map| map.get("manifest"))
            .ok_or_else(|| bad("it has no manifest".into()))?;
        let manifest: Manifest = serde_json::from_str(manifest)
            .map_err(|error| bad(format!("its manifest cannot be read: {error}")))?;
        if manifest.format != FORMAT {
            return Err(bad(format!("its layout is {}, and {FORMAT} is read", manifest.format)));
        }
        let tensors = SafeTensors::deserialize(&map).map_err(|error| bad(error.to_string()))?;
        // A row and an episode each take more than a byte: beyond this, sizes could overflow.
        if manifest.counts.rows > map.len() || manifest.counts.episodes > map.len() {
            return Err(bad("its manifest counts more than the file can hold".into()));
        }
        let layout = Layout { rows: manifest.counts.rows, episodes: manifest.counts.episodes };
        for (name, dtype, shape, _) in layout.tensors() {
            let tensor = tensors.tensor(name).map_err(|error| bad(error.to_string()))?;
            if dtype_name(tensor.dtype()) != dtype || tensor.shape() != shape {
                return Err(bad(format!(
                    "`{name}` is {} {:?}, expected {dtype} {shape:?}",
                    dtype_name(tensor.dtype()),
                    tensor.shape()
                )));
            }
        }
        let bytes = |name: &str| {
            tensors.tensor(name).map(|tensor| tensor.data()).map_err(|error| bad(error.to_string()))
        };
        let i64s = |name: &str| -> Result<Vec<i64>, DataError> {
            let (numbers, _) = bytes(name)?.as_chunks::<8>();
            Ok(numbers.iter().map(|&number| i64::from_le_bytes(number)).collect())
        };
        let (starts, lengths) = (i64s("episode_starts")?, i64s("episode_lengths")?);
        let mut list = Vec::with_capacity(starts.len());
        for ((start, length), &outcome) in
            starts.into_iter().zip(lengths).zip(bytes("episode_outcomes")?)
        {
            let outcome = match outcome {
                0 => Outcome::Terminated,
                1 => Outcome::Truncated,
                other => return Err(bad(format!("an episode's outcome is {other}"))),
            };
            let size = |number| {
                usize::try_from(number)
                    .ok()
                    .filter(|&n| n <= layout.rows)
                    .ok_or_else(|| bad(format!("an episode's bounds hold {number}")))
            };
            list.push(Episode { start: size(start)?, length: size(length)?, outcome });
        }
        let episodes = Episodes::new(list).map_err(|error| bad(error.to_string()))?;
        if episodes.n_transitions() != layout.rows {
            return Err(bad("its episodes do not cover its rows".into()));
        }
        let index = EpisodeIndex::new(episodes)
            .ok_or_else(|| bad("it has more rows than can be numbered".into()))?;
        let actions = bytes("actions")?.to_vec();
        if let Some(&action) =
            actions.iter().find(|&&action| usize::from(action) >= manifest.n_actions)
        {
            return Err(bad(format!("it holds action {action} of {}", manifest.n_actions)));
        }
        let (rewards, _) = bytes("rewards")?.as_chunks::<4>();
        let rewards: Vec<f32> = rewards.iter().map(|&number| f32::from_le_bytes(number)).collect();
        if rewards.iter().any(|reward| !reward.is_finite()) {
            return Err(bad("a reward is not a finite number".into()));
        }
        let frames = bytes("frames")?.as_ptr().addr() - map.as_ptr().addr();
        let mut to_go = Vec::with_capacity(layout.rows);
        for episode in index.episodes().as_slice() {
            to_go.extend(returns_to_go(&rewards[episode.range()], 1.0));
        }
        Ok(Self {
            path: path.to_path_buf(),
            file,
            opened,
            frames,
            index: Arc::new(index),
            actions,
            rewards,
            returns_to_go: to_go,
            manifest,
        })
    }

    /// The file it is read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of rows.
    pub fn n_transitions(&self) -> usize {
        self.actions.len()
    }

    /// Actions are `0 .. n_actions`.
    pub fn n_actions(&self) -> usize {
        self.manifest.n_actions
    }

    /// The episodes, which cover all rows in order.
    pub fn episodes(&self) -> &Episodes {
        self.index.episodes()
    }

    /// Which rows belong to which episode: what a sampler draws from.
    pub fn index(&self) -> &Arc<EpisodeIndex> {
        &self.index
    }

    /// As [`EpisodeIndex::episode_start`].
    ///
    /// # Panics
    /// When there is no such row.
    pub fn episode_start(&self, row: usize) -> usize {
        self.index.episode_start(row)
    }

    /// As [`EpisodeIndex::episode_end`].
    ///
    /// # Panics
    /// When there is no such row.
    pub fn episode_end(&self, row: usize) -> usize {
        self.index.episode_end(row)
    }

    /// As [`EpisodeIndex::timestep`].
    ///
    /// # Panics
    /// When there is no such row.
    pub fn timestep(&self, row: usize) -> usize {
        self.index.timestep(row)
    }

    /// `[rows]`, indices into the game's action set.
    pub fn actions(&self) -> &[u8] {
        &self.actions
    }

    /// `[rows]`, clipped to [-1, 1].
    pub fn rewards(&self) -> &[f32] {
        &self.rewards
    }

    /// `[rows]`, undiscounted sums of clipped rewards to the episode's end, the row's own
    /// included.
    pub fn returns_to_go(&self) -> &[f32] {
        &self.returns_to_go
    }

    /// Return of each episode, in clipped units.
    pub fn episode_returns(&self) -> Vec<f32> {
        self.episodes().as_slice().iter().map(|e| self.returns_to_go[e.start]).collect()
    }

    /// The observation of row `row`, `[84, 84]`.
    ///
    /// # Errors
    /// As [`AtariDataset::read_frames`].
    ///
    /// # Panics
    /// When there is no such row.
    pub fn frame(&self, row: usize) -> Result<Vec<u8>, DataError> {
        let mut pixels = vec![0; FRAME];
        self.read_frames(row, &mut pixels)?;
        Ok(pixels)
    }

    /// Copies the observations of rows `first ..` into `out`, as many as it has room for.
    ///
    /// They are read, and not mapped: pages that a process has touched in a map count as its
    /// memory, and an epoch touches all of them. Equally fast, and a file that shrinks is an
    /// error here and the end of the process there.
    ///
    /// # Errors
    /// When the file cannot be read, [`DataError::Store`] when it was cut short meanwhile.
    ///
    /// # Panics
    /// When there are not so many rows from `first` on, or `out` is not whole frames.
    pub fn read_frames(&self, first: usize, out: &mut [u8]) -> Result<(), DataError> {
        assert_eq!(out.len() % FRAME, 0, "`out` is [n, 84, 84]");
        assert!(first + out.len() / FRAME <= self.n_transitions(), "rows from {first}");
        let at = (self.frames + first * FRAME) as u64;
        self.file.read_exact_at(out, at).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.damaged(CUT_SHORT),
            _ => DataError::io(&self.path, "read")(error),
        })
    }

    /// Asserts that nobody has written to the file since it was opened, or has written what was
    /// there already: then everything is read to find out.
    ///
    /// # Errors
    /// [`DataError::Store`] when what was read since then may not be the dataset.
    pub fn check_unchanged(&self) -> Result<(), DataError> {
        let now = stamp(&self.file).map_err(DataError::io(&self.path, "look at"))?;
        if now == self.opened {
            return Ok(());
        }
        if now.0 < self.opened.0 {
            return Err(self.damaged(CUT_SHORT));
        }
        self.verify().map_err(|error| match error {
            DataError::Store { .. } => self.damaged("somebody changed it while it was in use"),
            error => error,
        })
    }

    /// Asserts that nobody has written to the file since it was made, as
    /// [`AtariDataset::check_unchanged`] does: the copy of its manifest beside it is written
    /// later than it. A change that puts the time back is not found, except by
    /// [`AtariDataset::verify`].
    ///
    /// # Errors
    /// [`DataError::Store`] when it is not the dataset that was made.
    pub fn check_untouched(&self) -> Result<(), DataError> {
        let beside = self.path.with_file_name(MANIFEST_FILE);
        match fs::metadata(beside).and_then(|manifest| manifest.modified()) {
            Ok(made) if self.opened.1 <= made => Ok(()),
            _ => self.verify(),
        }
    }

    /// Reads everything and compares it with the manifest's content hash.
    ///
    /// # Errors
    /// [`DataError::Store`] when the file was damaged after it was made.
    pub fn verify(&self) -> Result<(), DataError> {
        let starts: Vec<usize> = (0..self.n_transitions()).step_by(FRAMES_PER_READ).collect();
        let rows = starts
            .par_iter()
            .map(|&first| self.row_hashes(first))
            .try_reduce(RowHashes::default, |one, other| Ok(one.plus(other)))?;
        let episodes = self.episodes().as_slice();
        let i64s = |number: fn(&Episode) -> usize| -> Vec<u8> {
            episodes.iter().flat_map(|episode| (number(episode) as i64).to_le_bytes()).collect()
        };
        let outcomes: Vec<u8> =
            episodes.iter().map(|episode| outcome_code(episode.outcome)).collect();
        let table = [i64s(|episode| episode.start), i64s(|episode| episode.length), outcomes];
        if rows.finish(table.iter().map(Vec::as_slice)) == self.manifest.content_hash {
            return Ok(());
        }
        Err(self.damaged("its rows are not those its content hash was made of"))
    }

    /// Of rows `first ..`, as many as are read at a time.
    fn row_hashes(&self, first: usize) -> Result<RowHashes, DataError> {
        let n = FRAMES_PER_READ.min(self.n_transitions() - first);
        let mut pixels = vec![0; n * FRAME];
        self.read_frames(first, &mut pixels)?;
        let mut sum = RowHashes::default();
        for (frame, row) in pixels.chunks_exact(FRAME).zip(first..) {
            sum.add_row(row, self.actions[row], self.rewards[row], frame);
        }
        Ok(sum)
    }

    fn damaged(&self, reason: &str) -> DataError {
        DataError::Store { path: self.path.clone(), reason: reason.into() }
    }

    /// Where it comes from.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }
}

/// How an outcome is stored.
pub(crate) fn outcome_code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Terminated => 0,
        Outcome::Truncated => 1,
    }
}

fn dtype_name(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::U8 => "U8",
        Dtype::I64 => "I64",
        Dtype::F32 => "F32",
        _ => "another type",
    }
}
