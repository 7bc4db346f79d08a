//! Atomic writes of files and directories, and file locks.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// Writes a file atomically: under a temporary name, synced to the disk, then renamed to `path`. So
/// `path` is never incomplete, and an earlier file stays until then.
///
/// # Errors
/// When it cannot be written; the temporary file is removed then.
pub fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let temporary = beside(path);
    File::create(&temporary)
        .and_then(|mut file| file.write_all(contents).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path))
        // An incomplete file is useless, and the disk may be full.
        .inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// Renames a finished file or directory, written [`beside`] it, to `path`. The new name is synced
/// to the disk on return, so that it survives a power cut. Sync the contents before.
///
/// # Errors
/// When it cannot be renamed, or `path` is a directory that is not empty.
pub fn put(finished: &Path, path: &Path) -> io::Result<()> {
    fs::rename(finished, path)?;
    sync(folder_of(path))
}

/// Renames as [`put`], but never replaces anything: if two programs use the same name, one fails.
///
/// # Errors
/// When it cannot be renamed, or `path` exists; it keeps its old name then.
pub fn put_new(finished: &Path, path: &Path) -> io::Result<()> {
    match renameat_with(CWD, finished, CWD, path, RenameFlags::NOREPLACE) {
        // The file system or the kernel does not support this rename.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => rename_new(finished, path)?,
        renamed => renamed?,
    }
    sync(folder_of(path))
}

/// Renames a directory as [`put`], and atomically replaces an existing directory, which is removed.
///
/// # Errors
/// When it cannot be renamed.
pub fn put_folder(finished: &Path, path: &Path) -> io::Result<()> {
    if path.symlink_metadata().is_err() {
        return put(finished, path);
    }
    match renameat_with(CWD, finished, CWD, path, RenameFlags::EXCHANGE) {
        // The file system or the kernel cannot exchange names.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            fs::remove_dir_all(path)?;
            return put(finished, path);
        }
        renamed => renamed?,
    }
    sync(folder_of(path))?;
    fs::remove_dir_all(finished)
}

/// Renames without kernel support. A file gets its name by a hard link, which fails if the name
/// exists. Without hard links, and for a directory, it only checks whether `path` exists.
fn rename_new(finished: &Path, path: &Path) -> io::Result<()> {
    if finished.is_file() {
        match fs::hard_link(finished, path) {
            Ok(()) => return fs::remove_file(finished),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) => {}
        }
    }
    if path.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(finished, path)
}

/// Syncs a file's contents, or a directory's names, to the disk.
///
/// # Errors
/// When it cannot be opened or written.
pub fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// The parent directory of `path`.
fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Checks that [`replace`] could write a file at `path`, before the work that fills it.
///
/// # Errors
/// When it could not write it.
pub fn check_writable(path: &Path) -> io::Result<()> {
    let temporary = beside(path);
    File::create(&temporary).and_then(|_| fs::remove_file(&temporary))
}

/// The temporary path of a file before it is renamed to `path`: hidden, and unique to this process.
pub fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}

/// Time that [`lock`] waits for a call of [`is_locked`], which holds the lock for an instant.
const CHECK_TIME: Duration = Duration::from_millis(200);

/// Locks a file, until it is dropped or the process ends. Waits for calls of [`is_locked`].
///
/// # Errors
/// `WouldBlock` when another process has the lock, `Error` when the file system does not support
/// locks.
pub fn lock(file: &File) -> Result<(), TryLockError> {
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if started.elapsed() < CHECK_TIME => {
                std::thread::sleep(CHECK_TIME / 20);
            }
            locked => return locked,
        }
    }
}

/// Whether a process has locked the file at `path`. False if the file system does not support
/// locks, or the file cannot be opened.
pub fn is_locked(path: &Path) -> bool {
    let file = File::open(path);
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finished_folder_gets_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("step-7"), folder.path().join("step-8"));
        for path in [&path, &other] {
            let temporary = beside(path);
            fs::create_dir(&temporary).unwrap();
            fs::write(temporary.join("state.json"), b"{}").unwrap();
            put(&temporary, path).unwrap();
            assert!(path.join("state.json").is_file() && !temporary.exists());
        }
        assert!(put(&other, &path).is_err(), "the existing one is kept");
        assert!(put(&folder.path().join("none"), &path).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_directory_replaces_another_atomically() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("step-7");
        for contents in ["first", "second"] {
            let temporary = beside(&path);
            fs::create_dir(&temporary).unwrap();
            fs::write(temporary.join("state.json"), contents).unwrap();
            put_folder(&temporary, &path).unwrap();
            assert_eq!(fs::read_to_string(path.join("state.json")).unwrap(), contents);
            assert!(!temporary.exists());
        }
        assert!(put_folder(&folder.path().join("none"), &path).is_err());
        assert!(path.join("state.json").is_file(), "the existing one is kept");
    }

    #[track_caller]
    fn check_new(put: fn(&Path, &Path) -> io::Result<()>) {
        let folder = tempfile::tempdir().unwrap();
        let (finished, path) = (folder.path().join(".a"), folder.path().join("a"));
        let contents = |path: &Path| fs::read_to_string(path).unwrap();
        fs::write(&finished, "first").unwrap();
        put(&finished, &path).unwrap();
        assert_eq!((contents(&path), finished.exists()), ("first".into(), false));
        // Both files keep their names.
        fs::write(&finished, "second").unwrap();
        let refused = put(&finished, &path).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!([contents(&path), contents(&finished)], ["first", "second"]);
        // A directory does not even replace an empty one.
        let (finished, path) = (folder.path().join(".b"), folder.path().join("b"));
        fs::create_dir(&finished).unwrap();
        put(&finished, &path).unwrap();
        fs::create_dir(&finished).unwrap();
        let refused = put(&finished, &path).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert!(finished.is_dir() && put(&folder.path().join("none"), &finished).is_err());
    }

    #[test]
    fn a_new_name_replaces_nothing() {
        check_new(put_new);
        check_new(rename_new);
    }

    #[test]
    fn one_process_locks_a_file_and_waits_for_checks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".lock");
        assert!(!is_locked(&path), "it does not exist");
        let open = || File::create(&path).unwrap();
        let (first, second) = (open(), open());
        lock(&first).unwrap();
        assert!(is_locked(&path));
        assert!(matches!(lock(&second), Err(TryLockError::WouldBlock)));
        drop(first);
        assert!(!is_locked(&path));
        let checking = open();
        checking.try_lock_shared().unwrap();
        let checker = std::thread::spawn(move || {
            std::thread::sleep(CHECK_TIME / 4);
            drop(checking);
        });
        lock(&second).unwrap();
        checker.join().unwrap();
    }

    #[test]
    fn a_file_is_complete_or_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        replace(&path, b"first").unwrap();
        replace(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        check_writable(&path).unwrap();
        // A directory blocks the name.
        let folder_in_the_way = folder.path().join("b");
        fs::create_dir(&folder_in_the_way).unwrap();
        assert!(replace(&folder_in_the_way, b"third").is_err());
        assert!(replace(&path.join("below"), b"third").is_err());
        assert!(check_writable(&path.join("below")).is_err());
        let names = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 2, "no temporary file is left");
    }
}
