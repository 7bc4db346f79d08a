//! Tables of text, separated by commas or tabs.

use std::fs::File;
use std::path::{Path, PathBuf};

use csv::StringRecord;
use overtone_core::counted;

use super::{Heads, Rows, refuse};
use crate::error::DataError;

/// Endings of text tables' names, and what separates their cells.
const ENDINGS: [(&str, u8); 2] = [("csv", b','), ("tsv", b'\t')];

/// A text table.
pub(super) struct TextTable {
    path: PathBuf,
    lines: csv::Reader<File>,
}

impl TextTable {
    pub fn open(path: &Path) -> Result<Self, DataError> {
        let file = File::open(path).map_err(DataError::io(path, "open"))?;
        let separator = separator(path).unwrap_or(b',');
        let lines = csv::ReaderBuilder::new().delimiter(separator).from_reader(file);
        Ok(Self { path: path.to_path_buf(), lines })
    }

    /// The names in its first line.
    ///
    /// # Errors
    /// When that holds none.
    pub fn heads(&mut self) -> Result<Heads, DataError> {
        let heads = self.lines.headers().map_err(|error| unreadable(&self.path, &error))?;
        names(heads).map(Heads::of).map_err(|reason| refuse(&self.path, reason))
    }

    /// Adds every line to `rows`.
    ///
    /// # Errors
    /// A line that does not fit the columns.
    pub fn add_to(&mut self, rows: &mut Rows) -> Result<(), DataError> {
        let Self { path, lines } = self;
        for record in lines.records() {
            let record = record.map_err(|error| unreadable(path, &error))?;
            let line = record.position().map_or(0, csv::Position::line);
            let cell = |place: usize| record.get(place).unwrap_or_default().trim();
            rows.add(&cell).map_err(|reason| refuse(path, format!("line {line}: {reason}")))?;
        }
        Ok(())
    }
}

/// The separator of a table's cells; `None` if the file's name is not a text table's.
pub(super) fn separator(path: &Path) -> Option<u8> {
    let ending = path.extension()?.to_str()?.to_lowercase();
    ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, separator)| *separator)
}

/// # Errors
/// A sentence about a faulty first line.
fn names(heads: &StringRecord) -> Result<Vec<String>, String> {
    let names: Vec<String> =
        heads.iter().map(|name| name.trim_start_matches('\u{feff}').trim().into()).collect();
    if let ([only], true) = (&names[..], heads.iter().any(|name| name.contains([';', '\t', '|']))) {
        return Err(format!(
            "its columns are not separated by commas (`{}`): save it with commas, and points in \
             numbers",
            only.chars().take(40).collect::<String>()
        ));
    }
    if !names.is_empty() && names.iter().all(|name| name.parse::<f64>().is_ok()) {
        return Err("its first line holds numbers, expected the names of its columns".into());
    }
    Ok(names)
}

fn unreadable(path: &Path, error: &csv::Error) -> DataError {
    let line = error.position().map(csv::Position::line);
    let reason = match (error.kind(), line) {
        (csv::ErrorKind::UnequalLengths { expected_len, len, .. }, Some(line)) => {
            format!("line {line} has {}, expected {expected_len}", counted(*len as usize, "cell"))
        }
        (csv::ErrorKind::Utf8 { .. }, _) => {
            "it is not in UTF-8: save it so (pandas: `to_csv` writes UTF-8)".into()
        }
        _ => error.to_string(),
    };
    refuse(path, reason)
}
