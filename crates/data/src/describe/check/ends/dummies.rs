//! First or last rows of episodes that hold a dummy in place of an action and a reward.

use std::collections::HashSet;

use super::Misplaced;
use super::sequence::{Row, Sequence};

/// Minimum number of episodes.
const LEAST_EPISODES: usize = 5;

/// Minimum number of different observations that explain one action by a dummy, and not by a policy.
const LEAST_OBSERVATIONS: usize = 3;

/// The first or last rows of all episodes, if they have the same action and a reward of 0, which
/// hardly any other row has.
pub(super) fn dummies(sequence: &Sequence) -> Option<Misplaced> {
    let rows = &sequence.rows;
    let begins = |row: usize| row == 0 || rows[row - 1].end.is_some();
    let ends = |row: usize| rows[row].end.is_some();
    let firsts: Vec<usize> = (0..rows.len()).filter(|&row| begins(row) && !ends(row)).collect();
    let lasts: Vec<usize> = (0..rows.len()).filter(|&row| ends(row) && !begins(row)).collect();
    if let Some(found) = same(sequence, &firsts, "first") {
        let advice = "If each row holds the action that led to it, move actions, rewards and flags \
                      one row up in each episode, and leave its last row out";
        return Some(Misplaced::new(found, advice));
    }
    let found = same(sequence, &lasts, "last")?;
    let advice = "If these rows hold no step, leave them out of every array, and set the flags in \
                  the rows before them";
    Some(Misplaced::new(found, advice))
}

fn same(sequence: &Sequence, edges: &[usize], which: &str) -> Option<String> {
    let rows = &sequence.rows;
    let dummy = rows[*edges.first()?];
    let is_dummy = |row: &Row| row.action == dummy.action && row.reward == dummy.reward;
    if edges.len() < LEAST_EPISODES || dummy.reward != 0.0 {
        return None;
    }
    if !edges.iter().all(|&row| is_dummy(&rows[row])) {
        return None;
    }
    let n_others = rows.len() - edges.len();
    let n_like_it = rows.iter().filter(|row| is_dummy(row)).count() - edges.len();
    let seen: HashSet<Vec<u32>> = edges
        .iter()
        .map(|&row| sequence.observation(row).iter().map(|number| number.to_bits()).collect())
        .collect();
    // A policy may always begin alike, from one state.
    let is_policy = seen.len() < LEAST_OBSERVATIONS && !dummy.is_zero_action;
    (100 * n_like_it <= n_others && !is_policy).then(|| {
        format!(
            "the same action and a reward of 0 in the {which} rows of all {} episodes, and in {} \
             of {n_others} other rows",
            edges.len(),
            n_like_it
        )
    })
}
