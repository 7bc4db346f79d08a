//! Plain tables as terminal text, Markdown and CSV.
//!
//! In a terminal all columns are right-aligned, with two spaces between them. In Markdown, columns
//! of numbers are right-aligned and other columns are left-aligned.

use std::fmt;

/// The name of a column, and its cell for an item of type `R`.
pub type Column<'a, R> = (&'a str, &'a dyn Fn(&R) -> String);

/// Rows under a header.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these column names.
    pub fn new(header: impl IntoIterator<Item: Into<String>>) -> Self {
        Self { rows: vec![header.into_iter().map(Into::into).collect()] }
    }

    /// A table with a row for each item, and these columns: a name, and a function that makes the
    /// cell of an item.
    pub fn of<R>(items: impl IntoIterator<Item = R>, columns: &[Column<'_, R>]) -> Self {
        let mut table = Self::new(columns.iter().map(|(name, _)| *name));
        for item in items {
            table.row(columns.iter().map(|(_, cell)| cell(&item)).collect());
        }
        table
    }

    /// Adds a row. Missing cells are empty, and extra cells are dropped.
    pub fn row(&mut self, mut cells: Vec<String>) {
        cells.resize(self.rows[0].len(), String::new());
        self.rows.push(cells);
    }

    /// Adds a column on the right, with a cell for each row.
    ///
    /// # Panics
    /// When the number of cells differs from the number of rows.
    pub fn column(&mut self, name: &str, cells: Vec<String>) {
        assert_eq!(cells.len() + 1, self.rows.len(), "one cell per row");
        let cells = std::iter::once(name.to_owned()).chain(cells);
        self.rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
    }

    /// The table without columns of dashes only.
    pub fn without_dashes(mut self) -> Self {
        for place in (0..self.rows[0].len()).rev() {
            let mut cells = self.rows[1..].iter().map(|row| &row[place]);
            if !self.is_empty() && cells.all(|cell| cell == "-") {
                self.rows.iter_mut().for_each(|row| drop(row.remove(place)));
            }
        }
        self
    }

    /// Whether the table has only a header.
    pub fn is_empty(&self) -> bool {
        self.rows.len() < 2
    }

    /// The header and the rows below it.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Whether most non-empty cells of a column are numbers, including intervals and spreads.
    pub fn is_of_numbers(&self, column: usize) -> bool {
        let cells = self.rows.iter().skip(1).map(|row| row[column].as_str());
        let filled: Vec<&str> = cells.filter(|cell| !matches!(*cell, "" | "-")).collect();
        2 * filled.iter().filter(|cell| is_number(cell)).count() > filled.len()
    }

    /// The table as Markdown.
    pub fn to_markdown(&self) -> String {
        let mut text = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            text += &format!("| {} |\n", cells.join(" | "));
            if index == 0 {
                let rule = |column| if self.is_of_numbers(column) { " ---: |" } else { " --- |" };
                text += &format!("|{}\n", (0..row.len()).map(rule).collect::<String>());
            }
        }
        text
    }

    /// The table as comma-separated values (RFC 4180, lines ending in `\n`).
    pub fn to_csv(&self) -> String {
        let quoted = |cell: &String| {
            if cell.contains([',', '"', '\n', '\r']) {
                format!("\"{}\"", cell.replace('"', "\"\""))
            } else {
                cell.clone()
            }
        };
        self.rows
            .iter()
            .map(|row| row.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n")
            .collect()
    }
}

/// The cell of a value; a dash for `None`.
pub fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Whether a cell contains only numbers: `-12.0 [-85.0, +62.0]`, `1 ± 2`, `3 to 5`, `90 %`.
fn is_number(cell: &str) -> bool {
    // Brackets are escaped with a backslash in Markdown.
    let apart = [' ', ',', '[', ']', '(', ')', '\\'];
    let mut words = cell.split(apart).filter(|word| !matches!(*word, "" | "±" | "to" | "-" | "%"));
    cell.contains(|c: char| c.is_ascii_digit()) && words.all(|word| word.parse::<f64>().is_ok())
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
    use super::{Column, Table};

    #[test]
    fn columns_are_aligned_by_characters() {
        let items = [(100, "1 ± 2"), (7, "-12.5 ± 0.5")];
        let columns: [Column<'_, (u32, &str)>; 2] =
            [("n", &|item| item.0.to_string()), ("return", &|item| item.1.to_owned())];
        let table = Table::of(items, &columns);
        let expected = "  n       return\n100        1 ± 2\n  7  -12.5 ± 0.5\n";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn a_column_is_added_on_the_right() {
        let mut table = Table::new(["run"]);
        table.row(vec!["a".into()]);
        table.column("n", vec!["3".into()]);
        assert_eq!(table.to_csv(), "run,n\na,3\n");
    }

    #[test]
    fn a_column_of_dashes_is_dropped() {
        let table = |cells: [&str; 2]| {
            let mut table = Table::new(["run", "success"]);
            cells.iter().for_each(|cell| table.row(vec!["a".into(), cell.to_string()]));
            table.without_dashes().to_csv()
        };
        assert_eq!(table(["-", "-"]), "run\na\na\n");
        assert_eq!(table(["-", "0.5"]), "run,success\na,-\na,0.5\n");
    }

    #[test]
    fn columns_of_numbers_are_recognized() {
        #[track_caller]
        fn check(cells: &[&str], of_numbers: bool) {
            let mut table = Table::new(["c"]);
            cells.iter().for_each(|cell| table.row(vec![cell.to_string()]));
            assert_eq!(table.is_of_numbers(0), of_numbers, "{cells:?}");
        }
        check(&["-12.0 [-85.0, +62.0]", "1 ± 2", "same, not played", "-", ""], true);
        check(&["3 to 5"], true);
        check(&["1.0 \\[0.5, 2.0\\]"], true);
        check(&["1e-6 (18)", "-"], true);
        // A run that the user named by a day.
        check(&["2026-11-20-hopper"], false);
        check(&["0.25", "max_then_area", "false"], false);
        check(&["-", ""], false);
        check(&[], false);
    }

    #[test]
    fn markdown_and_csv_escape_separators() {
        let mut table = Table::new(["a|b", "c"]);
        table.row(vec!["1,5".into(), "say \"x\"".into()]);
        assert_eq!(table.to_markdown(), "| a\\|b | c |\n| ---: | --- |\n| 1,5 | say \"x\" |\n");
        assert_eq!(table.to_csv(), "a|b,c\n\"1,5\",\"say \"\"x\"\"\"\n");
    }
}
