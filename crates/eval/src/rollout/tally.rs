//! The smoothness of what was played so far.

use overtone_core::Played;

use super::{PlayedSmoothness, RolloutError};
use crate::{Pooled, Smoothness};

/// The smoothness of every distribution that one player played from.
pub(super) struct Tally {
    metric: Smoothness,
    pub found: PlayedSmoothness,
}

impl Tally {
    /// Adds the distributions of one batch; row `i` belongs to the `i`-th of `numbers`, an
    /// episode of the `episodes` in the plan.
    pub fn add(
        tally: &mut Option<Self>,
        played: &Played<'_>,
        numbers: &[usize],
        episodes: usize,
    ) -> Result<(), RolloutError> {
        let &Played { probs, n_bins, order } = played;
        let n_bins_before = tally.as_ref().map_or(n_bins, |tally| tally.found.n_bins);
        if n_bins == 0 || n_bins != n_bins_before || probs.len() != numbers.len() * n_bins {
            let (turns, numbers) = (numbers.len(), probs.len());
            return Err(RolloutError::Played { turns, numbers, n_bins });
        }
        let Self { metric, found } = tally.get_or_insert_with(|| Self {
            metric: Smoothness::new(n_bins),
            found: PlayedSmoothness { n_bins, order, episodes: vec![Pooled::default(); episodes] },
        });
        for (&number, pmf) in numbers.iter().zip(probs.chunks_exact(n_bins)) {
            let smoothness = metric.l2(pmf);
            if !smoothness.is_finite() {
                return Err(RolloutError::Probability);
            }
            found.episodes[number].add(smoothness);
        }
        Ok(())
    }
}
