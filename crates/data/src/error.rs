//! [`DataError`]: all errors of a dataset on disk.
//!
//! Each message is one sentence that names the file and says what to do.

pub(crate) mod advice;

use std::io;
use std::path::{Path, PathBuf};

use overtone_core::counted;
use overtone_core::names::{nearest, suggestion};

/// An error in a dataset, in its files, or in a request for them.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// An error in a file or a folder.
    #[error("{}: {fault}", path.display())]
    At {
        /// The file or folder.
        path: PathBuf,
        /// The defect.
        fault: Fault,
    },
    /// A file or folder that should be there is not.
    #[error("{} does not exist: {hint}", path.display())]
    Missing {
        /// The expected path.
        path: PathBuf,
        /// Advice to the user.
        hint: String,
    },
    /// A name that is not a valid id of Minari's hub.
    #[error("{0} is not a Minari dataset id: write it as minari:mujoco/hopper/medium-v0")]
    MinariId(String),
    /// The operating system refused.
    #[error("{}: cannot {doing} it ({source})", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The attempted operation, as a verb.
        doing: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// A finished file that cannot be renamed to its final name.
    #[error(
        "{}: cannot be given its name ({source}); the complete file is {}: \
         rename it",
        path.display(), kept.display()
    )]
    Unnamed {
        /// The name.
        path: PathBuf,
        /// The name it has.
        kept: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A kind of data that no description knows.
    #[error("unknown {what} `{name}`{}", suggestion(nearest.as_deref(), known))]
    UnknownName {
        /// The kind of name: `dataset`.
        what: &'static str,
        /// The requested name.
        name: String,
        /// The known name that was most likely meant, if any is like it.
        nearest: Option<String>,
        /// All known names.
        known: String,
    },
    /// Requested batches that a dataset cannot provide.
    #[error("{0}")]
    Sampling(String),
    /// Work that the caller stopped before it was done.
    #[error("stopped")]
    Stopped,
    /// The thread that assembles batches died.
    #[error("the thread that assembles batches stopped: {0}")]
    Loader(String),
}

/// A defect of a file or a folder, or of a request for it.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A dataset with an unfinished download.
    #[error(
        "its download is not finished; run the same download command again, or delete \
         the .partial files next to it to use the rest"
    )]
    Unfinished,
    /// A folder that holds no recording, or more than one.
    #[error("{0}")]
    NoLog(String),
    /// The gzip stream ends before the array does.
    #[error(
        "the file is cut short, its array ends after {got} of {expected} bytes; fetch or \
         copy it again"
    )]
    Truncated {
        /// Bytes of the array that arrived.
        got: u64,
        /// Bytes its header promises.
        expected: u64,
    },
    /// The gzip stream is damaged.
    #[error("not a sound gzip file ({0}); fetch or copy it again")]
    Gzip(String),
    /// The array's header is not one this reader accepts.
    #[error("not a usable .npy array: {0}")]
    NpyHeader(String),
    /// A pickled (object) array: reading it would run code from the file.
    #[error(
        "{array} holds pickled Python objects (dtype {dtype}), which are refused because unpickling \
         runs code from the file; save numbers: `numpy.stack(array).astype(\"float32\")`"
    )]
    Pickled {
        /// The array's name in backticks, or `it`.
        array: String,
        /// The dtype as written.
        dtype: String,
    },
    /// The array has another element type.
    #[error(
        "has dtype {got}, expected {expected} in a DQN-replay log; save it as that, or save a \
         recording of your own as .npz"
    )]
    Dtype {
        /// The dtype as written.
        got: String,
        /// The dtype needed.
        expected: &'static str,
    },
    /// The array has another shape.
    #[error(
        "has shape {got:?}, expected {expected} in a DQN-replay log; use the files of one run, \
         or save a recording of your own as .npz"
    )]
    Shape {
        /// The shape as written.
        got: Vec<usize>,
        /// The shape needed.
        expected: String,
    },
    /// Bytes follow the array.
    #[error("bytes follow the end of the array; fetch or copy it again")]
    TrailingData,
    /// A value that a log cannot hold.
    #[error("slot {slot} holds {what}; the file is damaged or of another kind")]
    Value {
        /// Position in the array.
        slot: usize,
        /// The value, and what was expected.
        what: String,
    },
    /// Files of one run that cannot belong together.
    #[error("{0}")]
    Inconsistent(String),
    /// Not an HDF5 file.
    #[error(
        "not an HDF5 file, as D4RL's and Minari's are; name another, or fetch or copy it again"
    )]
    NotHdf5,
    /// A file whose first bytes belong to no format that is read.
    #[error("{}; {}", advice::UNKNOWN_FORMAT, advice::GIVE_ARRAYS_OR_TABLE)]
    UnknownFormat,
    /// An HDF5 file that cannot be locked for reading.
    #[error("another program is writing this file; wait until that is done")]
    Locked,
    /// An HDF5 file whose writer has not closed it.
    #[error("it is marked as open for writing; {}", advice::LEFT_OPEN)]
    LeftOpen,
    /// Not an `.npz` file, or one that is damaged.
    #[error("not a usable .npz file, {0}")]
    Npz(String),
    /// Not a `.npy` file of numbers, or one that is damaged.
    #[error("not a usable .npy file of numbers: {0}")]
    Npy(String),
    /// A recording in a form that is not supported, with advice.
    #[error("{what} is not read: {way_out}")]
    Unread {
        /// The unreadable part.
        what: String,
        /// Advice to the user.
        way_out: String,
    },
    /// The HDF5 library cannot write a file.
    #[error("cannot be written ({0}); is the disk full?")]
    Unwritten(String),
    /// The HDF5 library cannot read a file or an array in it.
    #[error("{what} cannot be read ({reason}); fetch or copy the file again")]
    Hdf5 {
        /// The unreadable part.
        what: String,
        /// The library's message.
        reason: String,
    },
    /// A D4RL file of a version that does not say where a step limit ended an episode.
    #[error(
        "has no `timeouts`: without it, episodes that a step limit ended run into \
         one another; use version 2 or later of a D4RL file (…-v2.hdf5), or add `timeouts` to \
         a file of your own, all zeros if no step limit ended an episode"
    )]
    NoTimeouts,
    /// An HDF5 file without an array that is needed.
    #[error("has no `{dataset}`: {hint}; {way_out}")]
    MissingDataset {
        /// The array's name in the file.
        dataset: String,
        /// A hint: what the file has instead.
        hint: String,
        /// Advice to the user.
        way_out: String,
    },
    /// An array in an HDF5 file with elements of another type.
    #[error(
        "`{dataset}` holds {got}, expected {expected}; {}",
        advice::of_type(dataset, got, expected)
    )]
    DatasetType {
        /// The array's name in the file.
        dataset: String,
        /// The element type in the file.
        got: String,
        /// The element type that the reader accepts.
        expected: &'static str,
    },
    /// An array in an HDF5 file of another shape.
    #[error(
        "`{dataset}` has shape {got:?}, expected {expected}; {}",
        advice::of_shape(dataset, got, expected)
    )]
    DatasetShape {
        /// The array's name in the file.
        dataset: String,
        /// The shape as written.
        got: Vec<usize>,
        /// The shape needed.
        expected: String,
    },
    /// Two arrays in an HDF5 file that do not belong together.
    #[error("`{dataset}` has {}, expected {expected} because of `{other}`; {way_out}",
        counted(*got, "row"))]
    DatasetLength {
        /// The array's name in the file.
        dataset: String,
        /// Its rows.
        got: usize,
        /// The rows it should have.
        expected: usize,
        /// The array that sets this number.
        other: String,
        /// Advice to the user.
        way_out: String,
    },
    /// An array in an HDF5 file whose header claims far more than is stored.
    #[error(
        "`{dataset}` claims {claimed} bytes where {stored} are stored; fetch or copy the file \
         again"
    )]
    DatasetClaim {
        /// The array's name in the file.
        dataset: String,
        /// Bytes its shape and type make.
        claimed: u64,
        /// Bytes in the file.
        stored: u64,
    },
    /// A value in an HDF5 file that a log cannot hold.
    #[error("`{dataset}` holds in row {row} {what}")]
    DatasetValue {
        /// The array's name in the file.
        dataset: String,
        /// The row, from 0.
        row: usize,
        /// The value, and what was expected.
        what: String,
    },
    /// A Minari file with another number of episodes than it should have.
    #[error(
        "expected {total} episodes, got {}; {}",
        advice::episodes(*found, missing.as_deref()), advice::of_episodes(missing.as_deref())
    )]
    MissingEpisodes {
        /// `total_episodes` of the file, or else one more than the last number.
        total: i64,
        /// Episodes that are there.
        found: usize,
        /// The name of the first that is missing, if there are too few.
        missing: Option<String>,
    },
    /// A selection that leaves no transition.
    #[error("the selection leaves nothing to train on ({0})")]
    NothingSelected(String),
    /// The disk cannot hold what a conversion would write.
    #[error(
        "the converted dataset needs {} MB and the disk has {} MB free; free some space, \
         select fewer transitions, or put the cache on another disk", needed.div_ceil(1_000_000), free / 1_000_000
    )]
    DiskFull {
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// A converted store that is damaged or of another version.
    #[error("not a usable frame store, {0}; delete it, and the program makes it again")]
    Store(String),
    /// A dataset's description that cannot be read.
    #[error("not a usable dataset description ({0})")]
    Card(String),
}

impl Fault {
    /// The error for this defect of the file or folder at `path`.
    pub(crate) fn at(self, path: impl Into<PathBuf>) -> DataError {
        DataError::At { path: path.into(), fault: self }
    }
}

impl DataError {
    /// Wraps an I/O error with the path and the verb of what was attempted.
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { path, doing, source }
    }

    /// A file or folder that is not there, with advice.
    pub(crate) fn missing(path: impl Into<PathBuf>, hint: impl Into<String>) -> Self {
        Self::Missing { path: path.into(), hint: hint.into() }
    }

    /// A name that is not one of `known`.
    pub(crate) fn unknown(what: &'static str, name: &str, known: &[&str]) -> Self {
        let nearest = nearest(known, name).map(str::to_owned);
        Self::UnknownName { what, name: name.into(), nearest, known: known.join(", ") }
    }

    /// As [`DataError::io`], with a hint when the file is simply not there.
    pub(crate) fn open(path: &Path, hint: &str) -> impl FnOnce(io::Error) -> Self {
        let (path, hint) = (path.to_path_buf(), hint.to_owned());
        move |source| match source.kind() {
            io::ErrorKind::NotFound => Self::Missing { path, hint },
            _ => Self::Io { path, doing: "open", source },
        }
    }
}
