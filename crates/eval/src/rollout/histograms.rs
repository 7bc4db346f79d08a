//! Histograms of continuous actions.

use overtone_core::{ActionSpace, Actions};
use serde::{Deserialize, Serialize};

/// Number of bins of each action dimension. They have equal width between the two bounds.
pub const BINS: usize = 20;

/// Histograms of each action dimension for each episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionHistograms {
    /// Lower bound of each dimension.
    pub low: Vec<f32>,
    /// Upper bound of each dimension.
    pub high: Vec<f32>,
    /// Counts, `[episodes, dimensions · BINS]`, with a row for each episode of
    /// [`Rollout::episodes`](super::Rollout::episodes).
    pub counts: Vec<Vec<u64>>,
}

impl ActionHistograms {
    /// Empty histograms; `None` for discrete actions and for actions without finite bounds.
    pub(super) fn new(space: &ActionSpace, episodes: usize) -> Option<Self> {
        let ActionSpace::Continuous { low, high } = space else { return None };
        let bounded =
            low.iter().zip(high).all(|(low, high)| (high - low).is_finite() && low < high);
        bounded.then(|| Self {
            low: low.clone(),
            high: high.clone(),
            counts: vec![vec![0; low.len() * BINS]; episodes],
        })
    }

    /// Counts one batch. Row `i` of `actions` belongs to episode `episodes[i]`. A value outside the
    /// bounds counts in the outermost bin, because the environment clips it.
    pub(super) fn add(&mut self, actions: &Actions, episodes: &[usize]) {
        let Actions::Continuous { width, values } = actions else { return };
        if *width != self.low.len() {
            return;
        }
        for (action, &episode) in values.chunks_exact(*width).zip(episodes) {
            let counts = self.counts[episode].chunks_exact_mut(BINS);
            for ((value, counts), (low, high)) in
                action.iter().zip(counts).zip(self.low.iter().zip(&self.high))
            {
                let place = (value - low) / (high - low) * BINS as f32;
                counts[(place.max(0.0) as usize).min(BINS - 1)] += 1;
            }
        }
    }

    /// The fraction of actions in each bin over some episodes, `[dimensions, BINS]`; `None` if there
    /// are no actions.
    pub fn fractions(&self, episodes: std::ops::Range<usize>) -> Option<Vec<Vec<f64>>> {
        let mut sums = vec![0_u64; self.low.len() * BINS];
        for counts in &self.counts[episodes] {
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        let n: u64 = sums.iter().take(BINS).sum();
        let share = |count: &u64| *count as f64 / n as f64;
        (n > 0).then(|| sums.chunks(BINS).map(|bins| bins.iter().map(share).collect()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_in_their_bins_and_episodes() {
        let space = ActionSpace::Continuous { low: vec![-1.0, 0.0], high: vec![1.0, 4.0] };
        let mut histograms = ActionHistograms::new(&space, 3).unwrap();
        // Bin widths are 0.1 and 0.2: 0.05 is in bin 10 of the first dimension, and 4 is in the last
        // bin of the second.
        let values = vec![0.05, 4.0, -1.0, 0.3, -7.0, 9.0];
        histograms.add(&Actions::Continuous { width: 2, values }, &[2, 0, 2]);
        let shares = histograms.fractions(0..3).unwrap();
        let third = 1.0 / 3.0;
        for (dimension, expected) in
            [(0, [(0, 2.0 * third), (10, third)]), (1, [(1, third), (19, 2.0 * third)])]
        {
            for (bin, &share) in shares[dimension].iter().enumerate() {
                let right = expected.iter().find(|(at, _)| *at == bin).map_or(0.0, |(_, s)| *s);
                assert!((share - right).abs() < 1e-12, "dimension {dimension}, bin {bin}: {share}");
            }
        }
        assert_eq!(histograms.fractions(0..1).unwrap()[1][1], 1.0);
        assert_eq!(histograms.fractions(1..2), None);
    }

    #[test]
    fn actions_without_bounds_have_no_histogram() {
        let space = ActionSpace::Continuous { low: vec![f32::NEG_INFINITY], high: vec![1.0] };
        assert_eq!(ActionHistograms::new(&space, 1), None);
        assert_eq!(ActionHistograms::new(&ActionSpace::Discrete { names: vec![] }, 1), None);
    }
}
