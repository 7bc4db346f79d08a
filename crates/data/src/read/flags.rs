//! The two flags that end an episode in files of vectors.

use overtone_core::Outcome;

use crate::columns::Columns;

/// How an episode's last step ends it: `None` where neither flag is set.
pub(super) fn outcome(terminated: bool, truncated: bool) -> Option<Outcome> {
    match (terminated, truncated) {
        (true, _) => Some(Outcome::Terminated),
        (false, true) => Some(Outcome::Truncated),
        (false, false) => None,
    }
}

/// Sentences about what may be odd in every format with flags, of which both were set in
/// `both_flags` steps.
pub(super) fn what_is_odd(columns: &Columns, both_flags: usize) -> Vec<String> {
    let mut odd = Vec::new();
    if both_flags > 0 {
        odd.push(format!(
            "steps flagged as the task's end and as a limit's, taken as the task's: {both_flags}"
        ));
    }
    let outside = columns.actions_outside();
    if outside > 0 {
        odd.push(format!("actions outside [-1, 1]: {outside}"));
    }
    odd
}
