//! Plain tables for a terminal: columns aligned to the right, two spaces between them.

use std::fmt;

/// Rows under a header.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column names.
    pub fn new(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(|name| name.to_string()).collect()] }
    }

    /// Adds a row; missing cells are empty, those past the last column are dropped.
    pub fn row(&mut self, mut cells: Vec<String>) {
        cells.resize(self.rows[0].len(), String::new());
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        for row in &self.rows {
            let cells: Vec<String> =
                row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}")).collect();
            writeln!(f, "{}", cells.join("  ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn columns_are_aligned_by_characters() {
        let mut table = Table::new(&["n", "return"]);
        table.row(vec!["100".into(), "1 ± 2".into()]);
        table.row(vec!["7".into(), "-12.5 ± 0.5".into()]);
        let expected = "  n       return\n100        1 ± 2\n  7  -12.5 ± 0.5\n";
        assert_eq!(table.to_string(), expected);
    }
}
