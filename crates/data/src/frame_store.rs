//! Converting a selection of a log into one memory-mappable file with every frame once.
//!
//! The file is ordinary safetensors, so it opens in any language:
//!
//! | tensor | type and shape |
//! | --- | --- |
//! | `episode_starts`, `episode_lengths` | i64 `[episodes]`, in rows |
//! | `rewards` | f32 `[rows]`, clipped to [-1, 1] |
//! | `episode_outcomes` | u8 `[episodes]`: 0 terminated, 1 truncated |
//! | `actions` | u8 `[rows]` |
//! | `frames` | u8 `[rows, 84, 84]` |
//!
//! with the [`Manifest`] as JSON under `manifest` in its metadata. A stack of four frames is
//! four rows, so nothing is stored twice.
//!
//! Conversion inflates each shard once, as many shards at a time as there are cores, and only
//! up to the last slot needed. A gzip stream cannot be split; where there are fewer shards
//! than cores, one thread inflates a shard and another hashes and writes. Frames are inflated
//! into a chunk of `FRAMES_PER_WRITE` and written from there straight to their place; no
//! shard is ever held whole. What is resident (`memory_bytes`) is, for each shard in flight,
//! at most `CHUNKS` chunks, the inflater's window, and its small columns.
//!
//! It writes under a temporary name beside the final one, flushes, and renames: a conversion
//! killed at any instant leaves no file under the final name, and the next one removes what it
//! left. A lock on the temporary file tells a leftover from another process at work.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel, sync_channel};
use std::thread;
use std::time::Duration;

use overtone_core::Outcome;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::content_hash::RowHashes;
use crate::dataset::outcome_code;
use crate::error::DataError;
use crate::manifest::{Manifest, Source};
use crate::npy::{NpyStream, hex};
use crate::plan::Plan;
use crate::replay_log::{Ending, FRAME, ReplayLog, SmallColumns};
use crate::run_folder::Column;
use crate::selection::Selected;

/// Name of the finished file in its folder.
pub const STORE_FILE: &str = "frames.safetensors";
/// Name of the manifest's copy beside it.
pub const MANIFEST_FILE: &str = "manifest.json";
/// Temporary files begin and end so.
const TEMPORARY: (&str, &str) = (".frames-", ".partial");
/// Frames per write.
const FRAMES_PER_WRITE: usize = 64;
/// Chunks of `FRAMES_PER_WRITE` frames a shard, where two threads work on it: one being
/// inflated, one being written, two between, for the threads' different rates.
const CHUNKS: usize = 4;
/// Bytes of a shard in flight beside chunks and columns: zlib's window, read buffers, stacks.
const SHARD_OVERHEAD: usize = 1_000_000;
/// Stands where a hash will be known: of the same length, so the header's size is final.
const HASH_TO_COME: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Byte ranges of the tensors, from the start of the data; the order of the table above.
pub(crate) struct Layout {
    pub rows: usize,
    pub episodes: usize,
}

impl Layout {
    pub(crate) fn tensors(&self) -> [(&'static str, &'static str, Vec<usize>, usize); 6] {
        let (rows, episodes) = (self.rows, self.episodes);
        [
            ("episode_starts", "I64", vec![episodes], 8 * episodes),
            ("episode_lengths", "I64", vec![episodes], 8 * episodes),
            ("rewards", "F32", vec![rows], 4 * rows),
            ("episode_outcomes", "U8", vec![episodes], episodes),
            ("actions", "U8", vec![rows], rows),
            ("frames", "U8", vec![rows, 84, 84], FRAME * rows),
        ]
    }

    /// Bytes before tensor `name`.
    fn offset(&self, name: &str) -> u64 {
        let before = self.tensors().into_iter().take_while(|tensor| tensor.0 != name);
        before.map(|tensor| tensor.3 as u64).sum()
    }

    pub(crate) fn data_bytes(&self) -> u64 {
        self.tensors().iter().map(|tensor| tensor.3 as u64).sum()
    }

    /// Length field and JSON header, padded with spaces to a multiple of 8.
    fn header(&self, manifest: &Manifest) -> Result<Vec<u8>, serde_json::Error> {
        let mut map = serde_json::Map::new();
        let text = serde_json::to_string(manifest)?;
        map.insert("__metadata__".into(), serde_json::json!({ "manifest": text }));
        let mut at = 0;
        for (name, dtype, shape, bytes) in self.tensors() {
            let entry = serde_json::json!({
                "dtype": dtype, "shape": shape, "data_offsets": [at, at + bytes],
            });
            map.insert(name.into(), entry);
            at += bytes;
        }
        let mut json = serde_json::to_vec(&map)?;
        json.resize(json.len().next_multiple_of(8), b' ');
        let mut header = (json.len() as u64).to_le_bytes().to_vec();
        header.extend(json);
        Ok(header)
    }
}

/// A run of consecutive slots and where they go; `None` for padding that is only checked.
struct Piece {
    slot: usize,
    length: usize,
    row: Option<usize>,
}

/// Converts as `plan` says, unless another process has done so meanwhile; gives the path of
/// the finished file. `progress` is told bytes inflated and bytes to inflate.
pub(crate) fn convert(
    plan: &Plan,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<PathBuf, DataError> {
    let folder = plan.store.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(DataError::io(folder, "create"))?;
    remove_leftovers(folder)?;
    let temporary = Temporary::create(folder)?;

    let (log, selected) = (&plan.log, &plan.selected);
    let layout = Layout { rows: selected.n_rows(), episodes: selected.episodes.len() };
    let mut manifest = plan.manifest.clone();
    manifest.content_hash = HASH_TO_COME.into();
    manifest.sources = plan
        .files
        .iter()
        .flat_map(|&file| Column::ALL.map(|column| source_template(log, file, column)))
        .collect();
    let header_error = |error: serde_json::Error| DataError::Store {
        path: plan.store.clone(),
        reason: error.to_string(),
    };
    let data = layout.header(&manifest).map_err(header_error)?.len() as u64;
    let write_error = || DataError::io(&temporary.path, "write");
    temporary.file.set_len(data + layout.data_bytes()).map_err(write_error())?;

    let table = episode_table(selected);
    for (name, bytes) in &table {
        let at = data + layout.offset(name);
        temporary.file.write_all_at(bytes, at).map_err(write_error())?;
    }
    let overlapped = plan.files.len() < rayon::current_num_threads();
    let writer = ShardWriter { log, temporary: &temporary, layout: &layout, data, overlapped };
    let shards = all_shards(plan, &writer, progress)?;

    let mut rows = RowHashes::default();
    manifest.sources.clear();
    for shard in shards {
        rows = rows.plus(shard.rows);
        manifest.sources.extend(shard.sources);
    }
    manifest.content_hash = rows.finish(table.iter().map(|(_, bytes)| bytes.as_slice()));
    let header = layout.header(&manifest).map_err(header_error)?;
    assert_eq!(header.len() as u64, data, "the hashes to come had the length of hashes");
    temporary.file.write_all_at(&header, 0).map_err(write_error())?;
    temporary.file.sync_all().map_err(write_error())?;
    write_manifest(folder, &manifest)?;
    temporary.rename(&plan.store)?;
    // The rename itself must survive a power cut.
    File::open(folder).and_then(|dir| dir.sync_all()).map_err(DataError::io(folder, "flush"))?;
    Ok(plan.store.clone())
}

/// The episode tensors, in the layout's order.
fn episode_table(selected: &Selected) -> [(&'static str, Vec<u8>); 3] {
    let i64s = |value: fn(&std::ops::Range<usize>) -> usize| -> Vec<u8> {
        selected.episodes.iter().flat_map(|e| (value(&e.rows) as i64).to_le_bytes()).collect()
    };
    let outcomes = selected.episodes.iter().map(|episode| outcome_code(outcome(episode.ending)));
    [
        ("episode_starts", i64s(|rows| rows.start)),
        ("episode_lengths", i64s(ExactSizeIterator::len)),
        ("episode_outcomes", outcomes.collect()),
    ]
}

/// An episode the step limit cut is finished, and truncated all the same.
fn outcome(ending: Ending) -> Outcome {
    match ending {
        Ending::GameOver => Outcome::Terminated,
        Ending::StepLimit | Ending::Cut => Outcome::Truncated,
    }
}

/// Runs all shards on the thread pool while this thread reports progress.
fn all_shards(
    plan: &Plan,
    writer: &ShardWriter<'_>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<Shard>, DataError> {
    let done = AtomicU64::new(0);
    let (finished, wait) = channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let shards: Result<Vec<_>, _> = plan
                .files
                .par_iter()
                .map(|&file| writer.shard(file, pieces_of(&plan.selected, file), &done))
                .collect();
            // The receiver lives until this thread has ended.
            let _ = finished.send(shards);
        });
        loop {
            let report = wait.recv_timeout(Duration::from_millis(100));
            progress(done.load(Ordering::Relaxed), plan.inflate_bytes);
            match report {
                Ok(shards) => return shards,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(stopped());
                }
            }
        }
    })
}

/// Bytes a conversion holds at most with `threads` threads, for `files` files of `slots` slots
/// and `episodes` episodes.
pub(crate) fn memory_bytes(threads: usize, files: usize, slots: usize, episodes: usize) -> u64 {
    // Actions and terminals take a byte, rewards four, which may double while they are read.
    let shard = CHUNKS * FRAMES_PER_WRITE * FRAME + 12 * slots + SHARD_OVERHEAD;
    (threads.min(files).max(1) * shard + 64 * episodes) as u64
}

/// The slots of one file that are rows, or padding to check, in slot order.
fn pieces_of(selected: &Selected, file: usize) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for episode in &selected.episodes {
        let mut row = episode.rows.start;
        for range in &episode.slots {
            if range.file == file {
                pieces.push(Piece { slot: range.slot, length: range.length, row: Some(row) });
            }
            row += range.length;
        }
    }
    let checks = selected.padding_checks.iter().filter(|range| range.file == file);
    pieces.extend(checks.map(|range| Piece { slot: range.slot, length: range.length, row: None }));
    pieces.sort_by_key(|piece| piece.slot);
    pieces
}

/// Frames of consecutive slots, inflated.
struct Chunk {
    /// `[FRAMES_PER_WRITE, 84, 84]`, of which the first `n` frames count.
    frames: Vec<u8>,
    n: usize,
    slot: usize,
    /// Row of the first; `None` for padding that is only checked.
    row: Option<usize>,
}

/// What one shard contributed.
struct Shard {
    rows: RowHashes,
    sources: Vec<Source>,
}

struct ShardWriter<'a> {
    log: &'a ReplayLog,
    temporary: &'a Temporary,
    layout: &'a Layout,
    data: u64,
    /// Whether hashing and writing have a thread of their own for each shard.
    overlapped: bool,
}

impl ShardWriter<'_> {
    fn write(&self, tensor: &str, at: usize, bytes: &[u8]) -> Result<(), DataError> {
        let offset = self.data + self.layout.offset(tensor) + at as u64;
        let written = self.temporary.file.write_all_at(bytes, offset);
        written.map_err(DataError::io(&self.temporary.path, "write"))
    }

    /// Writes the rows that come from file `file`.
    fn shard(&self, file: usize, pieces: Vec<Piece>, done: &AtomicU64) -> Result<Shard, DataError> {
        let columns = self.log.columns(file)?;
        for piece in &pieces {
            let Some(row) = piece.row else { continue };
            let slots = piece.slot..piece.slot + piece.length;
            let rewards: Vec<u8> =
                columns.rewards[slots.clone()].iter().flat_map(|r| r.to_le_bytes()).collect();
            self.write("actions", row, &columns.actions[slots])?;
            self.write("rewards", 4 * row, &rewards)?;
        }

        let frames = self.log.frames(file)?;
        let mut rows = RowHashes::default();
        let frames = if self.overlapped {
            let (inflated, placed) = thread::scope(|scope| {
                let (send, arriving) = sync_channel::<Chunk>(CHUNKS);
                let (give_back, spare) = sync_channel(CHUNKS);
                for _ in 1..CHUNKS {
                    // There is room for all of them, and the receiver is alive.
                    let _ = give_back.send(chunk_memory());
                }
                let (columns, rows) = (&columns, &mut rows);
                let placing = scope.spawn(move || -> Result<(), DataError> {
                    for chunk in arriving {
                        self.place(file, columns, &chunk, rows)?;
                        // Nobody takes it once everything is inflated.
                        let _ = give_back.send(chunk.frames);
                    }
                    Ok(())
                });
                let inflated = inflate(frames, pieces, done, |chunk| {
                    send.send(chunk).ok().and_then(|()| spare.recv().ok()).ok_or_else(stopped)
                });
                drop(send);
                (inflated, placing.join())
            });
            // Where placing failed, inflating could not go on: that error is the cause.
            placed.map_err(|_| stopped())??;
            inflated?
        } else {
            inflate(frames, pieces, done, |chunk| {
                self.place(file, &columns, &chunk, &mut rows)?;
                Ok(chunk.frames)
            })?
        };
        let mut hashed = frames.hash_rest()?;
        let sources = Column::ALL.map(|column| {
            let mut source = source_template(self.log, file, column);
            let (bytes, sha256) = match (column, hashed.take()) {
                (Column::Observation, Some(known)) => known,
                _ => hash_file(&self.path_of(file, column))?,
            };
            (source.bytes, source.sha256) = (bytes, sha256);
            Ok(source)
        });
        let sources = sources.into_iter().collect::<Result<_, DataError>>()?;
        Ok(Shard { rows, sources })
    }

    /// Hashes a chunk of file `file` and writes it to its rows, or checks that it is black
    /// where it is padding.
    fn place(
        &self,
        file: usize,
        columns: &SmallColumns,
        chunk: &Chunk,
        rows: &mut RowHashes,
    ) -> Result<(), DataError> {
        let bytes = &chunk.frames[..chunk.n * FRAME];
        if let Some(row) = chunk.row {
            self.write("frames", row * FRAME, bytes)?;
            for (i, frame) in bytes.chunks_exact(FRAME).enumerate() {
                let at = chunk.slot + i;
                rows.add_row(row + i, columns.actions[at], columns.rewards[at], frame);
            }
        } else if let Some(at) = bytes.iter().position(|&pixel| pixel != 0) {
            return Err(DataError::Value {
                path: self.path_of(file, Column::Observation),
                slot: chunk.slot + at / FRAME,
                what: "a picture where an episode's padding must be black".into(),
            });
        }
        Ok(())
    }

    fn path_of(&self, file: usize, column: Column) -> PathBuf {
        self.log.folder.column(column, self.log.files[file].number)
    }
}

/// Inflates the frames of `pieces`, gives each chunk to `hand_on` for memory for the next, and
/// gives the stream back where the last piece ends.
fn inflate(
    mut frames: NpyStream,
    pieces: Vec<Piece>,
    done: &AtomicU64,
    mut hand_on: impl FnMut(Chunk) -> Result<Vec<u8>, DataError>,
) -> Result<NpyStream, DataError> {
    let mut chunk = chunk_memory();
    let mut slot = 0;
    for piece in pieces {
        assert!(piece.slot >= slot, "a slot is either a row or padding, and is so once");
        let end = piece.slot + piece.length;
        while slot < end {
            // Slots before the piece are inflated and forgotten.
            let wanted = slot >= piece.slot;
            let stop = if wanted { end } else { piece.slot };
            let n = (stop - slot).min(FRAMES_PER_WRITE);
            frames.read_exact(&mut chunk[..n * FRAME])?;
            done.fetch_add((n * FRAME) as u64, Ordering::Relaxed);
            if wanted {
                let row = piece.row.map(|row| row + (slot - piece.slot));
                chunk = hand_on(Chunk { frames: chunk, n, slot, row })?;
            }
            slot += n;
        }
    }
    Ok(frames)
}

fn chunk_memory() -> Vec<u8> {
    vec![0; FRAMES_PER_WRITE * FRAME]
}

fn stopped() -> DataError {
    DataError::Loader { reason: "a conversion thread panicked".into() }
}

/// Name and size of a source file; its hash, of the same length, is written once it is known.
fn source_template(log: &ReplayLog, file: usize, column: Column) -> Source {
    let path = log.folder.column(column, log.files[file].number);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = fs::metadata(&path).map_or(0, |data| data.len());
    Source { name, bytes, sha256: HASH_TO_COME.into() }
}

fn hash_file(path: &Path) -> Result<(u64, String), DataError> {
    let bytes = fs::read(path).map_err(DataError::io(path, "read"))?;
    Ok((bytes.len() as u64, hex(&Sha256::digest(&bytes))))
}

fn write_manifest(folder: &Path, manifest: &Manifest) -> Result<(), DataError> {
    let path = folder.join(MANIFEST_FILE);
    let text = serde_json::to_string_pretty(manifest)
        .map_err(|error| DataError::Store { path: path.clone(), reason: error.to_string() })?;
    let temporary = Temporary::create(folder)?;
    (&temporary.file)
        .write_all(text.as_bytes())
        .and_then(|()| temporary.file.sync_all())
        .map_err(DataError::io(&temporary.path, "write"))?;
    temporary.rename(&path)
}

/// A file under a name no other process uses, locked while it is written; removed unless
/// renamed.
struct Temporary {
    path: PathBuf,
    file: File,
}

impl Temporary {
    fn create(folder: &Path) -> Result<Self, DataError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let (before, after) = TEMPORARY;
            let path = folder.join(format!("{before}{}-{count}{after}", std::process::id()));
            let file = match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(source) => return Err(DataError::Io { path, doing: "create", source }),
            };
            match file.try_lock() {
                // Another process may have taken it for a leftover in between.
                Ok(()) if path.exists() => return Ok(Self { path, file }),
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(source)) => {
                    return Err(DataError::Io { path, doing: "lock", source });
                }
            }
        }
    }

    fn rename(self, to: &Path) -> Result<(), DataError> {
        fs::rename(&self.path, to).map_err(DataError::io(to, "put in place"))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Gone after a rename; and what stays for another reason the next conversion removes.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes what conversions that were killed left in `folder`.
fn remove_leftovers(folder: &Path) -> Result<(), DataError> {
    for entry in fs::read_dir(folder).map_err(DataError::io(folder, "list"))? {
        let entry = entry.map_err(DataError::io(folder, "list"))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !(name.starts_with(TEMPORARY.0) && name.ends_with(TEMPORARY.1)) {
            continue;
        }
        // Locked: another process is writing it. Gone: it has just finished.
        let Ok(file) = OpenOptions::new().write(true).open(entry.path()) else { continue };
        if file.try_lock().is_ok() {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}
