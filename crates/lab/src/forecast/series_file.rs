//! A real series that ships with the project: a CSV file.

use std::path::Path;

use crate::data_file::{DataFileError, number, read_lines};

/// Reads the values in the order of time, row after row: a value a row, or a year a row with a
/// column a month. The first column names the row, and the first row the columns.
///
/// # Errors
/// When the file is missing or malformed.
pub fn read(path: &Path) -> Result<Vec<f64>, DataFileError> {
    let mut is_header = true;
    let rows = read_lines(path, |line| {
        let is_values = !std::mem::take(&mut is_header);
        let values = || line.split(',').skip(1).map(number::<f64>).collect::<Result<Vec<_>, _>>();
        is_values.then(values).transpose()
    })?;
    Ok(rows.concat())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::data_file::shipped;

    #[test]
    fn the_shipped_series_is_the_one_described() {
        let values = read(&shipped("series/el-nino.csv")).unwrap();
        assert_eq!(values.len(), 61 * 12);
        // January and December 1950, January 1951, December 2010.
        assert_eq!([0, 11, 12, 731].map(|i| values[i]), [23.11, 21.8, 24.19, 22.07]);
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        for (csv, part) in
            [("x\na,1\nb,x\n", "line 3: `x`"), ("x\na,inf\n", "line 2: `inf`"), ("x\n", "no data")]
        {
            std::fs::write(&path, csv).unwrap();
            let refused = read(&path).unwrap_err().to_string();
            assert!(refused.contains(part), "{refused}");
        }
        assert!(read(Path::new("absent.csv")).is_err());
    }
}
