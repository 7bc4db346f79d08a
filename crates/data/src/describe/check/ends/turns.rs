//! Rows of several environments in turn: arrays `[time, environment]` whose first two axes were
//! made one.

use super::Misplaced;
use super::jumps::{JUMP, LEAST_FLAGS, Usual};
use super::sequence::Sequence;

/// The most environments that are looked for.
const MOST_ENVIRONMENTS: usize = 256;

/// Rows from which distances at each lag are taken at most.
const MOST_ROWS: usize = 4096;

/// The number of environments whose rows are in turn, if there are several.
pub(super) fn in_turn(sequence: &Sequence, scales: &[f32]) -> Option<Misplaced> {
    let n = environments(sequence, scales)?;
    let found = format!("each row continued {n} rows later: rows of {n} environments in turn");
    let advice = format!(
        "Put the rows of each environment one after the other: in every array, `x.reshape(-1, {n}, \
         *x.shape[1:]).swapaxes(0, 1).reshape(x.shape)`; then set a timeout in each environment's \
         last row"
    );
    Some(Misplaced::new(found, advice))
}

/// The lag at which rows are near each other while all shorter lags are about equally far.
fn environments(sequence: &Sequence, scales: &[f32]) -> Option<usize> {
    let most = sequence.rows.len().min(MOST_ROWS);
    let (mut nearest, mut farthest) = (f32::INFINITY, 0.0f32);
    for lag in 1..=MOST_ENVIRONMENTS.min(most / 4) {
        let mut distances = sequence.distances(scales, lag, most);
        let middle = distances.len() / 2;
        let median = *distances.select_nth_unstable_by(middle, f32::total_cmp).1;
        let are_alike = nearest >= 0.5 * farthest;
        let is_near = lag > 1 && are_alike && median <= 0.5 * nearest;
        if is_near && flags_agree(sequence, scales, lag) {
            return Some(lag);
        }
        nearest = nearest.min(median);
        farthest = farthest.max(median);
    }
    None
}

/// Whether the flags are those of environments in turn: they come in runs of one for each, or
/// flagged rows jump at this lag while the rows between them do not. A gait, which repeats after
/// some rows too, jumps at this lag in all rows before an end.
fn flags_agree(sequence: &Sequence, scales: &[f32], lag: usize) -> bool {
    let is_flagged = |row: usize| sequence.rows[row].end.is_some();
    let n = sequence.rows.len();
    let begins = |&row: &usize| is_flagged(row) && (row == 0 || !is_flagged(row - 1));
    let runs: Vec<usize> = (0..n).filter(begins).collect();
    let is_run = |&first: &usize| {
        let length = (first..n).take_while(|&row| is_flagged(row)).count();
        length == lag && first % lag == 0
    };
    if (runs.len() > 1 || (runs.len() == 1 && lag > 2)) && runs.iter().all(is_run) {
        return true;
    }
    let distances = sequence.distances(scales, lag, usize::MAX);
    let ends: Vec<usize> = (0..distances.len()).filter(|&row| is_flagged(row)).collect();
    let mut is_near = vec![false; distances.len()];
    ends.iter().for_each(|&end| is_near[(end + 1).saturating_sub(lag)..=end].fill(true));
    let away = (0..distances.len()).filter(|&row| !is_near[row]).map(|row| distances[row]);
    let usual = Usual::of(away.collect());
    let share = |rows: &[usize]| {
        let jumps = rows.iter().filter(|&&row| usual.place(distances[row]) >= JUMP);
        jumps.count() as f64 / rows.len().max(1) as f64
    };
    let between: Vec<usize> =
        (0..distances.len()).filter(|&row| is_near[row] && !is_flagged(row)).collect();
    ends.len() >= LEAST_FLAGS && share(&ends) >= 0.6 && share(&between) <= 0.2
}
