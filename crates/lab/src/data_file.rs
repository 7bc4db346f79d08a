//! Text files that come with the project in `datasets/lab` and `datasets/series`.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fs, io};

/// Data that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DataFileError {
    /// A file cannot be read.
    #[error("cannot read {}; if it came with the project, restore it", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file of another format.
    #[error("{}: {reason}; if the file came with the project, restore it", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The defect.
        reason: String,
    },
}

/// A file's bytes.
///
/// # Errors
/// When it cannot be read.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, DataFileError> {
    fs::read(path).map_err(|source| DataFileError::File { path: path.to_owned(), source })
}

/// A file's text.
///
/// # Errors
/// When it cannot be read, or is not text.
pub fn read_text(path: &Path) -> Result<String, DataFileError> {
    String::from_utf8(read_bytes(path)?).map_err(|error| DataFileError::Content {
        path: path.to_owned(),
        reason: error.utf8_error().to_string(),
    })
}

/// The results of `read` for the lines of a file; it may skip a line.
///
/// # Errors
/// When the file cannot be read, `read` refuses a line with a reason, or nothing is left.
pub fn read_lines<T>(
    path: &Path,
    mut read: impl FnMut(&str) -> Result<Option<T>, String>,
) -> Result<Vec<T>, DataFileError> {
    let text = read_text(path)?;
    let content = |reason| DataFileError::Content { path: path.to_owned(), reason };
    let mut rows = Vec::new();
    for (i, line) in text.lines().enumerate() {
        rows.extend(read(line).map_err(|reason| content(format!("line {}: {reason}", i + 1)))?);
    }
    if rows.is_empty() { Err(content("it has no data".into())) } else { Ok(rows) }
}

/// A finite number.
///
/// # Errors
/// When the cell holds none.
pub fn number<T: FromStr + Copy + Into<f64>>(cell: &str) -> Result<T, String> {
    let number = cell.trim().parse().ok().filter(|&number: &T| number.into().is_finite());
    number.ok_or_else(|| format!("`{cell}` is not a number"))
}

/// A file of the project's datasets, for tests.
#[cfg(test)]
pub(crate) fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets").join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_name_file_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            read_lines(&path, |line| (line != "#").then(|| number::<f32>(line)).transpose())
        };
        assert_eq!(read("1\n#\n-2.5\n").unwrap(), [1.0, -2.5]);
        for (text, part) in [("1\nx\n", "line 2: `x` is not a number"), ("#\n", "it has no data")] {
            let refused = read(text).unwrap_err().to_string();
            assert!(refused.contains(part) && refused.contains("a.txt"), "{refused}");
        }
        let absent = read_text(&folder.path().join("absent")).unwrap_err().to_string();
        assert!(absent.contains("absent"), "{absent}");
    }
}
