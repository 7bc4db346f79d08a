//! D4RL's files, version 2 (Fu et al. 2020): all steps one after the other, with a flag where
//! the task ended and one where the step limit did.
//!
//! `next_observations`, `infos` and `metadata` may be there and are not read.

use overtone_core::{Episode, Outcome};

use crate::continuous::log::{ContinuousLog, LogFormat, outcome};
use crate::error::DataError;
use crate::hdf5_file::Hdf5File;

/// Reads a file and cuts it into episodes at its flags.
///
/// # Errors
/// When an array is missing, of another shape or length, or holds an impossible value.
pub fn read(file: &Hdf5File) -> Result<ContinuousLog, DataError> {
    // Before the long arrays are read.
    if !file.has("timeouts") {
        return Err(DataError::MissingDataset {
            path: file.path().to_path_buf(),
            dataset: "timeouts".into(),
            hint: "without it the episodes that a step limit ended cannot be told apart; D4RL's \
                   files have it from version 2 on (…-v2.hdf5)"
                .into(),
        });
    }
    let terminals = file.flags("terminals")?;
    let timeouts = file.flags("timeouts")?;
    let observations = file.matrix("observations")?;
    let actions = file.matrix("actions")?;
    let rewards = file.column("rewards")?;
    let lengths = [
        ("actions", actions.rows),
        ("rewards", rewards.len()),
        ("terminals", terminals.len()),
        ("timeouts", timeouts.len()),
    ];
    for (name, length) in lengths {
        if length != observations.rows {
            return Err(file.wrong_length(name, length, observations.rows, "observations"));
        }
    }
    let (episodes, finished) = cut(&terminals, &timeouts);
    let both = terminals.iter().zip(&timeouts).filter(|&(&terminal, &timeout)| terminal && timeout);
    let log = ContinuousLog {
        path: file.path().to_path_buf(),
        format: LogFormat::D4rl,
        observation_width: observations.width,
        action_width: actions.width,
        observations: observations.values,
        actions: actions.values,
        rewards,
        episodes,
        finished,
        odd: Vec::new(),
    };
    Ok(log.checked(both.count()))
}

/// The episodes that end where a flag is set, and which of them are finished: what follows
/// the last flag is not.
pub fn cut(terminals: &[bool], timeouts: &[bool]) -> (Vec<Episode>, Vec<bool>) {
    let (mut episodes, mut finished, mut start) = (Vec::new(), Vec::new(), 0);
    for (row, (&terminal, &timeout)) in terminals.iter().zip(timeouts).enumerate() {
        if let Some(outcome) = outcome(terminal, timeout) {
            episodes.push(Episode { start, length: row + 1 - start, outcome });
            finished.push(true);
            start = row + 1;
        }
    }
    if start < terminals.len() {
        let length = terminals.len() - start;
        episodes.push(Episode { start, length, outcome: Outcome::Truncated });
        finished.push(false);
    }
    (episodes, finished)
}

#[cfg(test)]
mod tests {
    use overtone_core::{Episode, Outcome};

    use super::cut;

    #[track_caller]
    fn check(flags: &str, expected: &[(usize, usize, Outcome, bool)]) {
        let set = |flag: char| flags.chars().map(|c| c == flag || c == 'b').collect::<Vec<_>>();
        let (episodes, finished) = cut(&set('t'), &set('l'));
        let expected: (Vec<_>, Vec<_>) = expected
            .iter()
            .map(|&(start, length, outcome, done)| (Episode { start, length, outcome }, done))
            .unzip();
        assert_eq!((episodes, finished), expected, "{flags}");
    }

    #[test]
    fn episodes_end_at_flags() {
        use Outcome::{Terminated, Truncated};
        // `t` the task's end, `l` the limit's, `b` both.
        check("", &[]);
        check("...", &[(0, 3, Truncated, false)]);
        check("..t", &[(0, 3, Terminated, true)]);
        check(
            "t.l.",
            &[(0, 1, Terminated, true), (1, 2, Truncated, true), (3, 1, Truncated, false)],
        );
        check(".b", &[(0, 2, Terminated, true)]);
    }
}
