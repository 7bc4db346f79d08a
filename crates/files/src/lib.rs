//! Files that are there as a whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a file under another name, waits until the disk has it, then renames it to `path`. So
/// `path` is never half a file, and what was there before stays until then.
///
/// # Errors
/// When it cannot be written; then nothing of it is left.
pub fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let beside = beside(path);
    File::create(&beside)
        .and_then(|mut file| file.write_all(contents).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&beside, path))
        // Half a file is of no use, and takes room where there may be none.
        .inspect_err(|_| drop(fs::remove_file(&beside)))
}

/// Whether [`replace`] could write a file at `path`: to be known before the work that fills it.
///
/// # Errors
/// When it could not.
pub fn check_writable(path: &Path) -> io::Result<()> {
    let beside = beside(path);
    File::create(&beside).and_then(|_| fs::remove_file(&beside))
}

/// Where a file is written before it is renamed to `path`: hidden, and of this process alone.
pub fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_or_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        replace(&path, b"first").unwrap();
        replace(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        check_writable(&path).unwrap();
        // A folder in the way: nothing can take its name.
        let folder_in_the_way = folder.path().join("b");
        fs::create_dir(&folder_in_the_way).unwrap();
        assert!(replace(&folder_in_the_way, b"third").is_err());
        assert!(replace(&path.join("below"), b"third").is_err());
        assert!(check_writable(&path.join("below")).is_err());
        let names = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 2, "nothing half-written is left");
    }
}
