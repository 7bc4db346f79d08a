//! How an outcome is stored and hashed.

use overtone_core::Outcome;

/// How an outcome is stored.
pub(crate) fn outcome_code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Terminated => 0,
        Outcome::Truncated => 1,
    }
}
