//! Keys: the flat names of a configuration's values, and words `key=value`.
//!
//! A configuration is a TOML document. A key is the path of a value in it, such as
//! `head.frequencies`. `head` and `attention` are short for their `kind`; `targets` is another name
//! of `target`.

use std::{collections::BTreeMap, num::IntErrorKind};

use anyhow::{Result, bail};
use toml::{Table, Value};

/// Values by flat key.
pub type Keys = BTreeMap<String, Value>;

/// The values of a document by flat key.
pub fn flatten(table: &Table) -> Keys {
    fn walk(prefix: &str, table: &Table, keys: &mut Keys) {
        for (name, value) in table {
            let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            match value {
                Value::Table(inner) => walk(&key, inner, keys),
                value => {
                    keys.insert(key, value.clone());
                }
            }
        }
    }
    let mut keys = Keys::new();
    walk("", table, &mut keys);
    keys
}

/// Splits a word into its key in the configuration and its value.
///
/// # Errors
/// For a word without `=`.
pub fn split(word: &str) -> Result<(String, &str)> {
    let Some((key, text)) = word.split_once('=') else {
        bail!("expected key=value, such as seed=231, got `{word}`");
    };
    let key = match key {
        "head" | "attention" => format!("{key}.kind"),
        "targets" => "target".to_owned(),
        _ => key.to_owned(),
    };
    Ok((key, text))
}

/// The value of the last word `key=value`.
pub fn last<'a>(words: &'a [String], key: &str) -> Option<&'a str> {
    let values = words.iter().rev().filter_map(|word| word.split_once('='));
    values.into_iter().find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// The first key that several of `words` (each `key=value`) set, with its values.
pub fn repeated(words: &[String]) -> Option<(String, [&str; 2])> {
    let mut seen = BTreeMap::new();
    words.iter().filter_map(|word| split(word).ok()).find_map(|(key, value)| {
        let before = seen.insert(key.clone(), value).filter(|before| *before != value)?;
        Some((key, [before, value]))
    })
}

/// The short form of a key.
pub fn short(key: &str) -> &str {
    match key {
        "head.kind" => "head",
        "attention.kind" => "attention",
        _ => key,
    }
}

/// Minimum similarity of a suggested key: `learning_rte` and `learning_rate` have 0.99, `rounds`
/// and `out` 0.67.
const MIN_SIMILARITY: f64 = 0.8;

/// The most similar known key, if any is similar to `key`.
pub fn nearest<'a>(key: &str, known: &'a Keys) -> Option<&'a str> {
    let similar = known.keys().map(|other| (likeness(key, other), other.as_str()));
    let (likeness, nearest) = similar.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (likeness >= MIN_SIMILARITY).then_some(nearest)
}

/// Similarity of two keys, of their short forms, or of their last parts; 1 for equal ones.
fn likeness(key: &str, known: &str) -> f64 {
    let last = known.rsplit('.').next().unwrap_or(known);
    let alike = |name: &str| strsim::jaro_winkler(key, name);
    alike(known).max(alike(last)).max(alike(short(known)))
}

/// Parses `text` as a value of the type of `like`.
///
/// # Errors
/// The expected type, when `text` has another.
pub fn typed(text: &str, like: &Value) -> Result<Value, &'static str> {
    let text = text.trim();
    let digits = text.replace('_', "");
    match like {
        Value::Integer(_) => {
            digits.parse().map(Value::Integer).map_err(|error| match error.kind() {
                IntErrorKind::PosOverflow => "a whole number of at most 9223372036854775807",
                _ => "a whole number",
            })
        }
        Value::Float(_) => digits.parse().map(Value::Float).map_err(|_| "a number"),
        Value::Boolean(_) => text.parse().map(Value::Boolean).map_err(|_| "true or false"),
        _ if text.starts_with('{') => {
            let table: Result<Table, _> = format!("value = {text}").parse();
            let value = table.ok().and_then(|mut table| table.remove("value"));
            value.ok_or("a word, or a table in TOML")
        }
        _ => Ok(Value::String(text.to_owned())),
    }
}

/// A value as text after `key=`.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Float(number) if *number != 0.0 && number.abs() < 1e-3 => format!("{number:e}"),
        other => other.to_string(),
    }
}

/// The message of a TOML error, without the excerpt of the document.
pub fn one_line(error: toml::de::Error) -> anyhow::Error {
    let message = error.message().trim().replace('\n', " ");
    let whole = ["usize", "u64", "u32"].iter().fold(message, |message, name| {
        message.replace(&format!("expected {name}"), "expected a whole number, 0 or more")
    });
    anyhow::anyhow!("{whole}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        let text = "a = 1\n[train]\nrate = 0.5\n[head]\nkind = \"linear\"\nfrequencies = 14\n";
        flatten(&text.parse().unwrap())
    }

    #[test]
    fn keys_have_the_names_of_their_sections() {
        let expected = ["a", "head.frequencies", "head.kind", "train.rate"];
        assert_eq!(keys().into_keys().collect::<Vec<_>>(), expected);
        assert_eq!(split("head=fourier").unwrap(), ("head.kind".to_owned(), "fourier"));
        let error = split("seaquest").unwrap_err().to_string();
        assert!(error.contains("key=value") && error.contains("got `seaquest`"), "{error}");
    }

    #[test]
    fn values_take_the_type_of_the_default() {
        let read = |text, key: &str| typed(text, &keys()[key]);
        assert_eq!(read("1_000", "a"), Ok(Value::Integer(1000)));
        assert_eq!(read("2", "train.rate"), Ok(Value::Float(2.0)));
        assert_eq!(read("fourier", "head.kind"), Ok(Value::String("fourier".into())));
        assert_eq!(read("{normal = 0.5}", "head.kind").unwrap()["normal"], Value::Float(0.5));
        assert_eq!(read("{normal=}", "head.kind"), Err("a word, or a table in TOML"));
        assert_eq!(read("fast", "train.rate"), Err("a number"));
    }

    #[test]
    fn the_nearest_key_is_similar() {
        let known = keys();
        for (key, expected) in [
            ("head.frequency", Some("head.frequencies")),
            ("head.freq", Some("head.frequencies")),
            ("rate", Some("train.rate")),
            ("haed", Some("head.kind")),
            ("rounds", None),
        ] {
            assert_eq!(nearest(key, &known), expected, "{key}");
        }
    }
}
