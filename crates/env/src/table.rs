//! [`TaskTable`]: a suite's tasks as a TOML document, with rows of the suite's own form.

use std::collections::BTreeMap;

use overtone_core::Reference;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A suite's tasks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskTable<Row> {
    /// What 0 and 100 mean under each convention of reference scores.
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
    /// Becomes 0.
    low: f64,
    /// Becomes 100.
    high: f64,
}

impl<Row: DeserializeOwned> TaskTable<Row> {
    /// Reads a table that is compiled into the program.
    ///
    /// # Panics
    /// When it is none: every test of the suite would find that.
    pub fn of(document: &str) -> Self {
        toml::from_str(document).unwrap_or_else(|error| panic!("the table of tasks: {error}"))
    }

    /// The reference scores of a row.
    ///
    /// # Panics
    /// When their convention is not in the table.
    pub fn reference(&self, scores: &Scores) -> Reference {
        let Scores { convention, low, high } = scores.clone();
        let meaning = self.conventions.get(&convention);
        let meaning = meaning.unwrap_or_else(|| panic!("`{convention}` is no convention"));
        Reference { meaning: meaning.clone(), convention, low, high }
    }
}
