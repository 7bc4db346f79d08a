//! How much room there is where something is to be written.

use std::path::{Path, PathBuf};

use crate::error::DataError;

/// Disk space that stays free in addition to the written files.
pub(crate) const SPARE: u64 = 64_000_000;

/// The nearest folder above `path` that exists, which is on the disk `path` will be on, and
/// the bytes free there; `None` where no folder above exists.
///
/// # Errors
/// If the free disk space cannot be read.
pub(crate) fn free_near(path: &Path) -> Result<Option<(PathBuf, u64)>, DataError> {
    let Some(folder) = path.ancestors().skip(1).find(|folder| folder.is_dir()) else {
        return Ok(None);
    };
    let disk = rustix::fs::statvfs(folder)
        .map_err(|error| DataError::io(folder, "measure the free space of")(error.into()))?;
    Ok(Some((folder.to_path_buf(), disk.f_bavail.saturating_mul(disk.f_frsize))))
}
