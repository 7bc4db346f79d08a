//! Files that are there as a whole or not at all, and files that one process holds.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

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

/// Gives a finished file or folder, written [`beside`] it, the name `path`. The disk has the new
/// name when this returns, so that it survives a power cut; what is in it must be there before.
///
/// # Errors
/// When it cannot be renamed, or `path` is a folder with something in it.
pub fn put(finished: &Path, path: &Path) -> io::Result<()> {
    fs::rename(finished, path)?;
    sync(folder_of(path))
}

/// As [`put`], but never in the place of anything: of two programs that give something the same
/// name, one fails.
///
/// # Errors
/// When it cannot be renamed, or something is at `path`; then it has its old name.
pub fn put_new(finished: &Path, path: &Path) -> io::Result<()> {
    match renameat_with(CWD, finished, CWD, path, RenameFlags::NOREPLACE) {
        // The file system, or the system itself, cannot rename so.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => rename_new(finished, path)?,
        renamed => renamed?,
    }
    sync(folder_of(path))
}

/// As [`put`], for a folder, also in the place of another folder: `path` is one of the two at any
/// time. The earlier one is removed.
///
/// # Errors
/// When it cannot be renamed.
pub fn put_folder(finished: &Path, path: &Path) -> io::Result<()> {
    if path.symlink_metadata().is_err() {
        return put(finished, path);
    }
    match renameat_with(CWD, finished, CWD, path, RenameFlags::EXCHANGE) {
        // The file system, or the system itself, cannot exchange names.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            fs::remove_dir_all(path)?;
            return put(finished, path);
        }
        renamed => renamed?,
    }
    sync(folder_of(path))?;
    fs::remove_dir_all(finished)
}

/// Renames without the system's help. A file gets its name as a second one, which no two files
/// have; where it cannot have two, and of a folder, it is only looked whether something is there.
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

/// Waits until the disk has what is in a file, or the names in a folder.
///
/// # Errors
/// When it cannot be opened or written.
pub fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// The folder that `path` is in.
fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
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

/// How long [`lock`] waits for whoever asks [`is_locked`], which holds the file for an instant.
const LOOKED_AT: Duration = Duration::from_millis(200);

/// Locks a file, until it is dropped or the process ends. Whoever only looks whether it is locked
/// is waited for.
///
/// # Errors
/// `WouldBlock` when another process has it locked, `Error` when the file system has no locks.
pub fn lock(file: &File) -> Result<(), TryLockError> {
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if started.elapsed() < LOOKED_AT => {
                std::thread::sleep(LOOKED_AT / 20);
            }
            locked => return locked,
        }
    }
}

/// Whether a process has the file at `path` locked. Where the file system has no locks, or the
/// file cannot be opened, none has.
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
            let beside = beside(path);
            fs::create_dir(&beside).unwrap();
            fs::write(beside.join("state.json"), b"{}").unwrap();
            put(&beside, path).unwrap();
            assert!(path.join("state.json").is_file() && !beside.exists());
        }
        assert!(put(&other, &path).is_err(), "what is there is not lost");
        assert!(put(&folder.path().join("none"), &path).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_folder_takes_the_place_of_another_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("step-7");
        for contents in ["first", "second"] {
            let beside = beside(&path);
            fs::create_dir(&beside).unwrap();
            fs::write(beside.join("state.json"), contents).unwrap();
            put_folder(&beside, &path).unwrap();
            assert_eq!(fs::read_to_string(path.join("state.json")).unwrap(), contents);
            assert!(!beside.exists());
        }
        assert!(put_folder(&folder.path().join("none"), &path).is_err());
        assert!(path.join("state.json").is_file(), "what is there stays");
    }

    #[track_caller]
    fn check_new(put: fn(&Path, &Path) -> io::Result<()>) {
        let folder = tempfile::tempdir().unwrap();
        let (finished, path) = (folder.path().join(".a"), folder.path().join("a"));
        let contents = |path: &Path| fs::read_to_string(path).unwrap();
        fs::write(&finished, "first").unwrap();
        put(&finished, &path).unwrap();
        assert_eq!((contents(&path), finished.exists()), ("first".into(), false));
        // What is there stays, and so does what was to take its place.
        fs::write(&finished, "second").unwrap();
        let refused = put(&finished, &path).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!([contents(&path), contents(&finished)], ["first", "second"]);
        // A folder takes not even the place of an empty one.
        let (finished, path) = (folder.path().join(".b"), folder.path().join("b"));
        fs::create_dir(&finished).unwrap();
        put(&finished, &path).unwrap();
        fs::create_dir(&finished).unwrap();
        let refused = put(&finished, &path).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert!(finished.is_dir() && put(&folder.path().join("none"), &finished).is_err());
    }

    #[test]
    fn what_is_new_takes_the_place_of_nothing() {
        check_new(put_new);
        check_new(rename_new);
    }

    #[test]
    fn one_holds_a_file_and_who_looks_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".lock");
        assert!(!is_locked(&path), "it is not there");
        let open = || File::create(&path).unwrap();
        let (first, second) = (open(), open());
        lock(&first).unwrap();
        assert!(is_locked(&path));
        assert!(matches!(lock(&second), Err(TryLockError::WouldBlock)));
        drop(first);
        assert!(!is_locked(&path));
        let looked_at = open();
        looked_at.try_lock_shared().unwrap();
        let looking = std::thread::spawn(move || {
            std::thread::sleep(LOOKED_AT / 4);
            drop(looked_at);
        });
        lock(&second).unwrap();
        looking.join().unwrap();
    }

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
