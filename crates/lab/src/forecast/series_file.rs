//! A real series that ships with the project: a description in TOML and a CSV file.
//!
//! The first column of the CSV file names the row; all others are values in the order of
//! time, row after row: a value a row, or a year a row with a column a month.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::series::Series;

/// Largest file that is read, in bytes.
const MOST_BYTES: u64 = 10_000_000;

/// A series' description, as it stands in `datasets/series/`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesCard {
    /// Its name, equal to the description's without `.toml`.
    pub name: String,
    /// One sentence.
    pub title: String,
    /// The CSV file, beside the description.
    pub file: String,
    /// SHA-256 of that file, in hexadecimal.
    pub sha256: String,
    /// Where it can be had.
    pub source: String,
    /// The terms it comes under.
    pub licence: String,
    /// How it was made.
    pub made: String,
    /// Of the values.
    pub unit: String,
    /// Values of one cycle.
    pub season: usize,
}

/// Why there is no series.
#[derive(Debug, thiserror::Error)]
pub enum SeriesFileError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file too large to be a series.
    #[error("{} has {bytes} bytes; a series has at most {MOST_BYTES}", path.display())]
    Large {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// The description is not TOML of this form.
    #[error("{} describes no series: {reason}", path.display())]
    Card {
        /// The description.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is not the described one.
    #[error("{} has SHA-256 {got}, and its description says {expected}; restore the file", path.display())]
    Hash {
        /// The CSV file.
        path: PathBuf,
        /// Of its bytes.
        got: String,
        /// Of the description.
        expected: String,
    },
    /// A cell that is no finite number.
    #[error("{}: line {line}: `{cell}` is no number", path.display())]
    Cell {
        /// The CSV file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// The cell.
        cell: String,
    },
}

/// Reads a description and the series it describes.
///
/// # Errors
/// When a file is missing, larger than 10 MB, malformed, or not the one described.
pub fn read(card_path: &Path) -> Result<(SeriesCard, Series), SeriesFileError> {
    let card_error = |reason: &str| SeriesFileError::Card {
        path: card_path.to_path_buf(),
        reason: reason.to_owned(),
    };
    let text = read_text(card_path)?;
    let card: SeriesCard = toml::from_str(&text).map_err(|error| card_error(error.message()))?;
    if card.season == 0 {
        return Err(card_error("season = 0; a series without a cycle has season = 1"));
    }
    if Path::new(&card.file).file_name() != Some(card.file.as_ref()) {
        return Err(card_error("`file` must name a file in the same folder"));
    }
    let path = card_path.with_file_name(&card.file);
    let text = read_text(&path)?;
    let got: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
    if got != card.sha256 {
        return Err(SeriesFileError::Hash { path, got, expected: card.sha256 });
    }
    let mut values = Vec::new();
    for (i, line) in text.lines().enumerate().skip(1) {
        for cell in line.split(',').skip(1) {
            let value = cell.trim().parse().ok().filter(|value: &f64| value.is_finite());
            values.push(value.ok_or_else(|| SeriesFileError::Cell {
                path: path.clone(),
                line: i + 1,
                cell: cell.to_owned(),
            })?);
        }
    }
    let season = card.season;
    Ok((card, Series { season, values }))
}

fn read_text(path: &Path) -> Result<String, SeriesFileError> {
    let error = |source| SeriesFileError::File { path: path.to_path_buf(), source };
    let bytes = fs::metadata(path).map_err(error)?.len();
    if bytes > MOST_BYTES {
        return Err(SeriesFileError::Large { path: path.to_path_buf(), bytes });
    }
    fs::read_to_string(path).map_err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/series/el-nino.toml")
    }

    #[test]
    fn the_shipped_series_is_the_one_described() {
        let (card, series) = read(&shipped()).unwrap();
        assert_eq!((card.name.as_str(), card.season, series.season), ("el-nino", 12, 12));
        assert_eq!(series.values.len(), 61 * 12);
        // January and December 1950, January 1951, December 2010.
        let some = [0, 11, 12, 731].map(|i| series.values[i]);
        assert_eq!(some, [23.11, 21.8, 24.19, 22.07]);
    }

    /// Reads a description with `old` replaced by `new`, beside a file of these bytes; the error
    /// says `part`, or there is none.
    #[track_caller]
    fn check(old: &str, new: &str, csv: &str, part: &str) {
        let folder = tempfile::tempdir().unwrap();
        let hash: String = Sha256::digest(csv).iter().map(|byte| format!("{byte:02x}")).collect();
        let card = format!(
            "name = \"a\"\ntitle = \"\"\nfile = \"a.csv\"\nsha256 = \"{hash}\"\nsource = \"\"\n\
             licence = \"\"\nmade = \"\"\nunit = \"\"\nseason = 3\n"
        );
        assert!(card.contains(old), "{old:?}");
        fs::write(folder.path().join("a.toml"), card.replacen(old, new, 1)).unwrap();
        fs::write(folder.path().join("a.csv"), csv).unwrap();
        let got = read(&folder.path().join("a.toml")).map_err(|error| error.to_string());
        match part {
            "" => assert_eq!(got.unwrap().1.values, [1.5, 2.0]),
            part => assert!(got.clone().unwrap_err().contains(part), "{got:?}"),
        }
    }

    #[test]
    fn what_is_no_series_is_refused() {
        let csv = "month,x\na,1.5\nb,2\n";
        check("name", "name", csv, "");
        check("name", "nome", csv, "unknown field");
        check("season = 3", "season = 0", csv, "season = 0");
        check("file = \"a.csv\"", "file = \"../a.csv\"", csv, "same folder");
        check("file = \"a.csv\"", "file = \"b.csv\"", csv, "cannot read");
        check("sha256 = \"", "sha256 = \"0", csv, "restore the file");
        check("name", "name", "x\na,1\nb,x\n", "line 3: `x`");
        check("name", "name", "x\na,inf\n", "line 2: `inf`");
        assert!(read(Path::new("absent.toml")).is_err());
    }
}
