//! Keys: the flat names of a configuration, their defaults, and `key=value` on top.
//!
//! A configuration is a TOML document; a key is the path of a value in it, such as
//! `head.frequencies`. `head` and `attention` alone stand for their `kind`, and `targets` for
//! `target`, which may be several.

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

/// The `defaults` of a command, a document, with `words` (each `key=value`) on top.
///
/// # Errors
/// As [`apply`], and when `defaults` is no document.
pub fn given(defaults: &str, words: &[String]) -> Result<Keys> {
    let mut keys = flatten(&defaults.parse()?);
    apply(&mut keys, words)?;
    Ok(keys)
}

/// A value as it is written; empty where there is none.
pub fn text(keys: &Keys, key: &str) -> String {
    keys.get(key).map(plain).unwrap_or_default()
}

/// A whole number.
///
/// # Errors
/// When it is none, or below `least`.
pub fn whole(keys: &Keys, key: &str, least: usize) -> Result<usize> {
    let text = text(keys, key);
    match (text.parse(), least) {
        (Ok(number), _) if number >= least => Ok(number),
        (_, 0) => bail!("{key}={text}: must be 0 or more"),
        _ => bail!("{key}={text}: must be at least {least}"),
    }
}

/// Sets what `overrides` (each `key=value`) say; a value takes the type of the default.
///
/// # Errors
/// For a word without `=`, an unknown key (the nearest one is named), or a value of another
/// type.
pub fn apply(keys: &mut Keys, overrides: &[String]) -> Result<()> {
    for word in overrides {
        let (key, text) = split(word)?;
        let Some(old) = keys.get(&key) else {
            match nearest(&key, keys) {
                Some(nearest) => bail!(
                    "there is no option `{key}`; the nearest is `{}` (--help lists all)",
                    short(nearest)
                ),
                None => bail!("there is no option `{key}` (--help lists all)"),
            }
        };
        let new = typed(text, old).map_err(|expected| {
            anyhow::anyhow!("{key}={text}: expected {expected}, such as {key}={}", plain(old))
        })?;
        keys.insert(key, new);
    }
    Ok(())
}

/// Key and value of a word, the key as a configuration has it.
///
/// # Errors
/// For a word without `=`.
pub fn split(word: &str) -> Result<(String, &str)> {
    let Some((key, text)) = word.split_once('=') else {
        bail!("`{word}` is no option: options are written key=value, such as seed=231");
    };
    let key = match key {
        "head" | "attention" => format!("{key}.kind"),
        "targets" => "target".to_owned(),
        _ => key.to_owned(),
    };
    Ok((key, text))
}

/// What the last of `words` says that is `key=value`.
pub fn last<'a>(words: &'a [String], key: &str) -> Option<&'a str> {
    let said = words.iter().rev().filter_map(|word| word.split_once('='));
    said.into_iter().find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// `words` sorted into options of a command with these `defaults`, and names. A name may have a `=`
/// in it, as a study's runs do: where its key is unknown, and it names what is there, here or in
/// the folder that `runs=` says.
///
/// # Errors
/// When `defaults` is no document.
pub fn sorted(defaults: &str, words: &[String]) -> Result<(Vec<String>, Vec<String>)> {
    let known = flatten(&defaults.parse()?);
    let runs = Path::new(last(words, "runs").unwrap_or("runs"));
    let is_there = |name: &str| Path::new(name).exists() || runs.join(name).exists();
    let is_option = |word: &String| {
        split(word).is_ok_and(|(key, _)| known.contains_key(&key) || !is_there(word))
    };
    Ok(words.iter().cloned().partition(is_option))
}

/// A key as it is written before `=`.
pub fn short(key: &str) -> &str {
    match key {
        "head.kind" => "head",
        "attention.kind" => "attention",
        _ => key,
    }
}

/// Below this likeness two keys are not taken for one another: `learning_rte` is 0.99 like
/// `learning_rate`, `rounds` is 0.67 like `out`.
const ALIKE: f64 = 0.8;

/// The known key that was most likely meant, if any is like the one asked for.
pub fn nearest<'a>(asked: &str, known: &'a Keys) -> Option<&'a str> {
    let alike = known.keys().map(|key| (likeness(asked, key), key.as_str()));
    let (likeness, key) = alike.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (likeness >= ALIKE).then_some(key)
}

/// How alike two keys are, as a whole, in short, or in their last parts: 1 for equal ones.
fn likeness(asked: &str, known: &str) -> f64 {
    let last = known.rsplit('.').next().unwrap_or(known);
    let alike = |name: &str| strsim::jaro_winkler(asked, name);
    alike(known).max(alike(last)).max(alike(short(known)))
}

/// The value of `text`, of the type of `like`.
///
/// # Errors
/// When it is of another type; says which is expected.
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
            value.ok_or("a word, or a table as TOML has it")
        }
        _ => Ok(Value::String(text.to_owned())),
    }
}

/// A value as it is written after `key=`.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Float(number) if *number != 0.0 && number.abs() < 1e-3 => format!("{number:e}"),
        other => other.to_string(),
    }
}

/// What a TOML reader says, without the picture of the place.
pub fn one_line(error: toml::de::Error) -> anyhow::Error {
    let message = error.message().trim().replace('\n', " ");
    let whole = ["usize", "u64", "u32"].iter().fold(message, |message, name| {
        message.replace(&format!("expected {name}"), "expected a whole number, 0 or more")
    });
    anyhow::anyhow!("{whole}")
}

/// What `--help` says after the arguments of a command: its `options`, a commented document, and
/// what comes `after` them.
pub fn after_help(options: &str, after: &str) -> String {
    format!("Options, their defaults and why:\n{}\n{after}", help(options))
}

/// Lines `key=default  reason` of a commented document: the comment above a key, of one line
/// or several, is its reason.
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
        // Of this key, or of the document as a whole.
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
            assert!(error.contains(part), "{error:?} does not say {part:?}");
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
        // What is not there is an option that is not known, and is refused as one.
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
        refused("seaquest", &["`seaquest` is no option", "key=value"]);
        refused("head.frequency=8", &["no option `head.frequency`", "`head.frequencies`"]);
        refused("head.freq=8", &["`head.frequencies`"]);
        refused("rate=8", &["`train.rate`"]);
        refused("haed=linear", &["the nearest is `head` ("]);
        refused("rounds=8", &["no option `rounds` (--help lists all)"]);
        refused("a=x", &["a=x", "a whole number", "a=1"]);
        // What a document holds are 64 bits with a sign.
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
        assert_eq!(whole("-1", 0), Err("n=-1: must be 0 or more".into()));
        assert_eq!(whole("0", 1), Err("n=0: must be at least 1".into()));
    }

    #[test]
    fn help_gives_each_key_with_its_default_and_reason() {
        let document = "# Of all.\n\n# Why a,\n# and when.\na = 1\nb = 2\n\
                        [head]\n# Which.\nkind = \"linear\"\n";
        let expected = "  a=1\n      Why a, and when.\n  b=2\n  head=linear\n      Which.\n";
        assert_eq!(help(document), expected);
    }
}
