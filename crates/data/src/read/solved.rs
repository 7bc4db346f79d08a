//! Ends of episodes from a mark at every row where the task is solved.

use overtone_core::{Episode, Outcome};

/// Ends the task in the last row of each episode that is solved there. Returns `[rows]`, where values
/// stop because an earlier row is solved; `None` if nowhere.
pub(crate) fn end_solved(episodes: &mut [Episode], mut solved: Vec<bool>) -> Option<Vec<bool>> {
    for episode in episodes {
        let last = episode.start + episode.length - 1;
        if std::mem::take(&mut solved[last]) {
            episode.outcome = Outcome::Terminated;
        }
    }
    solved.contains(&true).then_some(solved)
}
