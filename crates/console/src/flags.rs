//! Parsing of a command line, with help for flags that should be keys.

use std::ffi::OsString;

/// Parses the program's words, its own name first. `key_of` is the key for a flag's name after these
/// words; `None` if `key=value` cannot follow them.
///
/// # Errors
/// The exit code, when the words are invalid or request help, after printing the error or the help.
pub fn parse<P: clap::Parser>(
    words: &[OsString],
    key_of: impl Fn(&[String], &str) -> Option<String>,
) -> Result<P, u8> {
    P::try_parse_from(words).map_err(|error| {
        let words: Vec<String> =
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        match as_key(&error, &words, key_of) {
            Some(word) => {
                warn!("error: write options as key=value: use {word} (--help lists all)");
            }
            // A closed output is ignored.
            None => drop(error.print()),
        }
        error.exit_code() as u8
    })
}

/// `seed=3` for `--seed 3`, if that flag made the words invalid.
fn as_key(
    error: &clap::Error,
    words: &[String],
    key_of: impl Fn(&[String], &str) -> Option<String>,
) -> Option<String> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    // A mistyped existing flag: clap suggests the right one.
    if error.get(ContextKind::SuggestedArg).is_some() {
        return None;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    let key = flag.strip_prefix("--").filter(|_| error.kind() == ErrorKind::UnknownArgument)?;
    let place = words.iter().position(|word| word.split('=').next() == Some(flag))?;
    let key = key_of(&words[..place], &key.replace('-', "_"))?;
    let value = match words[place].split_once('=') {
        Some((_, value)) => value,
        None => words.get(place + 1).map_or("…", String::as_str),
    };
    Some(format!("{key}={value}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::as_key;

    #[derive(Debug, Parser)]
    enum Program {
        Train {
            _options: Vec<String>,
        },
        Lint {
            _path: String,
        },
        Status {
            _words: Vec<String>,
            #[arg(long = "json")]
            _json: bool,
        },
    }

    #[test]
    fn flags_are_suggested_as_keys() {
        let as_word = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let key_of = |before: &[String], key: &str| {
                (before.len() > 1 && before[1] != "lint").then(|| key.to_owned())
            };
            let error = Program::try_parse_from(&words).err();
            error.and_then(|error| as_key(&error, &words, key_of))
        };
        assert_eq!(as_word("overtone train game=seaquest --seed 3").as_deref(), Some("seed=3"));
        assert_eq!(as_word("overtone train --run=a").as_deref(), Some("run=a"));
        assert_eq!(as_word("overtone train --seed").as_deref(), Some("seed=…"));
        assert_eq!(as_word("overtone lint --seed 3"), None);
        assert_eq!(as_word("overtone --seed 3"), None);
        assert_eq!(as_word("overtone status --jsn"), None);
        assert_eq!(as_word("overtone status --runs=a").as_deref(), Some("runs=a"));
        assert_eq!(as_word("overtone frain"), None);
        assert_eq!(as_word("overtone train game=seaquest"), None);
    }
}
