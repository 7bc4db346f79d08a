//! Which of the two layouts an HDF5 file has, and what the layouts say of episodes.

use overtone_core::{Episode, Outcome};

use crate::error::{DataError, Fault};
use crate::read::array_names::{LOG_PROBS, LOG_PROBS_IN_INFOS};
use crate::read::hdf5_file::Hdf5File;
use crate::read::source::Source;

/// How an HDF5 file is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hdf5Layout {
    /// All steps in arrays of one file, with flags where episodes end (Fu et al. 2020; v2).
    D4rl,
    /// A group of arrays for each episode (the Farama Foundation's format).
    Minari,
}

impl Hdf5Layout {
    /// The format's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::D4rl => "D4RL",
            Self::Minari => "Minari",
        }
    }

    /// Rows of an episode's observations after its last step.
    pub fn more_rows(self) -> usize {
        match self {
            Self::D4rl => 0,
            Self::Minari => 1,
        }
    }

    /// Names of the two flags: the task's end and the step limit's.
    pub fn flags(self) -> [&'static str; 2] {
        match self {
            Self::D4rl => ["terminals", "timeouts"],
            Self::Minari => ["terminations", "truncations"],
        }
    }

    /// Names of the array of log-probabilities; a file has one of them at most.
    pub fn log_probs(self) -> [&'static str; 2] {
        match self {
            Self::D4rl => [LOG_PROBS_IN_INFOS, LOG_PROBS],
            Self::Minari => [LOG_PROBS_IN_INFOS, "infos/behavior_log_probs"],
        }
    }
}

/// How an episode's last step ends it: `None` where neither flag is set.
pub(crate) fn outcome(terminated: bool, truncated: bool) -> Option<Outcome> {
    match (terminated, truncated) {
        (true, _) => Some(Outcome::Terminated),
        (false, true) => Some(Outcome::Truncated),
        (false, false) => None,
    }
}

/// Whether a file has episodes, and not D4RL's arrays.
pub(crate) fn is_minari(file: &Hdf5File) -> bool {
    !file.has("observations") && !numbered(file).is_empty()
}

/// Names of the episodes' groups, in the order of their numbers.
pub(crate) fn episode_names(file: &Hdf5File) -> Vec<String> {
    numbered(file).into_iter().map(|(_, name)| name).collect()
}

fn numbered(file: &Hdf5File) -> Vec<(u64, String)> {
    let number = |name: &str| name.strip_prefix("episode_")?.parse::<u64>().ok();
    let mut numbered: Vec<(u64, String)> =
        file.listed().into_iter().filter_map(|name| Some((number(&name)?, name))).collect();
    numbered.sort_unstable();
    numbered
}

/// Refuses a file that has `found` episodes if it says another number itself, or else its
/// description has `described`, or else the numbers of its episodes have a gap: an episode that is
/// a link to another file is not there. The first episode is called `name` and `_0`.
///
/// # Errors
/// `Fault::MissingEpisodes`.
pub(crate) fn check_total(
    file: &Hdf5File,
    name: &str,
    described: Option<i64>,
    found: usize,
) -> Result<(), DataError> {
    let numbers = numbered(file);
    let counted = || i64::try_from(numbers.last()?.0.checked_add(1)?).ok();
    let total = file.attribute("total_episodes").or(described).or_else(counted);
    let Some(total) = total.filter(|&total| usize::try_from(total) != Ok(found)) else {
        return Ok(());
    };
    let gap = numbers.iter().zip(0..).find(|((number, _), place)| number != place);
    let first = gap.map_or(found as u64, |(_, place)| place);
    let has_too_few = u64::try_from(total).is_ok_and(|total| total > found as u64);
    let missing = has_too_few.then(|| format!("{name}_{first}"));
    Err(Fault::MissingEpisodes { total, found, missing }.at(file.path()))
}

/// The rows with both flags.
pub(crate) fn doubled(terminals: &[bool], timeouts: &[bool]) -> Vec<usize> {
    let rows = terminals.iter().zip(timeouts).enumerate();
    rows.filter(|&(_, (&terminal, &timeout))| terminal && timeout).map(|(row, _)| row).collect()
}

/// The episodes that end where a flag is set, and which of them are finished: what follows
/// the last flag is not.
pub(crate) fn cut(terminals: &[bool], timeouts: &[bool]) -> (Vec<Episode>, Vec<bool>) {
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
