//! [`fit_actions`]: whether recorded log-probabilities can belong to the recorded actions.
//!
//! With probability `β(a|h)` of action `a` after history `h`, rows in a set `R` that the history
//! decides, and actions `a_i` with recorded probabilities `p_i = β(a_i|h_i)`:
//!
//! ```text
//! E Σ_{i in R, a_i = a} 1/p_i = Σ_{i in R} P(β(a|h_i) > 0) ≤ |R|
//! ```
//!
//! so the harmonic mean of an action's recorded probabilities is at least its share of the rows. It
//! is lower if log-probabilities are shifted by a row, which a join of two tables easily does: they
//! then belong to other actions. Frequent actions show it in all rows; if all are equally frequent,
//! those that are frequent where a number of the observation is above its median.
//!
//! An action may occur less often than it should: one of probability 0.0001 may never occur.

use overtone_data::{ActionColumn, Dataset, StoredObservations};

/// Smallest excess of the sum, as a share of the rows. Rounded probabilities have a small one.
const LEAST_EXCESS: f64 = 0.1;

/// Smallest excess of the sum in standard errors. There are thousands of sums.
const STANDARD_ERRORS: f64 = 5.0;

/// Whether the log-probabilities `[rows]` can belong to the recorded actions. Always true for
/// recordings of frames or of continuous actions.
pub(crate) fn fit_actions(data: &Dataset, log_probs: &[f32]) -> bool {
    let (
        StoredObservations::Vectors { width, values, .. },
        ActionColumn::Discrete { n_actions, values: actions },
    ) = (data.observations(), data.actions())
    else {
        return true;
    };
    let inverse: Vec<f64> = log_probs.iter().map(|&log| (-f64::from(log)).exp()).collect();
    let fits = |is_inside: &dyn Fn(usize) -> bool| {
        let mut sums = vec![Sum::default(); *n_actions];
        let mut rows = 0.0;
        for (row, &action) in actions.iter().enumerate().filter(|&(row, _)| is_inside(row)) {
            sums[usize::from(action)].add(inverse[row]);
            rows += 1.0;
        }
        sums.iter().all(|sum| sum.fits(rows))
    };
    let of_column = |column: usize| {
        let mut sorted: Vec<f32> = values.iter().skip(column).step_by(*width).copied().collect();
        let middle = sorted.len() / 2;
        let (_, median, _) = sorted.select_nth_unstable_by(middle, f32::total_cmp);
        let is_above = |row: usize| values[row * width + column] > *median;
        fits(&is_above) && fits(&|row| !is_above(row))
    };
    fits(&|_| true) && (0..*width).all(of_column)
}

/// Inverse probabilities of an action.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    n: f64,
    sum: f64,
    /// Sum of `(1/p − 1)²`.
    squares: f64,
}

impl Sum {
    fn add(&mut self, inverse: f64) {
        self.n += 1.0;
        self.sum += inverse;
        self.squares += (inverse - 1.0).powi(2);
    }

    /// Whether the sum is at most the number of rows, apart from chance: the terms
    /// `1[a_i = a]/p_i − 1` have the mean 0 at most, and are uncorrelated.
    fn fits(self, rows: f64) -> bool {
        let excess = self.sum - rows;
        let error = (self.squares + (rows - self.n)).sqrt();
        excess <= LEAST_EXCESS * rows || excess <= STANDARD_ERRORS * error
    }
}

#[cfg(test)]
mod tests {
    use overtone_core::{
        Episode, Outcome,
        seed::{Generator, generator},
    };
    use overtone_data::{Columns, DatasetOptions, ObservationColumn};
    use rand::RngExt;

    use super::*;

    /// A recording of 3 actions whose probabilities are given for each observation in [-1, 1].
    fn recording(rows: usize, seed: u64, probs: fn(f32) -> [f64; 3]) -> Dataset {
        let draw: &mut Generator = &mut generator(seed, "recording");
        let (mut seen, mut actions, mut log_probs) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rows {
            let number: f32 = draw.random_range(-1.0..1.0);
            let (probs, at) = (probs(number), draw.random::<f64>());
            let action = usize::from(at > probs[0]) + usize::from(at > probs[0] + probs[1]);
            seen.push(number);
            actions.push(action as u16);
            log_probs.push(probs[action].ln() as f32);
        }
        let outcome = Outcome::Terminated;
        let episodes = (0..rows).map(|start| Episode { start, length: 1, outcome }).collect();
        let mut columns = Columns::new(
            ObservationColumn::Vectors { width: 1, values: seen },
            ActionColumn::Discrete { n_actions: 3, values: actions },
            (0..rows).map(|row| row as f32).collect(),
            episodes,
        );
        columns.behavior_log_probs = Some(log_probs);
        Dataset::of(columns, &DatasetOptions::default()).unwrap()
    }

    /// Each action is as frequent as the others, but not at each observation.
    fn balanced(number: f32) -> [f64; 3] {
        let weights = [1.0, 0.0, -1.0].map(|of: f32| f64::from(3.0 * of * number).exp());
        weights.map(|weight| weight / weights.iter().sum::<f64>())
    }

    fn skewed(_: f32) -> [f64; 3] {
        [0.8, 0.15, 0.05]
    }

    fn mostly(number: f32) -> [f64; 3] {
        if number > 0.0 { [0.9, 0.05, 0.05] } else { [0.05, 0.05, 0.9] }
    }

    fn greedy(number: f32) -> [f64; 3] {
        if number > 0.0 { [0.99, 0.0099, 0.0001] } else { [0.0001, 0.0099, 0.99] }
    }

    fn masked(number: f32) -> [f64; 3] {
        if number > 0.5 { [0.0, 0.5, 0.5] } else { [1.0, 0.0, 0.0] }
    }

    #[test]
    fn log_probs_of_other_rows_do_not_fit() {
        for (name, probs) in
            [("balanced", balanced as fn(f32) -> [f64; 3]), ("skewed", skewed), ("mostly", mostly)]
        {
            let data = recording(2000, 1, probs);
            let recorded = data.behavior_log_probs().unwrap();
            let mut shifted = recorded.to_vec();
            shifted.rotate_right(1);
            assert!(fit_actions(&data, recorded) && !fit_actions(&data, &shifted), "{name}");
        }
    }

    #[test]
    fn sound_log_probs_always_fit() {
        for seed in 0..300 {
            for (probs, rows) in [(balanced as fn(f32) -> [f64; 3], 50), (skewed, 500)]
                .into_iter()
                .chain([(greedy as fn(f32) -> [f64; 3], 200), (masked, 100)])
            {
                let data = recording(rows, seed, probs);
                assert!(fit_actions(&data, data.behavior_log_probs().unwrap()), "{seed}, {rows}");
            }
        }
    }
}
