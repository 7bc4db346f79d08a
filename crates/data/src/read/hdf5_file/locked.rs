//! Opening a file that another program may hold.
//!
//! HDF5 locks a file as long as it is open, and gives the lock back by closing it. A program that
//! starts another one while it writes lends the lock to the child for the moment between `fork`
//! and `exec`: the file is finished and closed, and still locked. So a lock is waited for a little
//! before it is an error.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hdf5::{File, MinorErrorCode};

use crate::error::DataError;

/// How long a lock is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Opens `path` for reading.
///
/// # Errors
/// [`DataError::Locked`], [`DataError::NotHdf5`], or [`DataError::Hdf5`].
pub(super) fn open(path: &Path) -> Result<File, DataError> {
    let until = Instant::now() + PATIENCE;
    loop {
        let path = path.to_path_buf();
        match File::open(&path) {
            Ok(file) => return Ok(file),
            Err(error) if error.contains_minor(MinorErrorCode::CantLockFile) => {
                if Instant::now() > until {
                    return Err(DataError::Locked { path });
                }
            }
            Err(error) if error.contains_minor(MinorErrorCode::NotHdf5) => {
                return Err(DataError::NotHdf5 { path });
            }
            Err(error) => {
                let (what, reason) = ("it".into(), error.to_string());
                return Err(DataError::Hdf5 { path, what, reason });
            }
        }
        sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::thread::spawn;

    use super::*;
    use crate::read::hdf5_file::Hdf5File;

    #[test]
    fn a_lock_is_waited_for_and_then_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.hdf5");
        let writer = File::create(&path).unwrap();
        writer.new_dataset_builder().with_data(&[1.0, 2.0]).create("rewards").unwrap();
        // The library does not open a file anew that this process has open, so the lock is held
        // as another process would hold it: by a descriptor of its own.
        drop(writer);
        let held = std::fs::File::open(&path).unwrap();
        held.lock().unwrap();
        let error = Hdf5File::open(&path).unwrap_err();
        assert!(matches!(error, DataError::Locked { .. }), "{error}");
        assert!(error.to_string().contains("another program is writing"), "{error}");
        let opened = spawn(move || Hdf5File::open(&path).map(|file| file.has("rewards")));
        sleep(3 * PAUSE);
        held.unlock().unwrap();
        assert!(opened.join().unwrap().unwrap());
    }
}
