//! [`ConfigError`]: why words describe no run.

use std::path::PathBuf;

use thiserror::Error;

use crate::keys;

/// Why words, or a run's file, describe no configuration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// No variant has such a key.
    #[error("there is no option `{key}`{} (--help lists all)", hint(.nearest.as_deref()))]
    UnknownKey {
        /// The key.
        key: String,
        /// The known key that is most like it.
        nearest: Option<String>,
    },
    /// A key that was called otherwise.
    #[error("`{old}` is now called `{new}`")]
    Renamed {
        /// The old name.
        old: String,
        /// The name of today.
        new: String,
    },
    /// A key that other variants have, or that has an effect only with other settings.
    #[error("{key}={text} is for {of}; {chosen}")]
    OtherVariant {
        /// The key.
        key: String,
        /// Its value.
        text: String,
        /// The choices that have it: `algorithm=iql`.
        of: String,
        /// The choice of this run: `this run has algorithm=rvs`.
        chosen: String,
    },
    /// A value that its key cannot have.
    #[error("{key}={text}: {reason}")]
    Value {
        /// The key.
        key: String,
        /// The value.
        text: String,
        /// What is expected.
        reason: String,
    },
    /// A file without a key, or with another one than this program reads.
    #[error("{} is damaged: {reason}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the reader says.
        reason: String,
    },
    /// A file of another version.
    #[error(
        "{}: written by another version of overtone (format {format}, this program reads {}): \
         train again", .path.display(), super::FORMAT
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: String,
    },
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |key| format!("; the nearest is `{}`", keys::short(key)))
}

impl ConfigError {
    /// A value that `key` cannot have.
    pub fn value(key: &str, text: &str, reason: impl Into<String>) -> Self {
        let key = keys::short(key).to_owned();
        Self::Value { key, text: text.to_owned(), reason: reason.into() }
    }

    /// A key that `of` has, and not what was `chosen`.
    pub fn other(key: &str, text: &str, of: String, chosen: String) -> Self {
        let key = keys::short(key).to_owned();
        Self::OtherVariant { key, text: text.to_owned(), of, chosen }
    }
}
