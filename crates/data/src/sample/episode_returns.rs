//! [`EpisodeReturns`]: the returns of a recording's episodes, and their percentiles.

use serde::{Deserialize, Serialize};

/// Returns of a recording's finished episodes, in its own units, ascending, each with its number of
/// actions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EpisodeReturns(Vec<Earned>);

/// An episode: its return and its number of actions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Earned(f32, u32);

impl EpisodeReturns {
    /// The returns and numbers of actions, in any order.
    pub fn new(episodes: impl IntoIterator<Item = (f32, usize)>) -> Self {
        let length = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let mut all: Vec<_> = episodes.into_iter().map(|(r, n)| Earned(r, length(n))).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self(all)
    }

    /// How many episodes these are.
    pub fn n_episodes(&self) -> usize {
        self.0.len()
    }

    /// The returns, ascending.
    pub fn iter(&self) -> impl Iterator<Item = f32> {
        self.0.iter().map(|episode| episode.0)
    }

    /// The lowest and the highest.
    pub fn ends(&self) -> Option<[f32; 2]> {
        Some([self.0.first()?.0, self.0.last()?.0])
    }

    /// The smallest return such that `percent` % of the recorded actions are in episodes with at
    /// most this return; `None` if no episode is finished.
    ///
    /// An episode counts by its length, as it does in training, which draws from all actions
    /// alike. In a recording of a learner most episodes are short failures and most actions are in
    /// the few long ones: there the percentile by episodes is a failure's.
    pub fn percentile(&self, percent: f64) -> Option<f32> {
        let all: u64 = self.0.iter().map(|episode| u64::from(episode.1)).sum();
        let wanted = percent * all as f64 / 100.0;
        let mut so_far = 0;
        let reached = self.0.iter().find(|episode| {
            so_far += u64::from(episode.1);
            so_far as f64 >= wanted
        });
        reached.map(|episode| episode.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn episodes_count_by_their_lengths() {
        let one = |n| (n as f32, 1);
        let alike = EpisodeReturns::new((1..=10).rev().map(one));
        let percentiles = |of: &EpisodeReturns| {
            [0.0, 50.0, 90.0, 91.0, 100.0].map(|percent| of.percentile(percent).unwrap())
        };
        assert_eq!(percentiles(&alike), [1.0, 5.0, 9.0, 10.0, 10.0]);
        // Whatever 0.55 is in binary.
        let hundred = EpisodeReturns::new((1..=100).map(one));
        for percent in 1..=100 {
            assert_eq!(hundred.percentile(f64::from(percent)), Some(percent as f32), "{percent}");
        }
        // Nine failures of one action, and an episode of 91 that is nearly everything.
        let learner = (1..=10).map(|n| (n as f32, if n == 10 { 91 } else { 1 }));
        assert_eq!(percentiles(&EpisodeReturns::new(learner)), [1.0, 10.0, 10.0, 10.0, 10.0]);
        assert_eq!(EpisodeReturns::default().percentile(50.0), None);
    }
}
