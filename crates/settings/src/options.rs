//! Options of a command: a struct that [`options!`](overtone_model::options!) declares, changed by
//! words `key=value`.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use overtone_console::keys::{self, Keys};
use overtone_model::options::Options;
use serde::{Serialize, de::DeserializeOwned};
use toml::{Table, Value};

use crate::error::ConfigError;

/// The defaults of `O`, changed by `words`.
///
/// # Errors
/// For a word without `=`, an unknown key (with the nearest one), or a value of another type.
pub fn read<O: Options + Serialize + DeserializeOwned>(words: &[String]) -> Result<O> {
    read_without(words, &[])
}

/// As [`read`], for a command without the options `left_out`.
///
/// # Errors
/// As [`read`].
pub fn read_without<O>(words: &[String], left_out: &[&str]) -> Result<O>
where
    O: Options + Serialize + DeserializeOwned,
{
    let mut options = O::default();
    for word in words {
        let (key, text) = keys::split(word)?;
        let mut known = keys::flatten(&Table::try_from(&options)?);
        known.retain(|key, _| !left_out.contains(&key.as_str()));
        options = with(&options, &known, &key, text)?
            .ok_or_else(|| ConfigError::unknown(&key, &known))?;
    }
    Ok(options)
}

/// As [`read`], where words without `=` are the values of `places`, in this order.
///
/// # Errors
/// As [`read`], and for more words without `=` than `places`.
pub fn read_placed<O>(words: &[String], places: &[&str]) -> Result<O>
where
    O: Options + Serialize + DeserializeOwned,
{
    read(&placed::<O>(words, places)?)
}

/// `words` as `key=value`: those without `=` are the values of `places`, in this order.
///
/// # Errors
/// For more of them than `places`.
pub fn placed<O: Options>(words: &[String], places: &[&str]) -> Result<Vec<String>> {
    let (mut options, names) = and_names::<O>(words);
    if let Some(word) = names.get(places.len()) {
        bail!("`{word}`: unexpected word. Leave it out");
    }
    options.extend(places.iter().zip(names).map(|(key, name)| format!("{key}={name}")));
    Ok(options)
}

/// `config` with `text` at `key`; `None` if `known`, its values by key, does not have the key.
///
/// # Errors
/// When the value has another type.
pub fn with<T: Serialize + DeserializeOwned>(
    config: &T,
    known: &Keys,
    key: &str,
    text: &str,
) -> Result<Option<T>, ConfigError> {
    let Some(old) = known.get(key) else { return Ok(None) };
    let with = |value: Value| {
        let mut table = Table::try_from(config)?;
        *at(&mut table, key) = value;
        table.try_into().map(Some).map_err(keys::one_line)
    };
    let typed = keys::typed(text, old);
    let read = typed.clone().map_or_else(|_| with(Value::String(text.into())), with);
    // A number instead of a word, or a word instead of a number.
    let read = read.or_else(|error| with(Value::String(text.into())).map_err(|_| error));
    read.map_err(|error| match typed {
        Err(expected) if !matches!(old, Value::String(_)) => {
            ConfigError::other_type(key, text, expected, old)
        }
        _ => {
            let reason = error.to_string();
            // The key and the value are in the sentence already.
            let of_value = ["invalid value", "unknown variant"];
            let reason = match reason.split_once(", expected ") {
                Some((kind, expected)) if of_value.iter().any(|of| kind.starts_with(of)) => {
                    format!("expected {expected}")
                }
                _ => reason,
            };
            ConfigError::value(key, text, reason)
        }
    })
}

/// Checks the values of `options`.
///
/// # Errors
/// Names the first key whose value is 0.
pub fn at_least_1<const N: usize>(options: [(&str, u64); N]) -> Result<()> {
    match options.iter().find(|(_, value)| *value == 0) {
        Some((key, _)) => bail!("{key}=0: expected at least 1"),
        None => Ok(()),
    }
}

/// The value of an existing key.
fn at<'a>(table: &'a mut Table, key: &str) -> &'a mut Value {
    match key.split_once('.').map(|(section, rest)| (table.contains_key(section), section, rest)) {
        Some((true, section, rest)) => match &mut table[section] {
            Value::Table(inner) => at(inner, rest),
            other => other,
        },
        _ => table.entry(key).or_insert(Value::Boolean(false)),
    }
}

/// Whether `O` has an option `key`.
pub fn has<O: Options>(key: &str) -> bool {
    O::KEYS.iter().any(|(name, _)| *name == key)
}

/// Divides `words` into options of `O` and names. A word with `=` is a name, such as a study's run,
/// if its key is unknown, and [it exists](is_there).
pub fn and_names<O: Options>(words: &[String]) -> (Vec<String>, Vec<String>) {
    let is_option = |word: &String| {
        keys::split(word).is_ok_and(|(key, _)| has::<O>(&key) || !is_there(word, words))
    };
    words.iter().cloned().partition(is_option)
}

/// Whether a file, a run or a study is called `name`, here or in the directory of `runs=` among
/// `words`.
pub fn is_there(name: &str, words: &[String]) -> bool {
    let runs = Path::new(keys::last(words, "runs").unwrap_or("runs"));
    let folders = [PathBuf::new(), runs.to_owned(), runs.join("studies")];
    folders.iter().any(|folder| folder.join(name).exists())
}

/// The part of `--help` after the arguments of a command: its options, and the text `after` them.
pub fn help<O: Options + Serialize>(after: &str) -> String {
    help_without::<O>(&[], after)
}

/// As [`help`], for a command without the options `left_out`.
pub fn help_without<O: Options + Serialize>(left_out: &[&str], after: &str) -> String {
    after_help(&lines_without::<O>(left_out), after)
}

/// The [`lines`] of the options of `O`, without `left_out`.
pub fn lines_without<O: Options + Serialize>(left_out: &[&str]) -> String {
    lines::<O>(O::KEYS.iter().copied().filter(|(key, _)| !left_out.contains(key)))
}

/// The part of `--help` with these [`lines`].
pub fn after_help(lines: &str, after: &str) -> String {
    format!("Options and their defaults:\n{lines}\n{after}")
}

/// Lines `key=default` and documentation of `keys`, which are options of `O`.
pub fn lines<O: Default + Serialize>(
    keys: impl IntoIterator<Item = (&'static str, &'static str)>,
) -> String {
    let defaults = Table::try_from(O::default()).unwrap_or_default();
    // The keys of a section are those of `train`.
    let line = |(key, doc): (&str, &str)| match defaults.get(key) {
        Some(Value::Table(section)) => {
            let of = |name: &String| format!("As data.{key}.{name} of train.");
            let lines = section.keys().map(|name| line(&format!("{key}.{name}"), "", &of(name)));
            lines.collect()
        }
        value => line(key, &value.map_or(String::new(), keys::plain), doc),
    };
    keys.into_iter().map(line).collect()
}

/// The lines of a key with its default.
pub fn line(key: &str, default: &str, doc: &str) -> String {
    let doc = doc.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("  {}={default}\n      {doc}\n", keys::short(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    overtone_model::options! {
        pub struct Example {
            /// Why a,
            /// and when.
            pub a: u64 = 1,
            /// How fast.
            pub rate: f64 = 0.5,
            /// Where.
            pub runs: String = "runs".into(),
        }
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn values_take_the_type_of_their_field() {
        let read = read::<Example>(&words(&["a=1_000", "rate=2", "runs= x=y "])).unwrap();
        assert_eq!(read, Example { a: 1000, rate: 2.0, runs: "x=y".into() });
    }

    #[track_caller]
    fn refused(word: &str, parts: &[&str]) {
        let error = read_without::<Example>(&words(&[word]), &["rate"]).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{error:?} does not contain {part:?}");
        }
    }

    #[test]
    fn bad_words_are_refused_in_one_sentence() {
        refused("seaquest", &["got `seaquest`", "key=value"]);
        refused("run=8", &["unknown option `run`; did you mean `runs`? ("]);
        refused("updates=8", &["unknown option `updates` (--help-all lists all)"]);
        refused("rate=8", &["unknown option `rate` (--help-all lists all)"]);
        refused("a=x", &["a=x", "a whole number", "a=1"]);
        refused("a=-1", &["a=-1: expected a whole number, 0 or more"]);
        // TOML has signed 64-bit integers.
        refused("a=18446744073709551615", &["a whole number of at most 9223372036854775807, such"]);
        let error = read::<Example>(&words(&["rate=fast"])).unwrap_err().to_string();
        assert_eq!(error, "rate=fast: expected a number, such as rate=0.5");
    }

    #[test]
    fn a_name_may_have_the_sign_of_an_option_in_it() {
        // A word of an unknown key that does not exist is an unknown option.
        let (options, names) =
            and_names::<Example>(&words(&["a=1", "src=1", "b=2", "x", "runs=."]));
        assert_eq!((options, names), (words(&["a=1", "src=1", "b=2", "runs=."]), words(&["x"])));
        let folder = std::env::temp_dir().join(format!("b=2-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let name = folder.display().to_string();
        let found = and_names::<Example>(&["a=1".to_owned(), name.clone()]);
        std::fs::remove_dir(&folder).unwrap();
        assert_eq!(found, (words(&["a=1"]), vec![name]));
    }

    #[test]
    fn help_lists_each_key_with_its_default_and_reason() {
        let expected = "  a=1\n      Why a, and when.\n  rate=0.5\n      How fast.\n";
        assert_eq!(lines::<Example>(Example::KEYS[..2].iter().copied()), expected);
    }
}
