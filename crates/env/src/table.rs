//! [`TaskTable`]: a suite's tasks as a TOML document, with rows in the suite's own format.

use std::collections::BTreeMap;

use overtone_core::Reference;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A suite's tasks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskTable<Row> {
    /// The meaning of 0 and 100 for each convention of reference scores.
    conventions: BTreeMap<String, String>,
    /// The tasks.
    #[serde(rename = "task")]
    pub tasks: Vec<Row>,
}

/// A row's reference scores.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scores {
    /// One of the table's conventions.
    convention: String,
    /// The score that becomes 0.
    low: f64,
    /// The score that becomes 100.
    high: f64,
}

impl<Row: DeserializeOwned> TaskTable<Row> {
    /// Reads a table that is compiled into the program.
    ///
    /// # Panics
    /// When the document is not a valid table. Every test of the suite would fail.
    pub fn of(document: &str) -> Self {
        toml::from_str(document).unwrap_or_else(|error| panic!("the table of tasks: {error}"))
    }

    /// The reference scores of a row.
    ///
    /// # Panics
    /// When the table does not have their convention.
    pub fn reference(&self, scores: &Scores) -> Reference {
        let Scores { convention, low, high } = scores.clone();
        let meaning = self.conventions.get(&convention);
        let meaning = meaning.unwrap_or_else(|| panic!("`{convention}` is not a convention"));
        Reference { meaning: meaning.clone(), convention, low, high }
    }
}
