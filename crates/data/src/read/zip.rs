//! [`Archive`]: the files in a zip archive, as NumPy's `savez` writes one.
//!
//! Only what it needs is read: stored and deflated files, with 64-bit sizes. What the archive's
//! directory says of a file is checked before anything is taken from it, so that a small archive
//! cannot stand for much memory.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

use crate::error::DataError;

/// What a zip archive begins with.
pub(crate) const MAGIC: &[u8; 4] = b"PK\x03\x04";
const END: &[u8; 4] = b"PK\x05\x06";
const END_64: &[u8; 4] = b"PK\x06\x06";
const LOCATOR_64: &[u8; 4] = b"PK\x06\x07";
const ENTRY: &[u8; 4] = b"PK\x01\x02";
/// Bytes of the archive's end without its comment, of an entry's fixed part, and of the fixed part
/// before a file.
const END_BYTES: usize = 22;
const ENTRY_BYTES: usize = 46;
const LOCAL_BYTES: usize = 30;
/// The most bytes of a directory that are read: thousands of names.
const MAX_DIRECTORY: u64 = 1 << 20;
/// Deflate makes at most so much of a byte.
const MOST_INFLATED: u64 = 1032;

/// An archive that is open for reading.
#[derive(Debug)]
pub(crate) struct Archive {
    path: PathBuf,
    entries: Vec<Entry>,
}

/// A file in an archive, as the directory describes it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Bytes stored for it.
    stored: u64,
    deflated: bool,
    crc: u32,
    offset: u64,
}

impl Archive {
    /// Reads the directory of the archive at `path`.
    ///
    /// # Errors
    /// [`DataError::Missing`], or [`DataError::Npz`] when it is no archive, or describes files that
    /// it cannot hold.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        let mut file =
            File::open(path).map_err(DataError::open(path, "name an .npz file that is there"))?;
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => wrong(path, "it is cut short; fetch or copy it again"),
            _ => DataError::Io { path: path.to_path_buf(), doing: "read", source: error },
        };
        let size = file.metadata().map_err(failed)?.len();
        let directory = directory(&mut file, size).map_err(failed)?;
        let (at, bytes) = directory.ok_or_else(|| {
            wrong(path, "it is not a zip archive: name an .npz file, or fetch or copy it again")
        })?;
        let fits = at.checked_add(bytes).is_some_and(|end| end <= size) && bytes <= MAX_DIRECTORY;
        if !fits {
            return Err(wrong(path, "its directory does not lie in it"));
        }
        let mut listed = vec![0; bytes as usize];
        file.seek(SeekFrom::Start(at)).map_err(failed)?;
        file.read_exact(&mut listed).map_err(failed)?;
        let entries = entries(&listed).map_err(|reason| wrong(path, reason))?;
        // Together they are no longer than the archive: no two stand for the same bytes.
        let mut left = size;
        for Entry { name, bytes, stored, deflated, .. } in &entries {
            let most = if *deflated { stored.saturating_mul(MOST_INFLATED) } else { *stored };
            left = left.checked_sub(*stored).filter(|_| *bytes <= most).ok_or_else(|| {
                wrong(path, format!("{name} claims {bytes} bytes, of which {stored} are stored"))
            })?;
        }
        Ok(Self { path: path.to_path_buf(), entries })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The files in it.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Begins to read a file.
    ///
    /// # Errors
    /// When it does not lie where the directory says.
    pub fn read(&self, entry: &Entry) -> Result<Inside, DataError> {
        let failed = DataError::io(&self.path, "read");
        let cut = || wrong(&self.path, format!("{} does not lie in it", entry.name));
        let begin = || -> io::Result<Option<File>> {
            let mut file = File::open(&self.path)?;
            let mut local = [0; LOCAL_BYTES];
            file.seek(SeekFrom::Start(entry.offset))?;
            if file.read_exact(&mut local).is_err() || local[..4] != *MAGIC {
                return Ok(None);
            }
            let names = u64::from(u16_at(&local, 26)) + u64::from(u16_at(&local, 28));
            let Some(start) = entry.offset.checked_add(LOCAL_BYTES as u64 + names) else {
                return Ok(None);
            };
            file.seek(SeekFrom::Start(start))?;
            Ok(Some(file))
        };
        let file = begin().map_err(failed)?.ok_or_else(cut)?;
        let stored = BufReader::new(file.take(entry.stored));
        Ok(Inside {
            file: match entry.deflated {
                true => Stored::Deflated(DeflateDecoder::new(stored)),
                false => Stored::Plain(stored),
            },
            path: self.path.clone(),
            entry: entry.clone(),
            crc: Crc::new(),
            read: 0,
        })
    }
}

/// A file in an archive, read front to back.
pub(crate) struct Inside {
    file: Stored,
    path: PathBuf,
    entry: Entry,
    crc: Crc,
    read: u64,
}

enum Stored {
    Plain(BufReader<io::Take<File>>),
    Deflated(DeflateDecoder<BufReader<io::Take<File>>>),
}

impl Inside {
    /// Fills `out` with the next bytes.
    ///
    /// # Errors
    /// When there are not so many, or they are damaged.
    pub fn read_exact(&mut self, out: &mut [u8]) -> Result<(), DataError> {
        let read = match &mut self.file {
            Stored::Plain(file) => file.read_exact(out),
            Stored::Deflated(file) => file.read_exact(out),
        };
        read.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.wrong("is cut short"),
            _ => self.wrong(&format!("is damaged ({error})")),
        })?;
        self.crc.update(out);
        self.read += out.len() as u64;
        Ok(())
    }

    /// Checks that it ends here, and its checksum.
    ///
    /// # Errors
    /// When it does not.
    pub fn finish(self) -> Result<(), DataError> {
        if self.read != self.entry.bytes {
            return Err(self.wrong("is longer than its array"));
        }
        match self.crc.sum() == self.entry.crc {
            true => Ok(()),
            false => Err(self.wrong("is damaged: its checksum is another")),
        }
    }

    fn wrong(&self, what: &str) -> DataError {
        wrong(&self.path, format!("{} {what}; fetch or copy the file again", self.entry.name))
    }
}

fn wrong(path: &Path, reason: impl Into<String>) -> DataError {
    DataError::Npz { path: path.to_path_buf(), reason: reason.into() }
}

/// Where the directory is and how long; `None` where there is none.
fn directory(file: &mut File, size: u64) -> io::Result<Option<(u64, u64)>> {
    // The end may be followed by a comment of at most 65,535 bytes.
    let tail = size.min(END_BYTES as u64 + u64::from(u16::MAX));
    let start = size - tail;
    let mut bytes = vec![0; tail as usize];
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(&mut bytes)?;
    let Some(last) = bytes.len().checked_sub(END_BYTES) else { return Ok(None) };
    let Some(end) = (0..=last).rev().find(|&at| bytes[at..at + 4] == *END) else {
        return Ok(None);
    };
    let (length, at) = (u32_at(&bytes, end + 12), u32_at(&bytes, end + 16));
    if length != u32::MAX && at != u32::MAX {
        return Ok(Some((at.into(), length.into())));
    }
    // Sizes of 64 bits stand elsewhere; before the end is where.
    let Some(locator) = end.checked_sub(20).filter(|&at| bytes[at..at + 4] == *LOCATOR_64) else {
        return Ok(None);
    };
    let mut record = [0; 56];
    file.seek(SeekFrom::Start(u64_at(&bytes, locator + 8)))?;
    file.read_exact(&mut record)?;
    let known = record[..4] == *END_64;
    Ok(known.then(|| (u64_at(&record, 48), u64_at(&record, 40))))
}

/// The files of a directory.
fn entries(listed: &[u8]) -> Result<Vec<Entry>, String> {
    let cut = || "its directory is cut short".to_owned();
    let mut entries = Vec::new();
    let mut rest = listed;
    while !rest.is_empty() {
        if rest.len() < ENTRY_BYTES || rest[..4] != *ENTRY {
            return Err(cut());
        }
        let [names, extras, comment] = [28, 30, 32].map(|at| usize::from(u16_at(rest, at)));
        let end = ENTRY_BYTES + names + extras + comment;
        if rest.len() < end {
            return Err(cut());
        }
        let name = String::from_utf8_lossy(&rest[ENTRY_BYTES..ENTRY_BYTES + names]).into_owned();
        let extra = &rest[ENTRY_BYTES + names..ENTRY_BYTES + names + extras];
        let mut sizes = [24, 20, 42].map(|at| u64::from(u32_at(rest, at)));
        long_sizes(extra, &mut sizes);
        let [bytes, stored, offset] = sizes;
        if u16_at(rest, 8) & 1 != 0 {
            return Err(format!("{name} is encrypted: save it without a password"));
        }
        let deflated = match u16_at(rest, 10) {
            0 => false,
            8 => true,
            method => {
                return Err(format!(
                    "{name} is compressed in a way that NumPy does not use ({method}): save it \
                     with numpy.savez_compressed"
                ));
            }
        };
        entries.push(Entry { name, bytes, stored, deflated, crc: u32_at(rest, 16), offset });
        rest = &rest[end..];
    }
    Ok(entries)
}

/// Of the sizes that do not fit into 32 bits, those of 64: in this order, and only those.
fn long_sizes(mut extra: &[u8], sizes: &mut [u64; 3]) {
    while extra.len() >= 4 {
        let (tag, length) = (u16_at(extra, 0), usize::from(u16_at(extra, 2)));
        let Some(mut field) = extra.get(4..4 + length) else { return };
        if tag == 1 {
            for size in sizes.iter_mut().filter(|size| **size == u64::from(u32::MAX)) {
                let Some(long) = field.get(..8) else { return };
                *size = u64_at(long, 0);
                field = &field[8..];
            }
        }
        extra = &extra[4 + length..];
    }
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut number = [0; N];
    number.copy_from_slice(&bytes[at..at + N]);
    number
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(number(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(number(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(number(bytes, at))
}
