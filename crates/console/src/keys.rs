//! Keys: the flat names of a configuration, their defaults, and words `key=value`.
//!
//! A configuration is a TOML document. A key is the path of a value in it, such as
//! `head.frequencies`. `head` and `attention` are short for their `kind`; `targets` is another name
//! of `target`.

use std::{collections::BTreeMap, num::IntErrorKind, path::Path};

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

/// The document with these values.
pub fn unflatten(keys: &Keys) -> Table {
    fn insert(table: &mut Table, key: &str, value: &Value) {
        match key.split_once('.') {
            None => {
                table.insert(key.to_owned(), value.clone());
            }
            Some((section, rest)) => {
                let inner = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
                if let Value::Table(inner) = inner {
                    insert(inner, rest, value);
                }
            }
        }
    }
    let mut root = Table::new();
    for (key, value) in keys {
        insert(&mut root, key, value);
    }
    root
}

/// The `defaults` of a command, a document, changed by `words` (each `key=value`).
///
/// # Errors
/// As [`apply`], and when `defaults` is not a valid document.
pub fn given(defaults: &str, words: &[String]) -> Result<Keys> {
    let mut keys = flatten(&defaults.parse()?);
    apply(&mut keys, words)?;
    Ok(keys)
}

/// A value as text; empty if it does not exist.
pub fn text(keys: &Keys, key: &str) -> String {
    keys.get(key).map(plain).unwrap_or_default()
}

/// A whole number.
///
/// # Errors
/// When it is not a whole number, or is below `least`.
pub fn whole(keys: &Keys, key: &str, least: usize) -> Result<usize> {
    let text = text(keys, key);
    match (text.parse(), least) {
        (Ok(number), _) if number >= least => Ok(number),
        (_, 0) => bail!("{key}={text}: expected 0 or more"),
        _ => bail!("{key}={text}: expected at least {least}"),
    }
}

/// Sets the values of `overrides` (each `key=value`), which take the types of the defaults.
///
/// # Errors
/// For a word without `=`, an unknown key (with the nearest one), or a value of another type.
pub fn apply(keys: &mut Keys, overrides: &[String]) -> Result<()> {
    for word in overrides {
        let (key, text) = split(word)?;
        let Some(old) = keys.get(&key) else {
            match nearest(&key, keys) {
                Some(nearest) => bail!(
                    "unknown option `{key}`; did you mean `{}`? (--help lists all)",
                    short(nearest)
                ),
                None => bail!("unknown option `{key}` (--help lists all)"),
            }
        };
        let new = typed(text, old).map_err(|expected| {
            anyhow::anyhow!("{key}={text}: expected {expected}, such as {key}={}", plain(old))
        })?;
        keys.insert(key, new);
    }
    Ok(())
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

/// Divides `words` into options of a command with these `defaults`, and names. A word with `=` is a
/// name, such as a study's run, if its key is unknown, and it exists here or in the directory of
/// `runs=`.
///
/// # Errors
/// When `defaults` is not a valid document.
pub fn sorted(defaults: &str, words: &[String]) -> Result<(Vec<String>, Vec<String>)> {
    let known = flatten(&defaults.parse()?);
    let runs = Path::new(last(words, "runs").unwrap_or("runs"));
    let is_there = |name: &str| Path::new(name).exists() || runs.join(name).exists();
    let is_option = |word: &String| {
        split(word).is_ok_and(|(key, _)| known.contains_key(&key) || !is_there(word))
    };
    Ok(words.iter().cloned().partition(is_option))
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

/// The part of `--help` after the arguments of a command: its `options`, a commented document, and
/// the text `after` them.
pub fn after_help(options: &str, after: &str) -> String {
    format!("Options and their defaults:\n{}\n{after}", help(options))
}

/// Lines `key=default` and reason of a commented document. The comment above a key is its reason.
pub fn help(document: &str) -> String {
    let mut section = String::new();
    let mut reason = String::new();
    let mut lines = String::new();
    for line in document.lines() {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            if !reason.is_empty() {
                reason.push(' ');
            }
            reason += comment.trim();
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = format!("{name}.");
        } else if let Some((name, value)) = line.split_once(" = ") {
            let value = value.trim_matches('"');
            let key = format!("{section}{name}");
            lines += &format!("  {}={value}\n", short(&key));
            if !reason.is_empty() {
                lines += &format!("      {reason}\n");
            }
        }
        // The reason belongs to this key, or to the whole document.
        reason.clear();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        let text = "a = 1\n[train]\nrate = 0.5\n[head]\nkind = \"linear\"\nfrequencies = 14\n";
        flatten(&text.parse().unwrap())
    }

    #[track_caller]
    fn refused(word: &str, parts: &[&str]) {
        let error = apply(&mut keys(), &[word.to_owned()]).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{error:?} does not contain {part:?}");
        }
    }

    #[test]
    fn flattening_round_trips() {
        assert_eq!(flatten(&unflatten(&keys())), keys());
    }

    #[test]
    fn overrides_take_the_type_of_the_default() {
        let mut keys = keys();
        let words = ["a=1_000", "train.rate=2", "head=fourier", "head.frequencies=8"];
        apply(&mut keys, &words.map(str::to_owned)).unwrap();
        assert_eq!(keys["a"], Value::Integer(1000));
        assert_eq!(keys["train.rate"], Value::Float(2.0));
        assert_eq!(keys["head.kind"], Value::String("fourier".into()));
        apply(&mut keys, &["head={normal = 0.5}".to_owned()]).unwrap();
        assert_eq!(keys["head.kind"]["normal"], Value::Float(0.5));
    }

    #[test]
    fn a_name_may_have_the_sign_of_an_option_in_it() {
        let words = ["a=1", "src=1", "b=2", "x", "runs=."].map(str::to_owned);
        // A word of an unknown key that does not exist is an unknown option.
        let (options, names) = sorted("a = 1\nruns = \"runs\"\n", &words).unwrap();
        assert_eq!((options, names), (vec_of(&["a=1", "src=1", "b=2", "runs=."]), vec_of(&["x"])));
        let folder = std::env::temp_dir().join(format!("b=2-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let name = folder.display().to_string();
        let found = sorted("a = 1\n", &["a=1".to_owned(), name.clone()]);
        std::fs::remove_dir(&folder).unwrap();
        assert_eq!(found.unwrap(), (vec_of(&["a=1"]), vec![name]));
    }

    fn vec_of(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn bad_overrides_are_refused_in_one_sentence() {
        refused("seaquest", &["got `seaquest`", "key=value"]);
        refused("head.frequency=8", &["unknown option `head.frequency`", "`head.frequencies`"]);
        refused("head.freq=8", &["`head.frequencies`"]);
        refused("rate=8", &["`train.rate`"]);
        refused("haed=linear", &["did you mean `head`? ("]);
        refused("rounds=8", &["unknown option `rounds` (--help lists all)"]);
        refused("a=x", &["a=x", "a whole number", "a=1"]);
        // TOML has signed 64-bit integers.
        refused("a=18446744073709551615", &["a whole number of at most 9223372036854775807, such"]);
        refused("head={normal=}", &["head.kind={normal=}", "a word, or a table", "linear"]);
        refused("train.rate=fast", &["a number", "train.rate=0.5"]);
    }

    #[test]
    fn whole_numbers_have_a_least() {
        let whole = |text: &str, least| {
            let keys = Keys::from([("n".to_owned(), Value::String(text.to_owned()))]);
            whole(&keys, "n", least).map_err(|error| error.to_string())
        };
        assert_eq!((whole("3", 0), whole("1", 1)), (Ok(3), Ok(1)));
        assert_eq!(whole("-1", 0), Err("n=-1: expected 0 or more".into()));
        assert_eq!(whole("0", 1), Err("n=0: expected at least 1".into()));
    }

    #[test]
    fn help_lists_each_key_with_its_default_and_reason() {
        let document = "# Of all.\n\n# Why a,\n# and when.\na = 1\nb = 2\n\
                        [head]\n# Which.\nkind = \"linear\"\n";
        let expected = "  a=1\n      Why a, and when.\n  b=2\n  head=linear\n      Which.\n";
        assert_eq!(help(document), expected);
    }
}
