//! A file that is not whole yet, under a name of its own and for one process alone.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crc32c::crc32c_append;
use sha2::{Digest, Sha256};

use crate::disk::free_near;
use crate::download::DownloadError;
use crate::hex::hex;

/// Bytes hashed at a time.
const CHUNK: usize = 1 << 20;
/// The suffix of an incomplete file.
const ENDING: &str = ".partial";

/// The identifier of a version of a remote file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    /// The server's `ETag`, else its `Last-Modified`.
    pub tag: String,
    /// The whole file's size, if the server sends it.
    pub total: Option<u64>,
}

impl Version {
    /// Whether both may be the same version: a size that is not known agrees with any.
    pub fn agrees(&self, other: &Self) -> bool {
        let sizes = self.total.zip(other.total);
        self.tag == other.tag && sizes.is_none_or(|(one, another)| one == another)
    }

    /// Reads what [`Version`]'s `Display` wrote: the tag's line and, if known, the size's.
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let tag = lines.next()?;
        let total = lines.next().map(|size| size.parse().ok()).map_or(Some(None), |n| n.map(Some));
        let usable = !tag.is_empty() && tag.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if !usable || lines.next().is_some() {
            return None;
        }
        Some(Self { tag: tag.to_owned(), total: total? })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tag)?;
        self.total.map_or(Ok(()), |total| write!(f, "\n{total}"))
    }
}

/// `<name>.partial`, locked as long as this is there.
pub(super) struct Partial {
    /// The final path.
    whole: PathBuf,
    path: PathBuf,
    file: File,
    /// Bytes that it has; the cursor is at their end.
    pub bytes: u64,
}

impl Partial {
    /// Opens what there is of `whole` or begins it; `None` where `whole` is there.
    ///
    /// # Errors
    /// [`DownloadError::Busy`] when another process has it, or it cannot be written.
    pub fn open(whole: &Path) -> Result<Option<Self>, DownloadError> {
        let path = path_of(whole);
        if let Some(folder) = whole.parent() {
            fs::create_dir_all(folder).map_err(DownloadError::io(folder, "make"))?;
        }
        let open =
            || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = open().map_err(DownloadError::io(&path, "open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(DownloadError::Busy(whole.to_path_buf()));
            }
            Err(TryLockError::Error(error)) => {
                return Err(DownloadError::io(&path, "lock")(error));
            }
        }
        // Between opening and locking, another process may have made the file whole and given
        // it its name: then this is that file, or nothing has the name any more.
        let named = fs::metadata(&path).map(|named| named.ino());
        let opened = file.metadata().map(|opened| opened.ino());
        let same = matches!((named, opened), (Ok(named), Ok(opened)) if named == opened);
        if whole.exists() {
            if same {
                fs::remove_file(&path).map_err(DownloadError::io(&path, "delete"))?;
                remove_tag(whole)?;
            }
            return Ok(None);
        }
        if !same {
            return Err(DownloadError::Busy(whole.to_path_buf()));
        }
        let bytes = file.seek(SeekFrom::End(0)).map_err(DownloadError::io(&path, "read"))?;
        Ok(Some(Self { whole: whole.to_path_buf(), path, file, bytes }))
    }

    /// The final path.
    pub fn whole(&self) -> &Path {
        &self.whole
    }

    /// The version of the remote file that this is of, if known.
    pub fn version(&self) -> Option<Version> {
        Version::parse(&fs::read_to_string(tag_of(&self.whole)).ok()?)
    }

    /// Notes which version this is of; before any of its bytes.
    pub fn set_version(&self, version: Option<&Version>) -> Result<(), DownloadError> {
        let path = tag_of(&self.whole);
        let text = version.map(ToString::to_string).unwrap_or_default();
        fs::write(&path, text).map_err(DownloadError::io(&path, "write"))
    }

    /// Bytes free on its disk.
    pub fn free(&self) -> Result<u64, DownloadError> {
        Ok(free_near(&self.path)?.map_or(u64::MAX, |(_, free)| free))
    }

    /// Adds bytes at the end.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), DownloadError> {
        self.file.write_all(bytes).map_err(DownloadError::io(&self.path, "write"))?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Drops all bytes.
    pub fn clear(&mut self) -> Result<(), DownloadError> {
        self.file
            .set_len(0)
            .and_then(|()| self.file.seek(SeekFrom::Start(0)))
            .map_err(DownloadError::io(&self.path, "empty"))?;
        self.bytes = 0;
        Ok(())
    }

    /// SHA-256 of all bytes.
    pub fn sha256(&mut self) -> Result<String, DownloadError> {
        let mut hash = Sha256::new();
        self.read(&mut |bytes| hash.update(bytes))?;
        Ok(hex(&hash.finalize()))
    }

    /// CRC-32C of all bytes.
    pub fn crc32c(&mut self) -> Result<u32, DownloadError> {
        let mut sum = 0;
        self.read(&mut |bytes| sum = crc32c_append(sum, bytes))?;
        Ok(sum)
    }

    /// Gives all bytes to `each`, in parts.
    fn read(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<(), DownloadError> {
        let mut read = || -> io::Result<()> {
            self.file.seek(SeekFrom::Start(0))?;
            let mut chunk = vec![0; CHUNK];
            loop {
                match self.file.read(&mut chunk)? {
                    0 => return Ok(()),
                    n => each(&chunk[..n]),
                }
            }
        };
        read().map_err(DownloadError::io(&self.path, "read"))
    }

    /// The first bytes, at most `most`.
    pub fn head(&mut self, most: usize) -> Result<Vec<u8>, DownloadError> {
        let mut bytes = Vec::with_capacity(most);
        self.file
            .seek(SeekFrom::Start(0))
            .and_then(|_| (&self.file).take(most as u64).read_to_end(&mut bytes))
            .map_err(DownloadError::io(&self.path, "read"))?;
        Ok(bytes)
    }

    /// Gives the file its name; it is on the disk before that.
    pub fn finish(self) -> Result<(), DownloadError> {
        self.file.sync_all().map_err(DownloadError::io(&self.path, "write"))?;
        overtone_files::put(&self.path, &self.whole)
            .map_err(DownloadError::io(&self.whole, "name"))?;
        remove_tag(&self.whole)
    }

    /// Deletes what there is.
    pub fn delete(self) -> Result<(), DownloadError> {
        fs::remove_file(&self.path).map_err(DownloadError::io(&self.path, "delete"))?;
        remove_tag(&self.whole)
    }
}

/// Begins `whole` if nothing of it is there, so that it can be seen that it is to come.
pub(super) fn begin(whole: &Path) -> Result<(), DownloadError> {
    let path = path_of(whole);
    if let Some(folder) = whole.parent() {
        fs::create_dir_all(folder).map_err(DownloadError::io(folder, "make"))?;
    }
    let file = OpenOptions::new().append(true).create(true).open(&path);
    file.map(drop).map_err(DownloadError::io(&path, "open"))
}

/// The first incomplete file of the future file `whole`, or of a folder of files.
pub(crate) fn unfinished(whole: &Path) -> Option<PathBuf> {
    if !whole.exists() && path_of(whole).exists() {
        return Some(whole.to_path_buf());
    }
    // The folders of a log of frames and of Minari's files.
    let folders = [whole.to_path_buf(), whole.join("replay_logs"), whole.join("data")];
    folders.iter().find_map(|folder| unfinished_in(folder).into_iter().next())
}

/// The incomplete files in `folder`, by their final names, sorted.
fn unfinished_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let whole = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_suffix(ENDING)?.to_owned();
        Some(path.with_file_name(name)).filter(|whole| !whole.exists())
    };
    let mut files: Vec<_> = entries.filter_map(|entry| whole(entry.path())).collect();
    files.sort();
    files
}

/// The path of the fetched part of `whole`.
pub(super) fn path_of(whole: &Path) -> PathBuf {
    with_end(whole, ENDING)
}

fn tag_of(whole: &Path) -> PathBuf {
    with_end(whole, ".partial.tag")
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn remove_tag(whole: &Path) -> Result<(), DownloadError> {
    let path = tag_of(whole);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(DownloadError::io(&path, "delete")(error))
        }
        _ => Ok(()),
    }
}
