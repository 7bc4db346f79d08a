//! [`Error`]: reasons for a refused file or call.

use std::fmt;

/// A refused file or call, with a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The file is damaged, or is not an agent that this version plays.
    File(String),
    /// The call does not fit the agent.
    Call(String),
    /// A result is not a finite number.
    NotFinite(String),
}

impl Error {
    /// The error of an output that is not finite.
    pub(crate) fn not_finite() -> Self {
        let reason = "the agent's output is not finite. Check the observation, and the weights";
        Self::NotFinite(reason.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(reason) | Self::Call(reason) | Self::NotFinite(reason) => {
                f.write_str(reason)
            }
        }
    }
}

impl std::error::Error for Error {}

/// The error of a file with this reason.
pub(crate) fn damaged(reason: impl Into<String>) -> Error {
    Error::File(reason.into())
}
