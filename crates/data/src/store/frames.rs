//! [`FrameStore`]: the frames of a dataset, each kept once, in a file or in memory.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use overtone_core::picture::FRAME;

use crate::error::{DataError, Fault};
use crate::store::layout::MANIFEST_FILE;
use crate::store::manifest::StoreManifest;

/// The defect of a file that has fewer bytes than when it was opened.
const CUT_SHORT: &str = "it was cut short while it was in use";

/// One frame a row; an observation is a stack of the newest ones, oldest first.
///
/// A file must not be changed while it is open. This project's code does not change a finished
/// file, and a file that is replaced by renaming stays as it was for a program that has it open.
/// [`crate::Dataset::check_unchanged`] finds changes by other programs.
#[derive(Debug)]
pub struct FrameStore {
    rows: usize,
    pixels: Pixels,
}

/// The location of the frames.
#[derive(Debug)]
enum Pixels {
    InFile(Box<StoreFile>),
    InMemory(Vec<u8>),
}

/// A converted dataset's file.
#[derive(Debug)]
struct StoreFile {
    path: PathBuf,
    file: File,
    /// Its size and time when it was opened.
    opened: Stamp,
    /// The byte at which the frames begin.
    frames: usize,
    manifest: StoreManifest,
}

/// The properties that change with a write to a file: its size in bytes, and the time.
pub(super) type Stamp = (u64, SystemTime);

pub(super) fn stamp(file: &File) -> io::Result<Stamp> {
    let metadata = file.metadata()?;
    Ok((metadata.len(), metadata.modified()?))
}

impl FrameStore {
    /// Frames in memory, `[rows, 84, 84]`.
    ///
    /// # Panics
    /// When `pixels` is not whole frames: a caller's bug.
    pub fn in_memory(pixels: Vec<u8>) -> Self {
        assert_eq!(pixels.len() % FRAME, 0, "`pixels` is [rows, 84, 84]");
        Self { rows: pixels.len() / FRAME, pixels: Pixels::InMemory(pixels) }
    }

    /// The frames of an open file, which begin at byte `frames`.
    pub(super) fn in_file(
        path: PathBuf,
        file: File,
        opened: Stamp,
        frames: usize,
        manifest: StoreManifest,
    ) -> Self {
        let rows = manifest.counts.rows;
        let file = Box::new(StoreFile { path, file, opened, frames, manifest });
        Self { rows, pixels: Pixels::InFile(file) }
    }

    /// Number of frames.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// A converted file's manifest; `None` for frames in memory.
    pub fn manifest(&self) -> Option<&StoreManifest> {
        match &self.pixels {
            Pixels::InFile(file) => Some(&file.manifest),
            Pixels::InMemory(_) => None,
        }
    }

    /// Copies the frames of rows `first ..` into `out`, as many as it has room for.
    ///
    /// Those in a file are read, and not mapped: pages that a process has touched in a map
    /// count as its memory, and an epoch touches all of them. Equally fast, and a file that
    /// shrinks is an error here and the end of the process there.
    ///
    /// # Errors
    /// When the file cannot be read, `Fault::Store` when it was cut short meanwhile.
    ///
    /// # Panics
    /// When there are not so many rows from `first` on, or `out` is not whole frames.
    pub fn read(&self, first: usize, out: &mut [u8]) -> Result<(), DataError> {
        assert_eq!(out.len() % FRAME, 0, "`out` is [n, 84, 84]");
        assert!(first + out.len() / FRAME <= self.rows, "rows from {first}");
        match &self.pixels {
            Pixels::InMemory(pixels) => {
                out.copy_from_slice(&pixels[first * FRAME..][..out.len()]);
                Ok(())
            }
            Pixels::InFile(store) => {
                let at = (store.frames + first * FRAME) as u64;
                store.file.read_exact_at(out, at).map_err(|error| match error.kind() {
                    io::ErrorKind::UnexpectedEof => store.damaged(CUT_SHORT),
                    _ => DataError::io(&store.path, "read")(error),
                })
            }
        }
    }

    /// Copies the frames of `rows` into `out`: a black frame for each -1; the others, wherever
    /// they begin, are consecutive.
    pub(crate) fn lay(&self, rows: &[i64], out: &mut [u8]) -> Result<(), DataError> {
        let before = rows.iter().take_while(|&&row| row < 0).count();
        let real = rows[before..].iter().take_while(|&&row| row >= 0).count();
        let (black, rest) = out.split_at_mut(before * FRAME);
        let (pictures, after) = rest.split_at_mut(real * FRAME);
        black.fill(0);
        after.fill(0);
        rows.get(before).map_or(Ok(()), |&first| self.read(first as usize, pictures))
    }

    /// Asserts that the file was not written since it was opened, or that `verify` finds its
    /// contents unchanged.
    pub(super) fn check_unchanged(
        &self,
        verify: impl FnOnce() -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let Pixels::InFile(store) = &self.pixels else { return Ok(()) };
        let now = stamp(&store.file).map_err(DataError::io(&store.path, "look at"))?;
        if now == store.opened {
            return Ok(());
        }
        if now.0 < store.opened.0 {
            return Err(store.damaged(CUT_SHORT));
        }
        verify().map_err(|error| match error {
            DataError::At { fault: Fault::Store(_), .. } => {
                store.damaged("another program changed it while it was in use")
            }
            error => error,
        })
    }

    /// Whether the file's time says that it was not written since it was made.
    pub(super) fn is_untouched(&self) -> bool {
        let Pixels::InFile(store) = &self.pixels else { return true };
        let beside = store.path.with_file_name(MANIFEST_FILE);
        let made = fs::metadata(beside).and_then(|manifest| manifest.modified());
        made.is_ok_and(|made| store.opened.1 <= made)
    }
}

impl StoreFile {
    fn damaged(&self, reason: &str) -> DataError {
        damaged(&self.path, reason)
    }
}

/// The error for a converted file that has changed.
pub(super) fn damaged(path: &Path, reason: &str) -> DataError {
    Fault::Store(reason.into()).at(path)
}
