//! Tables: a row for each step. The user says what the columns are ([`TableColumns`]).
//!
//! Nothing is guessed: a text table is separated by commas (`.csv`) or tabs (`.tsv`), in UTF-8, with the
//! names of its columns in the first line; a Parquet file (`.parquet`) says its own. A cell that is not
//! a number is an error with its line.

mod parquet;
mod places;
mod rows;
mod text;

use std::path::Path;

pub(crate) use self::parquet::{ParquetFile, is_parquet};
pub(crate) use self::places::{Heads, Places, Rules};
pub(crate) use self::rows::Rows;
use self::text::{TextTable, separator};
use crate::error::{DataError, Fault};
use crate::read::columns::Columns;
use crate::read::form::TableColumns;
use crate::read::recording::{Reader, Recording};

/// A table with named columns; without names it is only described.
#[derive(Debug)]
pub(crate) struct Table {
    pub columns: Option<TableColumns>,
}

impl Table {
    fn read(&self, path: &Path) -> Result<Columns, DataError> {
        let places = |heads: Heads| {
            Places::of(heads, self.columns.as_ref(), &Rules::default())
                .map_err(|reason| refuse(path, reason))
        };
        let rows = if is_parquet(path) {
            let file = ParquetFile::open(path)?;
            let mut rows = Rows::new(places(file.heads())?);
            file.add_to(&mut rows)?;
            rows
        } else {
            let mut file = TextTable::open(path)?;
            let mut rows = Rows::new(places(file.heads()?)?);
            file.add_to(&mut rows)?;
            rows
        };
        rows.contents(path, self.name())
    }
}

impl Reader for Table {
    fn name(&self) -> &'static str {
        "table"
    }

    fn reads(&self, path: &Path) -> bool {
        is_named(path) && path.is_file()
    }

    fn with_columns(&self, columns: &TableColumns) -> Option<Box<dyn Reader>> {
        Some(Box::new(Self { columns: Some(columns.clone()) }))
    }

    fn open(&self, path: &Path) -> Result<Recording, DataError> {
        Ok(Recording::Columns(self.read(path)?))
    }
}

/// Whether a file's name ends like a table's.
pub(crate) fn is_named(path: &Path) -> bool {
    separator(path).is_some() || is_parquet(path)
}

pub(crate) fn refuse(path: &Path, reason: String) -> DataError {
    Fault::Inconsistent(reason).at(path)
}
