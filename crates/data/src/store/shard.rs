//! One shard of a log: inflated, hashed and written to its rows.
//!
//! Resident memory ([`memory_bytes`]) is, for each shard in flight, at most [`CHUNKS`] chunks of
//! [`FRAMES_PER_WRITE`] frames, the inflater's window, and its small columns.

use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use overtone_core::picture::FRAME;

use crate::error::{DataError, Fault};
use crate::read::npy::NpyStream;
use crate::read::replay_log::{ReplayLog, SmallColumns};
use crate::read::run_folder::Column;
use crate::store::content_hash::RowHashes;
use crate::store::layout::StoreLayout;
use crate::store::selection::Selected;
use crate::store::temporary::Temporary;

/// Frames per write.
const FRAMES_PER_WRITE: usize = 64;
/// Chunks of `FRAMES_PER_WRITE` frames a shard, if two threads work on it: one being inflated, one
/// being written, two between, for the threads' different rates.
const CHUNKS: usize = 4;
/// Bytes of a shard in flight besides chunks and columns: zlib's window, read buffers, stacks.
const SHARD_OVERHEAD: usize = 1_000_000;

/// Maximum memory of a conversion with `threads` threads, for `files` files of `slots` slots and
/// `episodes` episodes.
pub(crate) fn memory_bytes(threads: usize, files: usize, slots: usize, episodes: usize) -> u64 {
    // Actions and terminals take a byte, rewards four, which may double while they are read.
    let shard = CHUNKS * FRAMES_PER_WRITE * FRAME + 12 * slots + SHARD_OVERHEAD;
    (threads.min(files).max(1) * shard + 64 * episodes) as u64
}

/// A run of consecutive slots and its destination; `None` for padding that is only checked.
pub(super) struct Piece {
    slot: usize,
    length: usize,
    row: Option<usize>,
}

/// The slots of one file that are rows, or padding to check, in slot order.
pub(super) fn pieces_of(selected: &Selected, file: usize) -> Vec<Piece> {
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
    /// `[FRAMES_PER_WRITE, 84, 84]`; the first `n` frames count.
    frames: Vec<u8>,
    n: usize,
    slot: usize,
    /// Row of the first; `None` for padding that is only checked.
    row: Option<usize>,
}

/// Writes shards to their places in the file.
pub(super) struct ShardWriter<'a> {
    pub(super) log: &'a ReplayLog,
    pub(super) temporary: &'a Temporary,
    pub(super) layout: &'a StoreLayout,
    /// Bytes of the file before its tensors.
    pub(super) data: u64,
    /// Whether hashing and writing have a thread of their own for each shard.
    pub(super) overlapped: bool,
    /// Stops all of them when set.
    pub(super) stop: &'a AtomicBool,
}

impl ShardWriter<'_> {
    fn write(&self, tensor: &str, at: usize, bytes: &[u8]) -> Result<(), DataError> {
        let offset = self.data + self.layout.offset(tensor) + at as u64;
        let written = self.temporary.file.write_all_at(bytes, offset);
        written.map_err(DataError::io(&self.temporary.path, "write"))
    }

    /// Writes the rows that come from file `file`, and returns their hashes.
    pub(super) fn shard(
        &self,
        file: usize,
        pieces: Vec<Piece>,
        done: &AtomicU64,
    ) -> Result<RowHashes, DataError> {
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
                        // The receiver is gone once everything is inflated.
                        let _ = give_back.send(chunk.frames);
                    }
                    Ok(())
                });
                let inflated = inflate(frames, pieces, done, self.stop, |chunk| {
                    send.send(chunk).ok().and_then(|()| spare.recv().ok()).ok_or_else(stopped)
                });
                drop(send);
                (inflated, placing.join())
            });
            // If placing failed, inflating could not continue: that error is the cause.
            placed.map_err(|_| stopped())??;
            inflated?
        } else {
            inflate(frames, pieces, done, self.stop, |chunk| {
                self.place(file, &columns, &chunk, &mut rows)?;
                Ok(chunk.frames)
            })?
        };
        frames.finish()?;
        Ok(rows)
    }

    /// Hashes a chunk of file `file` and writes it to its rows, or checks that it is black if it is
    /// padding.
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
            return Err(Fault::Value {
                slot: chunk.slot + at / FRAME,
                what: "a picture where an episode's padding must be black".into(),
            }
            .at(self.log.folder.column(Column::Observation, self.log.files[file].number)));
        }
        Ok(())
    }
}

/// Inflates the frames of `pieces`, passes each chunk to `hand_on`, which returns memory for the
/// next, and returns the stream at the end of the last piece.
fn inflate(
    mut frames: NpyStream,
    pieces: Vec<Piece>,
    done: &AtomicU64,
    stop: &AtomicBool,
    mut hand_on: impl FnMut(Chunk) -> Result<Vec<u8>, DataError>,
) -> Result<NpyStream, DataError> {
    let mut chunk = chunk_memory();
    let mut slot = 0;
    for piece in pieces {
        assert!(piece.slot >= slot, "a slot is either a row or padding, and is so once");
        let end = piece.slot + piece.length;
        while slot < end {
            if stop.load(Ordering::Relaxed) {
                return Err(DataError::Stopped);
            }
            // Slots before the piece are inflated and forgotten.
            let wanted = slot >= piece.slot;
            let until = if wanted { end } else { piece.slot };
            let n = (until - slot).min(FRAMES_PER_WRITE);
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

/// A thread of the conversion ended before its work did.
pub(super) fn stopped() -> DataError {
    DataError::Loader("a conversion thread panicked".into())
}
