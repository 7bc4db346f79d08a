//! Errors of studies.

use std::path::{Path, PathBuf};

/// Errors of reading and running a study.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A file or directory cannot be read or written.
    #[error("{path}")]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A document is not a valid study.
    #[error("{path} is not a valid study: {what}")]
    Document {
        /// The file.
        path: PathBuf,
        /// The problem.
        what: String,
    },
    /// A key has an invalid value.
    #[error("{key}={value}: {what}")]
    Value {
        /// The key.
        key: String,
        /// The given value.
        value: String,
        /// The expected form.
        what: &'static str,
    },
    /// The study has no cells.
    #[error("the study has no cell: add values, such as head=linear,fourier seed=1..5")]
    Empty,
    /// The study has too many cells.
    #[error(
        "the study has {n} cells, but at most {most} are allowed: split it into several studies"
    )]
    Large {
        /// The number of cells.
        n: usize,
        /// The maximum.
        most: usize,
    },
    /// Two cells are equal.
    #[error("the cell `{label}` appears twice: remove one of them")]
    Twice {
        /// The cell.
        label: String,
    },
    /// Another process is working on the cell.
    #[error("another process is working on the cell `{cell}`: wait for it, or stop it")]
    Locked {
        /// The cell.
        cell: String,
    },
    /// The file system does not support locks.
    #[error(
        "the file system of {path} does not support locks, so two processes could work on the \
         same cell: use runs= to choose a directory on another file system"
    )]
    NoLocks {
        /// The file that cannot be locked.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// No study was started yet.
    #[error(
        "there are no studies in {folder} yet: start one with `overtone study run FILE.toml`, or \
         write a template with `overtone study init FILE.toml`"
    )]
    None {
        /// The directory of studies.
        folder: PathBuf,
    },
    /// A word sets a key to a value that is not among the study's own values of that key.
    #[error(
        "{key}={value}: the study sets {key} in its {place}, so expected one of {known}; to use \
         another value, edit the study's file"
    )]
    Fixed {
        /// The key.
        key: String,
        /// The given value.
        value: String,
        /// The place of the key in the study.
        place: String,
        /// The values of the key in the study.
        known: String,
    },
    /// The named study does not exist.
    #[error(
        "unknown study `{name}`: expected a file, or a directory in {folder}; to write a new file: \
         `overtone study init {}`",
        file_of(.name)
    )]
    NoStudy {
        /// The given name.
        name: String,
        /// The directory of studies.
        folder: PathBuf,
    },
    /// Slurm is not installed.
    #[error("cannot start {program}: {source}; install Slurm, or use engine=local")]
    NoSlurm {
        /// The command.
        program: &'static str,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A Slurm command failed.
    #[error("{program}: {what}")]
    Slurm {
        /// The command.
        program: &'static str,
        /// Its error message.
        what: String,
    },
}

/// The file name of the study `name`, which can include the ending.
fn file_of(name: &str) -> String {
    format!("{}.toml", name.strip_suffix(".toml").unwrap_or(name))
}

impl StudyError {
    /// A function that makes an error about the file at `path`.
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        |source| Self::File { path, source }
    }
}
