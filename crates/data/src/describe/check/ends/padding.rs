//! Padding next to the ends of episodes: rows that repeat the row before or show zeros, without an
//! action or a reward.

use super::Misplaced;
use super::sequence::Sequence;

/// The padding of a recording, if it has any.
pub(super) fn padded(sequence: &Sequence) -> Option<Misplaced> {
    let rows = &sequence.rows;
    let n = rows.len();
    let is_idle = |row: usize| rows[row].is_zero_action && rows[row].reward == 0.0;
    let is_zero = |row: usize| sequence.observation(row).iter().all(|&number| number == 0.0);
    let follows_end = |row: usize| row == 0 || rows[row - 1].end.is_some();
    let repeats =
        |row: usize| row > 0 && sequence.observation(row) == sequence.observation(row - 1);
    // If all rows of zeros are idle, the task itself never shows zeros.
    let zeros: Vec<usize> = (0..n).filter(|&row| is_zero(row)).collect();
    let zero_is_padding = zeros.len() < n && zeros.iter().all(|&row| is_idle(row));
    // If observations recur, an equal one after an end is chance unless all such rows are idle.
    let rarely_repeats = sequence.rarely_repeats();
    let equal_after_end: Vec<usize> =
        (1..n).filter(|&row| follows_end(row) && repeats(row)).collect();
    let n_idle = equal_after_end.iter().filter(|&&row| is_idle(row)).count();
    let repeat_is_padding = rarely_repeats || 10 * n_idle >= 9 * equal_after_end.len();
    let is_padding = |row: usize| {
        let lacks_one = rows[row].is_zero_action || rows[row].reward == 0.0;
        (zero_is_padding && is_zero(row))
            || (repeat_is_padding && repeats(row) && (is_idle(row) || rarely_repeats && lacks_one))
    };
    let mut padding = vec![false; n];
    for row in 0..n {
        let is_next = follows_end(row) || padding[row - 1];
        padding[row] = is_next && is_padding(row);
    }
    // Before a flag a task may rest, so all of these must hold there.
    for row in (0..n).rev() {
        let is_next = rows[row].end.is_some() || (row + 1 < n && padding[row + 1]);
        let is_real = rarely_repeats || is_zero(row);
        padding[row] |= is_next && is_real && is_idle(row) && is_padding(row);
    }
    let n_padding = padding.iter().filter(|&&is_padding| is_padding).count();
    let begins = |&row: &usize| padding[row] && (row == 0 || !padding[row - 1]);
    let runs: Vec<usize> = (0..n).filter(begins).collect();
    let begins = |&row: &usize| !padding[row] && (follows_end(row) || padding[row - 1]);
    let n_episodes = (0..n).filter(begins).count();
    if runs.len() < 2 || n_padding < 3 || 10 * runs.len() < n_episodes {
        return None;
    }
    Some(Misplaced::new(
        format!(
            "{n_padding} rows of padding (zeros, or the row before again, without an action or a \
             reward) in {} places, the first in {}",
            runs.len(),
            sequence.place(runs[0])
        ),
        "Leave the padding out of every array (`observations[mask]`, with a mask of the real rows), \
         and flag the last real row of each episode",
    ))
}
