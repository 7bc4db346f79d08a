//! A study as a document, and its cells: all combinations of a grid's values and additional cells,
//! each with every seed.

use std::{collections::BTreeMap, path::Path};

use documented::DocumentedFields;
use overtone_console::keys;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::{error::StudyError, label};

/// Maximum number of cells of a study. Each cell is checked before the study starts and has its own
/// files.
const MOST_CELLS: usize = 10_000;

/// A study. The fields are the keys of its document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Name of the study; empty: the name of its file.
    #[serde(default)]
    pub name: String,
    /// Training seeds. Every cell has a run for each seed. Empty: the seed of the settings.
    #[serde(default)]
    pub seeds: Vec<u64>,
    /// Additional evaluations of each run, after the evaluation by its settings. Each entry has
    /// `evaluation.…` words.
    #[serde(default)]
    pub evaluations: Vec<String>,
    /// Settings of all cells.
    #[serde(default)]
    pub settings: Table,
    /// Values by axis. An axis is a key, or any name if its values are tables of keys.
    #[serde(default)]
    pub grid: Table,
    /// Additional cells outside the grid, each with its keys.
    #[serde(default)]
    pub cells: Vec<Table>,
    /// How the study is run.
    #[serde(default)]
    pub executor: Executor,
}

/// Engine that runs a study.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// Processes on this machine.
    #[default]
    Local,
    /// A Slurm cluster.
    Slurm,
}

/// Execution settings of a study.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct Executor {
    /// Engine that runs the cells. local: processes on this machine. slurm: arrays of jobs on a
    /// cluster; the program returns at once.
    pub engine: Engine,
    /// Cells in parallel. 0: locally one for each core, at most eight; on Slurm as many as it
    /// starts.
    pub jobs: usize,
    /// Slurm: the partition, --partition.
    pub partition: String,
    /// Slurm: time of a job, --time; an unfinished run resumes in a new job.
    pub time: String,
    /// Slurm: cores of a cell, --cpus-per-task. Locally: cores for all cells together. 0: the
    /// default, or all cores.
    pub cpus: usize,
    /// Slurm: GPUs of a cell, --gpus.
    pub gpus: String,
    /// Slurm: the account, --account.
    pub account: String,
}

/// A run of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The settings that distinguish the cell, without the seed: `head=fourier game=seaquest`.
    pub label: String,
    /// Unique id: label and seed as a file name.
    pub id: String,
    /// Settings of the cell, each as `key=value`.
    pub words: Vec<String>,
}

/// Ordered settings without duplicate keys.
type Words = Vec<(String, String)>;

impl Study {
    /// Reads a study. Without a name it is named after its file.
    ///
    /// # Errors
    /// When the file cannot be read or is not a valid study.
    pub fn read(path: &Path) -> Result<Self, StudyError> {
        let text = std::fs::read_to_string(path).map_err(StudyError::file(path))?;
        let wrong = |what: String| StudyError::Document { path: path.to_path_buf(), what };
        let mut study: Self = toml::from_str(&text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let line = text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1;
            wrong(format!("line {line}: {}", keys::one_line(error)))
        })?;
        if study.name.is_empty() {
            study.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        }
        Self::check_name(&study.name).map_err(|error| wrong(error.to_string()))?;
        Ok(study)
    }

    /// Checks the name of a study, which is also the name of its directory.
    ///
    /// # Errors
    /// When the name is empty or too long, contains other characters, or starts with `.`.
    pub fn check_name(name: &str) -> Result<(), StudyError> {
        if name.is_empty() || name.starts_with('.') || name != label::file_name(name) {
            return Err(StudyError::Value {
                key: "name".into(),
                value: name.into(),
                what: label::NAME,
            });
        }
        Ok(())
    }

    /// The study as a TOML document.
    ///
    /// # Errors
    /// When the study cannot be written as TOML. This does not happen for studies from a document
    /// or from words.
    pub fn to_toml(&self) -> Result<String, StudyError> {
        toml::to_string(self).map_err(|error| StudyError::Document {
            path: format!("{}.toml", self.name).into(),
            what: error.to_string(),
        })
    }

    /// The cells, grouped by label.
    ///
    /// # Errors
    /// When there are no cells, too many cells, or a cell appears twice.
    pub fn cells(&self) -> Result<Vec<Cell>, StudyError> {
        let common = words_of(&self.settings);
        let mut variants: Vec<Words> = Vec::new();
        if !self.grid.is_empty() {
            variants = self.combinations()?;
        }
        variants.extend(self.cells.iter().map(words_of));
        if !self.seeds.is_empty() {
            let seed = variants.iter().flatten().find(|(key, _)| key == "seed");
            if let Some((key, text)) = seed {
                return Err(seed_below(key, text));
            }
        }
        if variants.is_empty() && !(common.is_empty() && self.seeds.is_empty()) {
            variants.push(Words::new());
        }
        let variants: Vec<Words> =
            variants.iter().map(|variant| together(&[&common, variant])).collect();
        let n = variants.len().saturating_mul(self.seeds.len().max(1));
        match n {
            0 => return Err(StudyError::Empty),
            _ if n > MOST_CELLS => return Err(StudyError::Large { n, most: MOST_CELLS }),
            _ => {}
        }
        let labels = label::labels(&variants);
        let mut cells: Vec<Cell> = Vec::with_capacity(n);
        let mut known: BTreeMap<String, &str> = BTreeMap::new();
        let seeds: Vec<Option<u64>> = if self.seeds.is_empty() {
            vec![None]
        } else {
            self.seeds.iter().copied().map(Some).collect()
        };
        for (variant, label) in variants.iter().zip(&labels) {
            for seed in &seeds {
                let seed_words: Words =
                    seed.map(|seed| ("seed".into(), seed.to_string())).into_iter().collect();
                let words: Vec<String> = together(&[variant, &seed_words])
                    .into_iter()
                    .map(|(key, text)| format!("{}={text}", keys::short(&key)))
                    .collect();
                let name = seed.map_or(label.clone(), |seed| format!("{label} s{seed}"));
                let mut id = label::file_name(&name);
                // Another cell's name differs only in characters that file names cannot contain.
                if known.get(&id).is_some_and(|other| other != label) {
                    id = format!("{id}-{:08x}", label::fingerprint(&name));
                }
                if known.insert(id.clone(), label).is_some() {
                    return Err(StudyError::Twice { label: name });
                }
                cells.push(Cell { label: label.clone(), id, words });
            }
        }
        Ok(cells)
    }

    /// All combinations of the grid's values. The last axis by name changes fastest.
    fn combinations(&self) -> Result<Vec<Words>, StudyError> {
        let mut combinations = vec![Words::new()];
        for (axis, values) in &self.grid {
            if axis == "seed" {
                return Err(seed_below("grid.seed", &values.to_string()));
            }
            let values = axis_values(axis, values)?;
            let n = combinations.len().saturating_mul(values.len());
            if n > MOST_CELLS {
                return Err(StudyError::Large { n, most: MOST_CELLS });
            }
            combinations = combinations
                .iter()
                .flat_map(|before| values.iter().map(|value| together(&[before, value])))
                .collect();
        }
        Ok(combinations)
    }
}

/// The error for a seed in the grid or in a cell.
fn seed_below(key: &str, text: &str) -> StudyError {
    StudyError::Value {
        key: key.into(),
        value: text.into(),
        what: "seeds must not be in the grid or in a cell: use the top-level key, such as \
               seeds = [1, 2, 3, 4]",
    }
}

/// The settings of each value of an axis.
fn axis_values(axis: &str, values: &Value) -> Result<Vec<Words>, StudyError> {
    match values {
        Value::Array(values) if values.is_empty() => Err(StudyError::Value {
            key: format!("grid.{axis}"),
            value: "[]".into(),
            what: "expected at least one value",
        }),
        Value::Array(values) => Ok(values
            .iter()
            .map(|value| match value {
                Value::Table(settings) => words_of(settings),
                value => vec![word(axis, value)],
            })
            .collect()),
        // `head.frequencies = [8, 14]` is a table in a table.
        Value::Table(inner) => {
            let [(name, values)] = &inner.iter().collect::<Vec<_>>()[..] else {
                return Err(StudyError::Value {
                    key: format!("grid.{axis}"),
                    value: inner.to_string().trim().replace('\n', ", "),
                    what: "two keys of one section are two axes: write each key in quotes, such as \
                           \"head.kind\" = [\"linear\"]",
                });
            };
            axis_values(&format!("{axis}.{name}"), values)
        }
        other => Ok(vec![vec![word(axis, other)]]),
    }
}

fn word(key: &str, value: &Value) -> (String, String) {
    (full(key), keys::plain(value))
}

/// The full form of a key, as in a configuration: `head` becomes `head.kind`.
pub(crate) fn full(key: &str) -> String {
    keys::split(&format!("{key}=")).map_or_else(|_| key.to_owned(), |(key, _)| key)
}

fn words_of(settings: &Table) -> Words {
    let keys = keys::flatten(settings);
    keys.iter().map(|(key, value)| word(key, value)).collect()
}

/// The union of several settings. Later values replace earlier values of the same key.
fn together(parts: &[&Words]) -> Words {
    let mut all = Words::new();
    for (key, text) in parts.iter().copied().flatten() {
        match all.iter_mut().find(|(known, _)| known == key) {
            Some(known) => known.1.clone_from(text),
            None => all.push((key.clone(), text.clone())),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use overtone_testkit::{check_error, sentences};

    fn cells(text: &str) -> Result<Vec<Cell>, String> {
        let study: Study = toml::from_str(text).map_err(|error| error.to_string())?;
        study.cells().map_err(|error| error.to_string())
    }

    #[test]
    fn a_grid_has_every_combination_with_every_seed() {
        let refused = cells(
            "seeds = [1, 2]\n[settings]\ntrain.updates = 7\ntask = \"ale/seaquest\"\n\
             [grid]\nagent = [{ head = \"linear\" }, { head = \"fourier\", head.frequencies = 14 }]\n",
        );
        // TOML rejects `head` as both a value and a section of one table.
        assert!(refused.is_err());
        let all = cells(
            "seeds = [1, 2]\n[settings]\ntrain.updates = 7\ntask = \"ale/seaquest\"\n\
             [grid]\ndata.run = [\"1\", \"2\"]\n\
             agent = [{ head = \"linear\" }, { head.kind = \"fourier\", head.frequencies = 14 }]\n",
        )
        .unwrap();
        let words: Vec<String> = all.iter().map(|cell| cell.words.join(" ")).collect();
        assert_eq!(words.len(), 2 * 2 * 2);
        assert_eq!(words[0], "task=ale/seaquest train.updates=7 head=linear data.run=1 seed=1");
        assert_eq!(
            words[7],
            "task=ale/seaquest train.updates=7 head.frequencies=14 head=fourier data.run=2 seed=2"
        );
        assert_eq!(all[0].label, "head=linear data.run=1");
        assert_eq!(all[0].id, "head=linear_data.run=1_s1");
        assert_eq!(all[1].label, all[0].label);
    }

    #[test]
    fn cells_are_added_to_the_grid_and_override_settings() {
        let all = cells(
            "[settings]\na = 1\nb = 2\n[grid]\nb = [3, 4]\n[[cells]]\nc = 5\n[[cells]]\na = 9\n",
        )
        .unwrap();
        let words: Vec<String> = all.iter().map(|cell| cell.words.join(" ")).collect();
        assert_eq!(words, ["a=1 b=3", "a=1 b=4", "a=1 b=2 c=5", "a=9 b=2"]);
        let labels: Vec<&str> = all.iter().map(|cell| &*cell.label).collect();
        assert_eq!(labels, ["a=1 b=3", "a=1 b=4", "a=1 b=2 c=5", "a=9 b=2"]);
    }

    #[test]
    fn cells_whose_names_differ_in_one_character_have_separate_files() {
        let all = cells("seeds = [1]\n[grid]\na = [\"x_y\", \"x y\", \"x/y\"]\n").unwrap();
        let ids: Vec<&str> = all.iter().map(|cell| &*cell.id).collect();
        assert_eq!(ids[0], "a=x_y_s1");
        assert!(ids[1..].iter().all(|id| id.starts_with("a=x_y_s1-")), "{ids:?}");
        assert_ne!(ids[1], ids[2]);
        let error = cells("[grid]\na = [\"x_y\", \"x y\", \"x y\"]\n").unwrap_err();
        assert!(error.contains("`a=x y` appears twice"), "{error}");
        sentences::check(&error);
    }

    #[test]
    fn names_are_checked() {
        let longest = "x".repeat(100);
        for name in ["a", "lr=3", "heads-2.1_b", &longest] {
            Study::check_name(name).unwrap();
        }
        let longer = "x".repeat(101);
        for name in ["", ".a", "a/b", "ä", &longer] {
            let error = Study::check_name(name).unwrap_err();
            check_error!(error, StudyError::Value { key, .. } if key == "name");
        }
    }

    #[test]
    fn an_invalid_file_is_reported_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        std::fs::write(&path, "seeds = [1]\nsedes = [2]\n").unwrap();
        let error = Study::read(&path).unwrap_err();
        check_error!(error, StudyError::Document { .. });
        let error = error.to_string();
        assert!(!error.contains('|') && !error.contains('^'), "{error}");
    }

    #[test]
    fn invalid_studies_are_rejected() {
        for (text, expected) in [
            ("", "no cell"),
            ("[grid]\na = []\n", "grid.a=[]: expected at least one value"),
            ("[grid]\nhead.a = [1]\nhead.b = [2]\n", "in quotes"),
            ("[grid]\nseed = [1]\n", "seeds must not be in the grid"),
            ("seeds = [1]\n[[cells]]\nseed = 9\n", "seed=9: seeds must not be in the grid"),
            ("seeds = [1]\n[grid]\na = [{ b = 1, seed = 9 }]\n", "seed=9: seeds must not be"),
            ("[grid]\na = [1, 1]\n", "`a=1` appears twice"),
            ("sedes = [1]\n", "unknown field"),
            ("seeds = [-1]\n", "invalid value"),
        ] {
            let error = cells(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let values: Vec<String> = (0..200).map(|i| i.to_string()).collect();
        let axis = values.join(", ");
        let error = cells(&format!("[grid]\na = [{axis}]\nb = [{axis}]\n")).unwrap_err();
        assert!(error.contains("40000 cells"), "{error}");
        sentences::check(&error);
    }
}
