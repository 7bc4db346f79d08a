//! [`DataError`]: everything that can be wrong with a dataset on disk.
//!
//! Each message is one sentence that names the file and says what to do.

use std::io;
use std::path::{Path, PathBuf};

/// What is wrong with a dataset, its files, or a request for them.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A file or folder that should be there is not.
    #[error("{} does not exist: {hint}", path.display())]
    Missing {
        /// What was looked for.
        path: PathBuf,
        /// What to do about it.
        hint: String,
    },
    /// The operating system refused.
    #[error("{}: cannot {doing} it ({source})", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was attempted, as a verb.
        doing: &'static str,
        /// The reason given.
        source: io::Error,
    },
    /// A folder that holds no replay log, or more than one.
    #[error("{}: {reason}", path.display())]
    NoLog {
        /// The folder.
        path: PathBuf,
        /// What was expected there.
        reason: String,
    },
    /// The gzip stream ends before the array does.
    #[error(
        "{}: the file is cut short, its array ends after {got} of {expected} bytes; fetch or \
         copy it again",
        path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Bytes of the array that arrived.
        got: u64,
        /// Bytes its header promises.
        expected: u64,
    },
    /// The gzip stream is damaged.
    #[error("{}: not a sound gzip file ({reason}); fetch or copy it again", path.display())]
    Gzip {
        /// The file.
        path: PathBuf,
        /// What the decoder says.
        reason: String,
    },
    /// The array's header is not one this reader accepts.
    #[error("{}: not a usable .npy array, {reason}", path.display())]
    NpyHeader {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A pickled (object) array: reading it would run code from the file.
    #[error(
        "{}: holds pickled Python objects (dtype {dtype}), which are refused because unpickling \
         runs code from the file; save it as a plain numeric array",
        path.display()
    )]
    Pickled {
        /// The file.
        path: PathBuf,
        /// The dtype as written.
        dtype: String,
    },
    /// The array has another element type.
    #[error(
        "{}: has dtype {got}, expected {expected}; it is not a DQN-replay file of this kind",
        path.display()
    )]
    Dtype {
        /// The file.
        path: PathBuf,
        /// The dtype as written.
        got: String,
        /// The dtype needed.
        expected: &'static str,
    },
    /// The array has another shape.
    #[error(
        "{}: has shape {got:?}, expected {expected}; it is not a DQN-replay file of this kind, or \
         belongs to another run",
        path.display()
    )]
    Shape {
        /// The file.
        path: PathBuf,
        /// The shape as written.
        got: Vec<usize>,
        /// The shape needed.
        expected: String,
    },
    /// Bytes follow the array.
    #[error("{}: bytes follow the end of the array; fetch or copy it again", path.display())]
    TrailingData {
        /// The file.
        path: PathBuf,
    },
    /// A value no log can hold.
    #[error("{}: slot {slot} holds {what}; the file is damaged or of another kind", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// Position in the array.
        slot: usize,
        /// The value, and what was expected.
        what: String,
    },
    /// Files of one run that cannot belong together.
    #[error("{}: {reason}", path.display())]
    Inconsistent {
        /// The file or folder.
        path: PathBuf,
        /// What does not agree.
        reason: String,
    },
    /// A selection that leaves no transition.
    #[error("{}: the selection leaves nothing to train on ({reason})", path.display())]
    NothingSelected {
        /// The log.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The disk cannot hold what a conversion would write.
    #[error(
        "{}: the converted dataset needs {} MB and the disk has {} MB free; free some space, \
         select fewer transitions, or put the cache on another disk",
        path.display(), needed.div_ceil(1_000_000), free / 1_000_000
    )]
    DiskFull {
        /// Where it would be written.
        path: PathBuf,
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// A converted store that is damaged or of another version.
    #[error("{}: not a usable frame store, {reason}; delete it and it is made again", path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A dataset's description that cannot be read.
    #[error("{}: not a usable dataset description ({reason})", path.display())]
    Card {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A game no dataset is known for.
    #[error("unknown game `{game}`: did you mean `{nearest}`? Known are {known}")]
    UnknownGame {
        /// As asked.
        game: String,
        /// The nearest known name.
        nearest: String,
        /// All known names.
        known: String,
    },
    /// Batches asked of a dataset that cannot give them.
    #[error("{reason}")]
    Sampling {
        /// Why not.
        reason: String,
    },
    /// The thread that assembles batches died.
    #[error("the thread that assembles batches stopped: {reason}")]
    Loader {
        /// Its last words.
        reason: String,
    },
}

impl DataError {
    /// Wraps an I/O error with the path and the verb of what was attempted.
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { path, doing, source }
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
