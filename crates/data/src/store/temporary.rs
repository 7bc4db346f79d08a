//! Files under temporary names, renamed when they are complete; and leftovers of killed processes.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::DataError;

/// Prefix and suffix of temporary files.
const TEMPORARY: (&str, &str) = (".frames-", ".partial");

/// A file under a name no other process uses, locked while it is written; removed unless
/// renamed.
pub(super) struct Temporary {
    pub(super) path: PathBuf,
    pub(super) file: File,
}

impl Temporary {
    pub(super) fn create(folder: &Path) -> Result<Self, DataError> {
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

    pub(super) fn rename(self, to: &Path) -> Result<(), DataError> {
        overtone_files::put(&self.path, to).map_err(DataError::io(to, "put in place"))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Gone after a rename; the next conversion removes any other leftover.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes leftovers of killed conversions from `folder`.
pub(super) fn remove_leftovers(folder: &Path) -> Result<(), DataError> {
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
