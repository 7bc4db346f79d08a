//! The files of reports as JSON, and [`ReportError`].

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Serialize, de::DeserializeOwned};

/// Version of `evaluation.json`.
pub const FORMAT: u32 = 5;

/// Errors of making, writing or reading a report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// All episodes failed.
    #[error("all {failed} episodes failed; the first: {reason}")]
    AllFailed {
        /// Number of episodes.
        failed: usize,
        /// Reason of the first failure.
        reason: String,
    },
    /// A target without an episode, or an episode whose return is not a number.
    #[error("no finite score for a target return of {0}")]
    NoScore(f32),
    /// A file could not be written or read.
    #[error("`{path}`")]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A file does not have the expected contents.
    #[error("`{path}` is not {what}")]
    Json {
        /// The file.
        path: PathBuf,
        /// The expected contents.
        what: &'static str,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// A report of another version of this program.
    #[error(
        "`{path}` is a report of format {format}, expected format {FORMAT}: evaluate the \
         checkpoint again (`overtone evaluate rollouts`)"
    )]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
}

/// Writes a file atomically.
///
/// # Errors
/// When the file cannot be written.
pub fn replace(path: &Path, contents: &[u8]) -> Result<(), ReportError> {
    overtone_files::replace(path, contents)
        .map_err(|source| ReportError::File { path: path.to_path_buf(), source })
}

/// Writes `value`, which is `what`, as indented JSON, atomically.
///
/// # Errors
/// When `value` cannot be serialized, or the file cannot be written.
pub fn write_json(
    path: &Path,
    value: &impl Serialize,
    what: &'static str,
) -> Result<(), ReportError> {
    let mut json = serde_json::to_vec_pretty(value).map_err(|source| ReportError::Json {
        path: path.to_path_buf(),
        what,
        source,
    })?;
    json.push(b'\n');
    replace(path, &json)
}

/// Reads a JSON file, which is expected to be `what`; `None` if it does not exist.
///
/// # Errors
/// When the file cannot be read or parsed.
pub fn read_json_if_any<T: DeserializeOwned>(
    path: &Path,
    what: &'static str,
) -> Result<Option<T>, ReportError> {
    match fs::read(path) {
        Ok(json) => serde_json::from_slice(&json).map(Some).map_err(|source| ReportError::Json {
            path: path.to_path_buf(),
            what,
            source,
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ReportError::File { path: path.to_path_buf(), source }),
    }
}
