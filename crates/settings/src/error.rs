//! [`ConfigError`]: an invalid configuration.

use std::path::PathBuf;

use overtone_console::keys::{self, Keys};
use thiserror::Error;
use toml::Value;

use crate::meant::nearest_of;

/// An invalid configuration, from words or from a run's file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// An unknown key.
    #[error(
        "unknown option `{key}`{} (--help-all lists all)",
        hint(key, .nearest.as_deref())
    )]
    UnknownKey {
        /// The key.
        key: String,
        /// The most similar known key.
        nearest: Option<String>,
    },
    /// A key of other variants, or without effect next to the other settings.
    #[error("{key}={text} needs {of}; {chosen}")]
    OtherVariant {
        /// The key.
        key: String,
        /// Its value.
        text: String,
        /// The choices that the key needs: `algorithm=iql`.
        of: String,
        /// The choice of this run: `this run has algorithm=rvs`.
        chosen: String,
    },
    /// An invalid value of a key.
    #[error("{key}={text}: {reason}")]
    Value {
        /// The key.
        key: String,
        /// The value.
        text: String,
        /// The expected value.
        reason: String,
    },
    /// A file with a missing or an unknown key.
    #[error("{} is damaged: {reason}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reader's error.
        reason: String,
    },
    /// A file of another version.
    #[error(
        "{}: written by another version of overtone (format {format}, expected {}). Train again", .path.display(), crate::run_config::FORMAT
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: String,
    },
}

fn hint(key: &str, nearest: Option<&str>) -> String {
    match nearest {
        _ if key.ends_with("threads") || key.ends_with("workers") => {
            "; the environment variable RAYON_NUM_THREADS sets the number of threads".into()
        }
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None => String::new(),
    }
}

impl ConfigError {
    /// A key that is not among the `known` ones.
    pub fn unknown(key: &str, known: &Keys) -> Self {
        Self::UnknownKey { key: key.into(), nearest: nearest_of(key, known) }
    }

    /// A value that is not of the `expected` type of `like`.
    pub fn other_type(key: &str, text: &str, expected: &str, like: &Value) -> Self {
        let example = format!("{}={}", keys::short(key), keys::plain(like));
        Self::value(key, text, format!("expected {expected}, such as {example}"))
    }

    /// An invalid value of `key`.
    pub fn value(key: &str, text: &str, reason: impl Into<String>) -> Self {
        let key = keys::short(key).to_owned();
        Self::Value { key, text: text.to_owned(), reason: reason.into() }
    }

    /// A key that needs `of`, next to `chosen`.
    pub fn other(key: &str, text: &str, of: String, chosen: String) -> Self {
        let key = keys::short(key).to_owned();
        Self::OtherVariant { key, text: text.to_owned(), of, chosen }
    }
}
