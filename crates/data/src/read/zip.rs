//! [`Archive`]: the files in a zip archive, as NumPy's `savez` writes one.
//!
//! Stored and deflated files are read. Claims of the archive's directory are checked before any
//! file is read, so that a small archive cannot stand for much memory.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

use crate::error::{DataError, Fault};

/// The first bytes of a zip archive.
pub(crate) const MAGIC: &[u8; 4] = b"PK\x03\x04";
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
    /// Bytes stored for it, and where they begin.
    stored: u64,
    offset: u64,
    deflated: bool,
    crc: u32,
}

impl Archive {
    /// Reads the directory of the archive at `path`.
    ///
    /// # Errors
    /// [`DataError::Missing`], or `Fault::Npz` if it is not an archive, or describes files
    /// that it cannot hold.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        let file =
            File::open(path).map_err(DataError::open(path, "name an .npz file that is there"))?;
        let size = file.metadata().map_err(DataError::io(path, "read"))?.len();
        let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| {
            let way_out = "name an .npz file, or fetch or copy it again";
            wrong(path, format!("it is not a zip archive ({error}): {way_out}"))
        })?;
        let mut entries = Vec::with_capacity(archive.len());
        // Together they are no longer than the archive: no two stand for the same bytes.
        let mut left = size;
        for at in 0..archive.len() {
            let name = archive.name_for_index(at).map_or_else(String::new, |name| match name {
                Ok(name) => name.into_owned(),
                Err(_) => format!("file {at}"),
            });
            let file = archive
                .by_index_raw(at)
                .map_err(|error| wrong(path, format!("{name} does not lie in it ({error})")))?;
            if file.encrypted() {
                return Err(wrong(
                    path,
                    format!("{name} is encrypted: save it without a password"),
                ));
            }
            let deflated = match file.compression() {
                CompressionMethod::Stored => false,
                CompressionMethod::Deflated => true,
                method => {
                    return Err(wrong(
                        path,
                        format!(
                            "{name} is compressed in a way that NumPy does not use ({method}): \
                             save it with numpy.savez_compressed"
                        ),
                    ));
                }
            };
            let (bytes, stored) = (file.size(), file.compressed_size());
            let most = if deflated { stored.saturating_mul(MOST_INFLATED) } else { stored };
            left = left.checked_sub(stored).filter(|_| bytes <= most).ok_or_else(|| {
                wrong(path, format!("{name} claims {bytes} bytes where {stored} are stored"))
            })?;
            let offset = file.data_start().unwrap_or(size);
            entries.push(Entry { name, bytes, stored, offset, deflated, crc: file.crc32() });
        }
        Ok(Self { path: path.to_path_buf(), entries })
    }

    /// The location.
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
    /// When the archive cannot be opened again.
    pub fn read(&self, entry: &Entry) -> Result<Inside, DataError> {
        let failed = DataError::io(&self.path, "read");
        let begin = |mut file: File| {
            file.seek(SeekFrom::Start(entry.offset))?;
            Ok(BufReader::new(file.take(entry.stored)))
        };
        let stored = File::open(&self.path).and_then(begin).map_err(failed)?;
        Ok(Inside {
            file: match entry.deflated {
                true => Box::new(DeflateDecoder::new(stored)),
                false => Box::new(stored),
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
    file: Box<dyn Read>,
    path: PathBuf,
    entry: Entry,
    crc: Crc,
    read: u64,
}

impl Inside {
    /// Fills `out` with the next bytes.
    ///
    /// # Errors
    /// When there are not so many, or they are damaged.
    pub fn read_exact(&mut self, out: &mut [u8]) -> Result<(), DataError> {
        self.file.read_exact(out).map_err(|error| match error.kind() {
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
    Fault::Npz(reason.into()).at(path)
}
