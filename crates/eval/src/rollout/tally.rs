//! Accumulated action distributions.

use overtone_core::Played;

use super::{PlayedDistributions, RolloutError};
use crate::smoothness::{Pooled, Smoothness};

/// Accumulated action distributions of one player.
pub(super) struct Tally {
    metric: Smoothness,
    n_actions: usize,
    pub distributions: PlayedDistributions,
}

impl Tally {
    /// An empty tally for `episodes` episodes, with the bins of `played` and the environment's
    /// action names. `turns` is the number of agents, for the error.
    pub fn new(
        played: &Played<'_>,
        turns: usize,
        action_names: &[String],
        episodes: usize,
    ) -> Result<Self, RolloutError> {
        let n_bins = played.actions.len();
        let names = played.actions.iter().map(|&action| action_names.get(action).cloned());
        let actions: Option<Vec<String>> = names.collect();
        let n_actions = action_names.len();
        let Some(actions) = actions.filter(|actions| !actions.is_empty()) else {
            let numbers = played.probs.len();
            return Err(RolloutError::Played { turns, numbers, n_bins, n_actions });
        };
        let distributions = PlayedDistributions {
            actions,
            order: played.order,
            smoothness: vec![Pooled::default(); episodes],
            sums: vec![vec![0.0; n_bins]; episodes],
        };
        Ok(Self { metric: Smoothness::new(n_bins), n_actions, distributions })
    }

    /// Adds the distributions of one batch. Row `i` belongs to episode `numbers[i]` of the plan.
    pub fn add(&mut self, played: &Played<'_>, numbers: &[usize]) -> Result<(), RolloutError> {
        let (probs, n_bins) = (played.probs, played.actions.len());
        if n_bins != self.distributions.actions.len() || probs.len() != numbers.len() * n_bins {
            let (turns, numbers, n_actions) = (numbers.len(), probs.len(), self.n_actions);
            return Err(RolloutError::Played { turns, numbers, n_bins, n_actions });
        }
        for (&number, pmf) in numbers.iter().zip(probs.chunks_exact(n_bins)) {
            let smoothness = self.metric.l2(pmf);
            if !smoothness.is_finite() {
                return Err(RolloutError::Probability);
            }
            self.distributions.smoothness[number].add(smoothness);
            self.distributions.sums[number]
                .iter_mut()
                .zip(pmf)
                .for_each(|(sum, prob)| *sum += prob);
        }
        Ok(())
    }
}
