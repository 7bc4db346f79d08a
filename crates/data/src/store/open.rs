//! A converted dataset: its file is opened, and read again to verify that it was not changed.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;
use overtone_core::picture::{FRAME, STACK};
use overtone_core::{Episode, Episodes, Outcome};
use rayon::prelude::*;
use safetensors::tensor::{Dtype, SafeTensors};

use crate::error::{DataError, Fault};
use crate::read::column::ActionColumn;
use crate::read::columns::Mixture;
use crate::read::optional_arrays::OptionalArrays;
use crate::sample::dataset::{Dataset, StoredObservations};
use crate::sample::episode_index::EpisodeIndex;
use crate::sample::held_out::Split;
use crate::store::content_hash::RowHashes;
use crate::store::frames::{FrameStore, damaged, stamp};
use crate::store::layout::{StoreLayout, episode_table};
use crate::store::manifest::{FORMAT, StoreManifest};

/// Frames that [`Dataset::verify`] reads at a time.
const FRAMES_PER_READ: usize = 64;

/// Converts a store's defect to an error.
type Bad<'a> = &'a dyn Fn(String) -> DataError;

/// The manifest of the store `map`.
///
/// # Errors
/// If a readable one does not exist, or it counts more than the file can hold.
fn manifest_in(map: &[u8], bad: Bad<'_>) -> Result<StoreManifest, DataError> {
    let (_, metadata) = SafeTensors::read_metadata(map).map_err(|error| bad(error.to_string()))?;
    let manifest = metadata
        .metadata()
        .as_ref()
        .and_then(|map| map.get("manifest"))
        .ok_or_else(|| bad("it has no manifest".into()))?;
    let manifest: StoreManifest = serde_json::from_str(manifest)
        .map_err(|error| bad(format!("its manifest cannot be read: {error}")))?;
    if manifest.format != FORMAT {
        return Err(bad(format!("its layout is {}, and {FORMAT} is read", manifest.format)));
    }
    // A row and an episode each take more than a byte: beyond this, sizes could overflow.
    if manifest.counts.rows > map.len() || manifest.counts.episodes > map.len() {
        return Err(bad("its manifest counts more than the file can hold".into()));
    }
    Ok(manifest)
}

/// The tensors of the store `map`, which has this `layout`.
///
/// # Errors
/// If one is missing, or has another type or shape.
fn tensors_in<'a>(
    map: &'a [u8],
    layout: &StoreLayout,
    bad: Bad<'_>,
) -> Result<SafeTensors<'a>, DataError> {
    let tensors = SafeTensors::deserialize(map).map_err(|error| bad(error.to_string()))?;
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
    Ok(tensors)
}

/// The episodes whose columns are the `bytes` of the tensors of these names.
///
/// # Errors
/// If they are not episodes of all rows.
fn episodes_of<'a>(
    layout: &StoreLayout,
    bytes: &dyn Fn(&str) -> Result<&'a [u8], DataError>,
    bad: Bad<'_>,
) -> Result<Episodes, DataError> {
    let i64s = |name: &str| -> Result<Vec<i64>, DataError> {
        let (numbers, _) = bytes(name)?.as_chunks::<8>();
        Ok(numbers.iter().map(|&number| i64::from_le_bytes(number)).collect())
    };
    let size = |number| {
        usize::try_from(number)
            .ok()
            .filter(|&n| n <= layout.rows)
            .ok_or_else(|| bad(format!("an episode's bounds hold {number}")))
    };
    let (starts, lengths) = (i64s("episode_starts")?, i64s("episode_lengths")?);
    let columns = starts.into_iter().zip(lengths).zip(bytes("episode_outcomes")?);
    let list = columns.map(|((start, length), &outcome)| {
        let outcome = match outcome {
            0 => Outcome::Terminated,
            1 => Outcome::Truncated,
            other => return Err(bad(format!("an episode's outcome is {other}"))),
        };
        Ok(Episode { start: size(start)?, length: size(length)?, outcome })
    });
    let list = list.collect::<Result<Vec<_>, DataError>>()?;
    let episodes = Episodes::new(list).map_err(|error| bad(error.to_string()))?;
    if episodes.n_transitions() != layout.rows {
        return Err(bad("its episodes do not cover its rows".into()));
    }
    Ok(episodes)
}

impl Dataset {
    /// Opens a finished frame store and checks its header against its size, and its columns
    /// against each other. Frames are not read.
    ///
    /// # Errors
    /// [`DataError::Missing`] if the file does not exist, `Fault::Store` if it is damaged.
    pub fn open_store(path: &Path) -> Result<Self, DataError> {
        let file = File::open(path).map_err(DataError::open(path, "it is made by a conversion"))?;
        let opened = stamp(&file).map_err(DataError::io(path, "look at"))?;
        let bad = |reason: String| Fault::Store(reason).at(path);
        // Safety: the map is only read, lives no longer than this function, and finished stores
        // are replaced by renaming, never written to, so its bytes do not change under us.
        let map = unsafe { Mmap::map(&file) }.map_err(DataError::io(path, "map"))?;
        let manifest = manifest_in(&map, &bad)?;
        let layout = StoreLayout { rows: manifest.counts.rows, episodes: manifest.counts.episodes };
        let tensors = tensors_in(&map, &layout, &bad)?;
        let bytes = |name: &str| {
            tensors.tensor(name).map(|tensor| tensor.data()).map_err(|error| bad(error.to_string()))
        };
        let episodes = episodes_of(&layout, &bytes, &bad)?;
        let index = EpisodeIndex::new(episodes)
            .ok_or_else(|| bad("it has more rows than can be numbered".into()))?;
        let n_actions = manifest.n_actions;
        let actions: Vec<u16> = bytes("actions")?.iter().map(|&action| u16::from(action)).collect();
        if let Some(&action) = actions.iter().find(|&&action| usize::from(action) >= n_actions) {
            return Err(bad(format!("it holds action {action} of {n_actions}")));
        }
        let (rewards, _) = bytes("rewards")?.as_chunks::<4>();
        let rewards: Vec<f32> = rewards.iter().map(|&number| f32::from_le_bytes(number)).collect();
        if rewards.iter().any(|reward| !reward.is_finite()) {
            return Err(bad("a reward is not a finite number".into()));
        }
        let frames = bytes("frames")?.as_ptr().addr() - map.as_ptr().addr();
        Ok(Self {
            path: path.to_path_buf(),
            finished: vec![true; layout.episodes],
            mixture: Mixture::default(),
            returns_to_go: Self::sum_up(index.episodes(), &rewards),
            split: Split { training: (0..layout.episodes).collect(), held_out: Vec::new() },
            firsts: (0..layout.episodes).collect(),
            index: Arc::new(index.showing_before(STACK - 1)),
            actions: ActionColumn::Discrete { n_actions, values: actions },
            rewards,
            behavior_log_probs: None,
            optional: OptionalArrays::default(),
            origin: manifest.origin.clone(),
            counts: manifest.counts,
            content_hash: manifest.content_hash.clone(),
            odd: Vec::new(),
            observations: StoredObservations::Frames(FrameStore::in_file(
                path.to_path_buf(),
                file,
                opened,
                frames,
                manifest,
            )),
        })
    }

    /// Asserts that a converted dataset's file was not written since it was opened, or was written
    /// with the same contents: then everything is read to verify this. Data in memory cannot be
    /// changed by another program.
    ///
    /// # Errors
    /// `Fault::Store` if the rows read since then may differ from the dataset.
    pub fn check_unchanged(&self) -> Result<(), DataError> {
        self.frames().map_or(Ok(()), |frames| frames.check_unchanged(|| self.verify()))
    }

    /// Asserts that the file was not written since it was made, as [`Dataset::check_unchanged`]
    /// does: the copy of its manifest next to it is written later than the file. A change that puts
    /// the time back is not found, except by [`Dataset::verify`].
    ///
    /// # Errors
    /// `Fault::Store` if it differs from the dataset that was made.
    pub fn check_untouched(&self) -> Result<(), DataError> {
        match self.frames() {
            Some(frames) if !frames.is_untouched() => self.verify(),
            _ => Ok(()),
        }
    }

    /// Reads a whole converted dataset and compares it with its content hash.
    ///
    /// # Errors
    /// `Fault::Store` if the file was damaged after it was made.
    pub fn verify(&self) -> Result<(), DataError> {
        let (Some(frames), ActionColumn::Discrete { values, .. }) = (self.frames(), self.actions())
        else {
            return Ok(());
        };
        if frames.manifest().is_none() {
            return Ok(());
        }
        let starts: Vec<usize> = (0..self.n_transitions()).step_by(FRAMES_PER_READ).collect();
        let rows = starts
            .par_iter()
            .map(|&first| self.row_hashes(frames, values, first))
            .try_reduce(RowHashes::default, |one, other| Ok(one.plus(other)))?;
        let table = episode_table(self.episodes().as_slice());
        if rows.finish(table.iter().map(|(_, bytes)| bytes.as_slice())) == self.content_hash() {
            return Ok(());
        }
        Err(damaged(self.path(), "its rows are not those its content hash was made of"))
    }

    /// Rows from `first` on, as many as are read at a time.
    fn row_hashes(
        &self,
        frames: &FrameStore,
        actions: &[u16],
        first: usize,
    ) -> Result<RowHashes, DataError> {
        let n = FRAMES_PER_READ.min(self.n_transitions() - first);
        let mut pixels = vec![0; n * FRAME];
        frames.read(first, &mut pixels)?;
        let mut sum = RowHashes::default();
        for (frame, row) in pixels.chunks_exact(FRAME).zip(first..) {
            // A store's actions take a byte each.
            sum.add_row(row, actions[row] as u8, self.rewards()[row], frame);
        }
        Ok(sum)
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
