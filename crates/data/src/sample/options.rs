//! Options: the episodes for training, and their rewards.

use overtone_core::{Outcome, seed};
use serde::{Deserialize, Serialize};

use crate::describe::origin::Origin;
use crate::error::DataError;
use crate::read::columns::Columns;
use crate::sample::shuffle::permutation;

/// The treatment of an episode that the end of the recording cuts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fragment {
    /// It is kept, although its returns-to-go lack the rewards after the cut.
    Keep,
    /// It is left out, as in the released Decision Transformer.
    #[default]
    Drop,
}

/// Options of a [`crate::Dataset`] made from columns in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct DatasetOptions {
    /// The treatment of unfinished episodes.
    pub fragment: Fragment,
    /// Percent of the transitions, above 0: the episodes of highest return are kept as long as they
    /// make up no more (Chen et al. 2021's %BC); at least one is. 100 keeps all.
    pub top_percent: f64,
    /// Whether an episode's whole return comes with its last step, and 0 before (the paper's
    /// delayed reward).
    pub delayed_reward: bool,
    /// Fraction of the episodes kept out of training and of the observations' statistics, drawn by
    /// [`crate::Split`].
    pub held_out: f64,
    /// The run's seed, used to draw the held-out episodes.
    pub seed: u64,
    /// The known facts about the recording beyond its file.
    pub origin: Origin,
}

impl Default for DatasetOptions {
    /// All finished episodes, as recorded, of unknown origin.
    fn default() -> Self {
        Self {
            fragment: Fragment::Drop,
            top_percent: 100.0,
            delayed_reward: false,
            held_out: 0.0,
            seed: 0,
            origin: Origin::other(),
        }
    }
}

impl DatasetOptions {
    /// Refuses a percentage of 0 or less, or above 100.
    pub(super) fn check(&self) -> Result<(), DataError> {
        if self.top_percent > 0.0 && self.top_percent <= 100.0 {
            return Ok(());
        }
        Err(DataError::Sampling(format!(
            "top_percent is {}, and must lie above 0 and at most at 100",
            self.top_percent
        )))
    }
}

/// All episodes, best first: finished ones by return, then the others, whose full return is not
/// known. With equal returns the earlier episode comes first.
pub(super) fn best_first(returns: &[f64], finished: &[bool]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..returns.len()).collect();
    order.sort_by(|&a, &b| {
        finished[b].cmp(&finished[a]).then_with(|| returns[b].total_cmp(&returns[a]))
    });
    order
}

/// The best episodes, as positions in `lengths`, ascending. They are added in this `order` until
/// the next one would exceed `percent` of all steps; at least one.
pub(super) fn best_episodes(lengths: &[usize], mut order: Vec<usize>, percent: f64) -> Vec<usize> {
    let total: usize = lengths.iter().sum();
    let allowed = (percent * total as f64 / 100.0) as usize;
    let mut taken = 0;
    let fits = |&&episode: &&usize| {
        taken += lengths[episode];
        taken <= allowed
    };
    let n = order.iter().take_while(fits).count();
    order.truncate(n.max(1));
    order.sort_unstable();
    order
}

impl Columns {
    /// Keeps the finished episodes at these positions among the finished ones.
    pub fn keep_finished(&mut self, positions: &[usize]) {
        let finished: Vec<usize> = (0..self.episodes.len()).filter(|&i| self.finished[i]).collect();
        let kept: Vec<usize> = positions.iter().map(|&position| finished[position]).collect();
        self.keep(&kept);
    }

    /// Keeps finished episodes, drawn by `seed`, up to the first one that exceeds `steps` steps in
    /// all, but at least `least` episodes; 0 steps: all finished episodes. Smaller episodes do not
    /// fill the rest, because the mean length would then be too small. Gives the positions of the kept
    /// ones among all finished episodes, in order.
    pub fn draw_episodes(&mut self, steps: usize, least: usize, seed: u64) -> Vec<usize> {
        let lengths: Vec<usize> = self.finished_episodes().map(|episode| episode.length).collect();
        let order = permutation(lengths.len(), seed::derive(seed, "episodes"));
        let mut kept: Vec<usize> = order.into_iter().map(|episode| episode as usize).collect();
        let mut taken = 0;
        let exceeds = |&episode: &usize| {
            taken += lengths[episode];
            taken > steps
        };
        if steps > 0
            && let Some(n) = kept.iter().position(exceeds)
        {
            kept.truncate(n.max(least));
        }
        kept.sort_unstable();
        self.keep_finished(&kept);
        kept
    }
}

/// Moves each episode's return to its last step. The task then ends there, also where a step limit
/// ended the episode: its last step has no next observation, so a value method would leave out the
/// only reward.
pub(super) fn delay_rewards(log: &mut Columns) {
    for at in 0..log.episodes.len() {
        if log.finished[at] {
            log.episodes[at].outcome = Outcome::Terminated;
        }
        let episode = &log.episodes[at];
        let total = log.episode_return(episode);
        let rewards = &mut log.rewards[episode.range()];
        rewards.fill(0.0);
        if let Some(last) = rewards.last_mut() {
            *last = total as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use overtone_core::{Episode, Outcome};

    use super::{Columns, best_episodes, best_first};
    use crate::read::column::{ActionColumn, ObservationColumn};

    #[test]
    fn drawn_episodes_are_finished_and_end_at_the_first_that_exceeds() {
        let lengths = [5, 1, 4, 2, 3];
        let drawn = |steps, least| {
            let rows: usize = lengths.iter().sum();
            let mut start = 0;
            let episode = |length| {
                start += length;
                Episode { start: start - length, length, outcome: Outcome::Terminated }
            };
            let mut columns = Columns::new(
                ObservationColumn::Vectors { width: 1, values: vec![0.0; rows] },
                ActionColumn::Discrete { n_actions: 1, values: vec![0; rows] },
                (0..rows).map(|row| row as f32).collect(),
                lengths.map(episode).to_vec(),
            );
            columns.finished[1] = false;
            columns.draw_episodes(steps, least, 3);
            columns.episodes.iter().map(|episode| episode.length).collect::<Vec<_>>()
        };
        assert_eq!(drawn(0, 1), [5, 4, 2, 3]);
        assert_eq!(drawn(14, 1), [5, 4, 2, 3]);
        for steps in 1..14 {
            let taken = drawn(steps, 0).iter().sum::<usize>();
            assert!(taken <= steps, "{steps}: {taken}");
        }
        // The order of this seed; a longer draw begins with a shorter one.
        let order: Vec<usize> = (1..=4).map(|least| drawn(1, least).len()).collect();
        assert_eq!(order, [1, 2, 3, 4]);
    }

    #[test]
    fn the_best_by_hand() {
        let (lengths, returns) = ([10, 30, 20, 40], [5.0, 9.0, 7.0, 1.0]);
        let order = || best_first(&returns, &[true; 4]);
        let best = |percent| best_episodes(&lengths, order(), percent);
        // Best first they are 30, 20, 10 and 40 of 100 steps long.
        assert_eq!(best(1.0), [1]); // At least one, although longer than allowed.
        assert_eq!(best(30.0), [1]);
        assert_eq!(best(49.0), [1]);
        assert_eq!(best(50.0), [1, 2]); // Exactly filled.
        assert_eq!(best(60.0), [0, 1, 2]);
        // The next best does not fit, and no later one is taken instead.
        assert_eq!(best(55.0), [1, 2]);
        assert_eq!(best(99.9), [0, 1, 2]);
        assert_eq!(best(100.0), [0, 1, 2, 3]);
        // Equal returns: the earlier first.
        assert_eq!(best_first(&[2.0, 2.0, 2.0], &[true; 3]), [0, 1, 2]);
        // A rest that lost little is not a good episode.
        assert_eq!(best_first(&[-900.0, -10.0, -400.0], &[true, false, true]), [2, 0, 1]);
    }
}
