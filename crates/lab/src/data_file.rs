//! Text files that come with the project in `datasets/lab`.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Why there is no data.
#[derive(Debug, thiserror::Error)]
pub enum DataFileError {
    /// A file cannot be read.
    #[error("cannot read {}; it comes with the project: restore it", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line that is not of the file's format.
    #[error("{}: line {line}: {reason}; restore the file", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A file whose lines do not fit together.
    #[error("{}: {reason}; restore the file", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// A file's text.
///
/// # Errors
/// When it cannot be read, or is no text.
pub fn read_text(path: &Path) -> Result<String, DataFileError> {
    fs::read_to_string(path).map_err(|source| DataFileError::File { path: path.to_owned(), source })
}

/// What `read` makes of each line that it has something to say about.
///
/// # Errors
/// When the file cannot be read, `read` refuses a line with a reason, or nothing is left.
pub fn read_lines<T>(
    path: &Path,
    mut read: impl FnMut(&str) -> Result<Option<T>, String>,
) -> Result<Vec<T>, DataFileError> {
    let text = read_text(path)?;
    let lines = text.lines().enumerate();
    let rows: Vec<T> = lines
        .filter_map(|(i, line)| {
            let at = |reason| DataFileError::Line { path: path.to_owned(), line: i + 1, reason };
            read(line).map_err(at).transpose()
        })
        .collect::<Result<_, _>>()?;
    if rows.is_empty() {
        let reason = "it has no data".to_owned();
        return Err(DataFileError::Content { path: path.to_owned(), reason });
    }
    Ok(rows)
}

/// A finite number.
///
/// # Errors
/// When the cell holds none.
pub fn number(cell: &str) -> Result<f32, String> {
    let number = cell.trim().parse().ok().filter(|number: &f32| number.is_finite());
    number.ok_or_else(|| format!("`{cell}` is no number"))
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
            read_lines(&path, |line| (line != "#").then(|| number(line)).transpose())
        };
        assert_eq!(read("1\n#\n-2.5\n").unwrap(), [1.0, -2.5]);
        for (text, part) in [("1\nx\n", "line 2: `x` is no number"), ("#\n", "it has no data")] {
            let refused = read(text).unwrap_err().to_string();
            assert!(refused.contains(part) && refused.contains("a.txt"), "{refused}");
        }
        let absent = read_text(&folder.path().join("absent")).unwrap_err().to_string();
        assert!(absent.contains("absent"), "{absent}");
    }
}
