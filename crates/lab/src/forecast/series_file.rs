//! A real series that ships with the project: a description in TOML and a CSV file.
//!
//! The first column of the CSV file names the row; all others are values in the order of
//! time, row after row: a value a row, or a year a row with a column a month.

use std::path::Path;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::series::Series;
use crate::data_file::{DataFileError, lines_of, number, read_text};

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

/// Reads a description and the series it describes.
///
/// # Errors
/// When a file is missing, larger than 100 MB, malformed, or not the one described.
pub fn read(card_path: &Path) -> Result<(SeriesCard, Series), DataFileError> {
    let refused =
        |path: &Path, reason: String| DataFileError::Content { path: path.to_owned(), reason };
    let card: SeriesCard = toml::from_str(&read_text(card_path)?)
        .map_err(|error| refused(card_path, error.message().to_owned()))?;
    if card.season == 0 {
        let reason = "season = 0; a series without a cycle has season = 1";
        return Err(refused(card_path, reason.into()));
    }
    if Path::new(&card.file).file_name() != Some(card.file.as_ref()) {
        return Err(refused(card_path, "`file` must name a file in the same folder".into()));
    }
    let path = card_path.with_file_name(&card.file);
    let text = read_text(&path)?;
    let got: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
    if got != card.sha256 {
        let expected = &card.sha256;
        let reason = format!("SHA-256 {got}, and its description says {expected}");
        return Err(refused(&path, reason));
    }
    let mut is_header = true;
    let rows = lines_of(&path, &text, |line| {
        let is_values = !std::mem::take(&mut is_header);
        let values = || line.split(',').skip(1).map(number::<f64>).collect::<Result<Vec<_>, _>>();
        is_values.then(values).transpose()
    })?;
    let season = card.season;
    Ok((card, Series { season, values: rows.concat() }))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

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
        check("sha256 = \"", "sha256 = \"0", csv, "restore it");
        check("name", "name", "x\na,1\nb,x\n", "line 3: `x`");
        check("name", "name", "x\na,inf\n", "line 2: `inf`");
        check("name", "name", "x\n", "no data");
        assert!(read(Path::new("absent.toml")).is_err());
    }
}
