//! A study as words of a command: `head=linear,fourier seed=1..5 game=seaquest`.

use overtone_console::keys;
use toml::{Table, Value};

use crate::{
    error::StudyError,
    grid::{Study, full},
    label,
};

/// A parsed word: a key with one or several values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValues {
    /// The key.
    pub key: String,
    /// The values.
    pub values: Vec<String>,
}

impl KeyValues {
    /// Parses `key=value`, `key=value,value` or `key=1..5`. A comma is part of the value if it is
    /// written `\,`, or if `takes_several` is true for the key.
    ///
    /// # Errors
    /// When `=` or a value is missing, or a range is invalid.
    pub fn new(word: &str, takes_several: impl Fn(&str) -> bool) -> Result<Self, StudyError> {
        let wrong = |what| {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            StudyError::Value { key: key.into(), value: value.into(), what }
        };
        let (key, text) = word.split_once('=').ok_or_else(|| wrong("expected key=value"))?;
        let mut values: Vec<String> = Vec::new();
        let parts = if takes_several(key) { vec![text.to_owned()] } else { at_commas(text) };
        for part in &parts {
            match range(part) {
                None => match values.last_mut() {
                    Some(task) if is_of_task(key, task, part) => {
                        task.push(',');
                        task.push_str(part);
                    }
                    _ => values.push(part.to_owned()),
                },
                Some((first, last)) if first > last => {
                    return Err(wrong("a range must increase, such as 1..5 for 1, 2, 3, 4 and 5"));
                }
                Some((first, last)) if last - first >= 10_000 => {
                    return Err(wrong("a range may have at most 10,000 numbers"));
                }
                Some((first, last)) => values.extend((first..=last).map(|n| n.to_string())),
            }
        }
        if values.len() > 1 && values.iter().any(String::is_empty) {
            return Err(wrong("a value between two commas is missing"));
        }
        Ok(Self { key: key.to_owned(), values })
    }
}

/// Splits a text at commas. `\,` is a comma inside a part.
fn at_commas(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let last = parts.len() - 1;
        match c {
            '\\' if characters.next_if_eq(&',').is_some() => parts[last].push(','),
            ',' => parts.push(String::new()),
            c => parts[last].push(c),
        }
    }
    parts
}

/// Whether `part` belongs to the task before it: a keyword argument, or the rest of its value.
fn is_of_task(key: &str, task: &str, part: &str) -> bool {
    let continues = part.contains('=') || (task.contains('=') && !part.contains('/'));
    ["task", "gymnasium"].contains(&key) && continues
}

/// The first and last number of a range such as `1..5`, both included.
fn range(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.split_once("..")?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// Parses seeds.
///
/// # Errors
/// When a value is not a whole number.
pub fn seeds(values: &[String]) -> Result<Vec<u64>, StudyError> {
    let seed = |text: &String| {
        text.parse().map_err(|_| StudyError::Value {
            key: "seed".into(),
            value: text.clone(),
            what: "expected a whole number or several, such as seed=1..5",
        })
    };
    values.iter().map(seed).collect()
}

impl Study {
    /// Applies a word to the study. One value is added to the settings, and several values become an
    /// axis of the grid. If tables of an axis, or cells, already set the key, the word selects among
    /// them.
    ///
    /// # Errors
    /// When a seed is not a number, or no table has a given value.
    pub fn add(&mut self, word: &KeyValues) -> Result<(), StudyError> {
        let KeyValues { key, values } = word;
        if key == "seed" {
            self.seeds = seeds(values)?;
            return Ok(());
        }
        if self.choose(word)? {
            return Ok(());
        }
        // The grid and the cells would override the settings.
        remove(&mut self.grid, "", key);
        remove(&mut self.settings, "", key);
        let texts: Vec<Value> = values.iter().cloned().map(Value::String).collect();
        match &texts[..] {
            [text] => drop(insert(&mut self.settings, key, text.clone())),
            _ => drop(self.grid.insert(key.clone(), Value::Array(texts))),
        }
        Ok(())
    }

    /// Selects the tables whose value of a key is among the given values. Returns whether any table
    /// sets the key.
    fn choose(&mut self, word: &KeyValues) -> Result<bool, StudyError> {
        let KeyValues { key, values } = word;
        let value_in = |axis: &str, entry: &Value| match entry {
            Value::Table(settings) => value_of(settings, key),
            // The key's own axis can contain tables and plain values, such as `"linear"` for `head`.
            value => (full(axis) == full(key)).then(|| keys::plain(value)),
        };
        for (axis, entries) in &mut self.grid {
            let Some(entries) = entries.as_array_mut() else { continue };
            let in_tables = |entry: &Value| entry.is_table() && value_in(axis, entry).is_some();
            if !entries.iter().any(in_tables) {
                continue;
            }
            let known: Vec<String> =
                entries.iter().filter_map(|entry| value_in(axis, entry)).collect();
            if values.iter().all(|value| known.contains(value)) {
                entries.retain(|entry| {
                    value_in(axis, entry).is_some_and(|value| values.contains(&value))
                });
                return Ok(true);
            }
            // The caller replaces the whole axis.
            if full(axis) == full(key) {
                return Ok(false);
            }
            return Err(fixed(word, format!("axis `{axis}`"), known));
        }
        let known: Vec<String> = self.cells.iter().filter_map(|cell| value_of(cell, key)).collect();
        if known.is_empty() {
            return Ok(false);
        }
        let is_selected =
            |cell: &Table| value_of(cell, key).is_some_and(|value| values.contains(&value));
        if !self.grid.is_empty() || !values.iter().all(|value| known.contains(value)) {
            return Err(fixed(word, "[[cells]]".into(), known));
        }
        self.cells.retain(is_selected);
        Ok(true)
    }

    /// A name for a study given by words. Equal words give equal names.
    pub fn name_of(words: &[String]) -> String {
        let varied: Vec<&str> = words
            .iter()
            .filter(|word| word.contains(',') || word.contains(".."))
            .filter_map(|word| word.split('=').next())
            .collect();
        let name = if varied.is_empty() { "study".to_owned() } else { varied.join("-") };
        let number = label::fingerprint(&words.join(" "));
        label::file_name(&format!("{}-{number:08x}", name.replace('.', "-")))
    }
}

/// The value of a key in settings, as text.
fn value_of(settings: &Table, key: &str) -> Option<String> {
    let flat = keys::flatten(settings);
    flat.iter().find(|(name, _)| full(name) == full(key)).map(|(_, value)| keys::plain(value))
}

fn fixed(word: &KeyValues, place: String, mut known: Vec<String>) -> StudyError {
    known.dedup();
    let KeyValues { key, values } = word;
    StudyError::Fixed { key: key.clone(), value: values.join(","), place, known: known.join(", ") }
}

/// Removes a key from a table, which is the section `section` of a document (empty: the whole
/// document). `data.transitions = 5` is a nested table. The key `head` means only `kind` of the
/// section `head`.
fn remove(table: &mut Table, section: &str, key: &str) {
    table.retain(|name, value| {
        let path = if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") };
        let whole = full(&path);
        match value.as_table_mut() {
            Some(inner) if whole != full(key) || whole != path => {
                remove(inner, &path, key);
                !inner.is_empty()
            }
            _ => whole != full(key),
        }
    });
}

/// Sets a dotted key and replaces its old value. The key `head` means only `kind` of the section
/// `head`.
fn insert(table: &mut Table, key: &str, value: Value) -> Option<Value> {
    let Some((section, rest)) = key.split_once('.') else {
        return match table.get_mut(key) {
            Some(Value::Table(inner)) if full(key) != key => inner.insert("kind".into(), value),
            _ => table.insert(key.to_owned(), value),
        };
    };
    // `head = "linear"` is `head.kind`.
    let inner = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
    if !inner.is_table() {
        let kind = inner.clone();
        *inner = Value::Table(Table::from_iter([("kind".to_owned(), kind)]));
    }
    insert(inner.as_table_mut()?, rest, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use overtone_testkit::{check_error, sentences};

    fn study(line: &str) -> Result<Study, String> {
        let mut study = Study::default();
        for word in line.split_whitespace() {
            let word = KeyValues::new(word, |key| key == "evaluation.target");
            study
                .add(&word.map_err(|error| error.to_string())?)
                .map_err(|error| error.to_string())?;
        }
        Ok(study)
    }

    #[test]
    fn several_values_make_a_grid() {
        let study = study(
            "head=linear,fourier seed=1..3,7 game=seaquest evaluation.target=p50,p90 head.bins=9",
        )
        .unwrap();
        assert_eq!(study.seeds, [1, 2, 3, 7]);
        let cells = study.cells().unwrap();
        assert_eq!(cells.len(), 8);
        assert_eq!(
            cells[4].words,
            ["evaluation.target=p50,p90", "game=seaquest", "head.bins=9", "head=fourier", "seed=1"]
        );
        assert_eq!(cells[4].id, "head=fourier_s1");
    }

    #[test]
    fn a_word_replaces_the_values_of_a_document() {
        let mut study: Study = toml::from_str(
            "seeds = [1]\n[settings]\nhead = \"linear\"\n[grid]\na = [1, 2]\nb.c = [1, 2]\n",
        )
        .unwrap();
        study.add(&KeyValues::new("b.c=4", |_| false).unwrap()).unwrap();
        study.add(&KeyValues::new("a=3", |_| false).unwrap()).unwrap();
        study.add(&KeyValues::new("head.frequencies=9", |_| false).unwrap()).unwrap();
        let words = study.cells().unwrap()[0].words.join(" ");
        assert_eq!(words, "a=3 b.c=4 head.frequencies=9 head=linear seed=1");
    }

    #[test]
    fn a_word_for_a_variant_keeps_the_other_keys_of_its_section() {
        for document in [
            "[settings]\nhead.kind = \"linear\"\nhead.bins = 9\n",
            "[settings]\n\"head.kind\" = \"linear\"\nhead.bins = 9\n",
            "[settings]\nhead.bins = 9\n[grid]\nhead.kind = [\"linear\", \"gmm\"]\n",
        ] {
            let with = |word: &str| -> Vec<String> {
                let mut study: Study = toml::from_str(document).unwrap();
                study.add(&KeyValues::new(word, |_| false).unwrap()).unwrap();
                // The written document is read again.
                let study: Study = toml::from_str(&study.to_toml().unwrap()).unwrap();
                study.cells().unwrap().into_iter().map(|cell| cell.words.join(" ")).collect()
            };
            for word in ["head=fourier", "head.kind=fourier"] {
                assert_eq!(with(word), ["head.bins=9 head=fourier"], "{document}");
            }
            let both = ["head.bins=9 head=tanh", "head.bins=9 head=fourier"];
            assert_eq!(with("head=tanh,fourier"), both, "{document}");
            assert!(with("head.bins=4")[0].starts_with("head.bins=4 head="), "{document}");
        }
    }

    #[test]
    fn an_escaped_comma_is_part_of_a_value() {
        let values = |word: &str| KeyValues::new(word, |key| key == "b").unwrap().values;
        assert_eq!(values(r"dataset=folder/a\,b/own.npz"), ["folder/a,b/own.npz"]);
        assert_eq!(values(r"dataset=a\,b.npz,c\d.npz"), ["a,b.npz", r"c\d.npz"]);
        assert_eq!(values("b=p50,p90"), ["p50,p90"]);
    }

    /// A task is written in the same way as for one run.
    #[test]
    fn a_keyword_argument_belongs_to_its_task() {
        let values = |word: &str| KeyValues::new(word, |_| false).unwrap().values;
        assert_eq!(values("task=gymnasium/Pendulum-v1,g=9.81"), ["gymnasium/Pendulum-v1,g=9.81"]);
        let several = "task=gymnasium/a:make,sizes=[1,2],n=3,gymnasium/CartPole-v1,seaquest";
        let expected = ["gymnasium/a:make,sizes=[1,2],n=3", "gymnasium/CartPole-v1", "seaquest"];
        assert_eq!(values(several)[..2], expected[..2]);
        assert_eq!(values("game=seaquest,bank_heist"), ["seaquest", "bank_heist"]);
    }

    #[test]
    fn a_word_selects_among_tables() {
        let document = "[grid]\nagent = [{ algorithm = \"iql\" }, { algorithm = \"rvs\", a = 1 }]\n\
                        head = [\"linear\", { head.kind = \"fourier\", b = 2 }, \
                        { head.kind = \"fourier\", b = 3 }]\n";
        let with = |word: &str| -> Result<Vec<String>, String> {
            let mut study: Study = toml::from_str(document).unwrap();
            study
                .add(&KeyValues::new(word, |_| false).unwrap())
                .map_err(|error| error.to_string())?;
            Ok(study.cells().unwrap().into_iter().map(|cell| cell.words.join(" ")).collect())
        };
        assert_eq!(with("algorithm=rvs").unwrap().len(), 3);
        assert!(with("algorithm=rvs").unwrap().iter().all(|words| words.contains("a=1")));
        assert_eq!(
            with("head=fourier").unwrap(),
            [
                "algorithm=iql b=2 head=fourier",
                "algorithm=iql b=3 head=fourier",
                "a=1 algorithm=rvs b=2 head=fourier",
                "a=1 algorithm=rvs b=3 head=fourier"
            ]
        );
        // A new value replaces the key's own axis. Other axes reject it.
        assert_eq!(with("head=gmm").unwrap().len(), 2);
        for word in ["algorithm=td3_bc", "b=9"] {
            let error = with(word).unwrap_err();
            assert!(error.starts_with(&format!("{word}: the study sets ")), "{error}");
            sentences::check(&error);
        }
    }

    #[test]
    fn a_word_selects_among_cells() {
        let mut study: Study =
            toml::from_str("[[cells]]\na = 1\nb = 1\n[[cells]]\na = 2\n").unwrap();
        let error = study.add(&KeyValues::new("a=3", |_| false).unwrap()).unwrap_err();
        check_error!(error, StudyError::Fixed { key, .. } if key == "a");
        study.add(&KeyValues::new("a=1", |_| false).unwrap()).unwrap();
        assert_eq!(study.cells().unwrap()[0].words, ["a=1", "b=1"]);
    }

    #[test]
    fn invalid_words_are_rejected() {
        for (line, expected) in [
            ("seed=x", "seed=x: expected a whole number"),
            ("seed=5..1", "a range must increase"),
            ("seed=0..10000", "at most 10,000 numbers"),
            ("a=1,,2", "between two commas"),
            ("a", "key=value"),
        ] {
            let error = study(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn the_same_words_have_the_same_name() {
        let name = |line: &str| {
            Study::name_of(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        };
        assert!(name("head=a,b seed=1..2 game=x").starts_with("head-seed-"));
        assert_eq!(name("a=1,2"), name("a=1,2"));
        assert_ne!(name("a=1,2"), name("a=1,3"));
    }
}
