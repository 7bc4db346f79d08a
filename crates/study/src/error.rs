//! What can be wrong with a study.

use std::path::{Path, PathBuf};

/// Why a study cannot be read or carried out.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A file or folder that cannot be read or written.
    #[error("{path}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A document that is no study.
    #[error("{path} is no study: {what}")]
    Document {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A value that a key cannot have.
    #[error("{key}={value}: {what}")]
    Value {
        /// The key.
        key: String,
        /// What was given.
        value: String,
        /// What is expected.
        what: &'static str,
    },
    /// A study without a run.
    #[error("the study has no cell: name values, such as head=linear,fourier seed=1..5")]
    Empty,
    /// More runs than a study may have.
    #[error("the study has {n} cells, more than {most}: make several of it")]
    Large {
        /// How many.
        n: usize,
        /// How many there may be.
        most: usize,
    },
    /// Two cells that are the same.
    #[error("the cell `{label}` is there twice: leave one of them out")]
    Twice {
        /// The cell.
        label: String,
    },
    /// Two processes would do one cell.
    #[error("another process works on the cell `{cell}`; wait for it, or stop it")]
    Locked {
        /// The cell.
        cell: String,
    },
    /// Nothing keeps two processes from doing one cell.
    #[error(
        "the file system of {path} has no locks, which keep two processes off one cell; choose a \
         folder on another with runs="
    )]
    NoLocks {
        /// What cannot be locked.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// No study at all.
    #[error(
        "there is no study in {folder} yet: `overtone study run FILE.toml` starts one, and \
         `overtone study init FILE.toml` writes a file to begin with"
    )]
    None {
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// A word for a key that stands among others in an axis, or in a cell, of the document.
    #[error(
        "{key}={value}: the study's {place} says {key} itself ({known}), of which a word can \
         choose; for another value edit the file"
    )]
    Fixed {
        /// The key.
        key: String,
        /// What was given.
        value: String,
        /// Where the key stands.
        place: String,
        /// The values there.
        known: String,
    },
    /// No study of a name.
    #[error(
        "there is no study `{name}`: neither a file nor a folder in {folder} \
         (`overtone study init {}` writes one)",
        file_of(.name)
    )]
    NoStudy {
        /// What was asked for.
        name: String,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// Slurm is not there.
    #[error("{program}: {source}; is Slurm on this machine? (engine=local needs none)")]
    NoSlurm {
        /// The command.
        program: &'static str,
        /// Why it cannot be started.
        source: std::io::Error,
    },
    /// Slurm refused.
    #[error("{program}: {what}")]
    Slurm {
        /// The command.
        program: &'static str,
        /// What it said.
        what: String,
    },
}

/// The file that a study of this name, or in it, would have.
fn file_of(name: &str) -> String {
    format!("{}.toml", name.strip_suffix(".toml").unwrap_or(name))
}

impl StudyError {
    /// An error of the file at `path`.
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        |source| Self::File { path, source }
    }
}
