//! [`BestShares`]: contexts of the best episodes, alternating with contexts of all episodes.
//!
//! An agent can be conditioned in two ways: on a return, or on a top fraction ("top 10 % of the
//! recording by return"). The second needs contexts that were drawn as `%BC` draws them (Chen et
//! al. 2021), each with the fraction that it was drawn from.

use std::sync::Arc;

use overtone_core::seed;

use crate::sample::shuffle::scale;

/// The source of each drawn context: all episodes, or the best ones and how many of these.
#[derive(Clone, Debug)]
pub(crate) struct BestShares {
    /// Positions, sorted by the return of their episode, best first.
    ranked: Arc<[u32]>,
    /// The number of positions in each fraction.
    ends: Vec<usize>,
    seed: u64,
}

impl BestShares {
    /// Fractions of `percents` of all positions, each above 0 and at most 100. `ranks` is the rank
    /// of each position's episode; 0 is the best. A fraction holds whole episodes, at least one,
    /// and otherwise at most its percentage of the positions.
    pub fn new(ranks: &[u32], percents: &[f32], run_seed: u64) -> Self {
        let mut ranked: Vec<u32> = (0..ranks.len() as u32).collect();
        ranked.sort_by_key(|&position| ranks[position as usize]);
        let rank_at = |place: usize| ranked.get(place).map(|&position| ranks[position as usize]);
        let first = (0..ranked.len()).take_while(|&place| rank_at(place) == rank_at(0)).count();
        let ends = percents.iter().map(|&percent| {
            let allowed = (f64::from(percent) * ranked.len() as f64 / 100.0) as usize;
            let is_inside = |&place: &usize| place > first && rank_at(place) == rank_at(place - 1);
            // Back to the start of an episode; the first one is whole, at any length.
            let inside = (first..=allowed).rev().take_while(is_inside).count();
            allowed.saturating_sub(inside).max(first)
        });
        let ends = ends.collect();
        Self { ranked: ranked.into(), ends, seed: seed::derive(run_seed, "best shares") }
    }

    /// For half of the draws, by their number: a fraction, all equally likely, and a position in
    /// it.
    pub fn draw(&self, drawn: u64) -> Option<(u8, usize)> {
        let share = scale(seed::derive_nth(self.seed, 2 * drawn), 2 * self.ends.len());
        let end = *self.ends.get(share)?;
        let place = scale(seed::derive_nth(self.seed, 2 * drawn + 1), end);
        Some((share as u8, self.ranked[place] as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The best episode has 2 steps, the worst 5, and one between them 3.
    fn shares(percents: &[f32]) -> BestShares {
        BestShares::new(&[0, 0, 2, 2, 2, 2, 2, 1, 1, 1], percents, 7)
    }

    #[test]
    fn a_share_holds_whole_episodes_and_at_least_the_best() {
        let shares = shares(&[10.0, 20.0, 49.0, 50.0, 99.0, 100.0]);
        assert_eq!(shares.ranked[..], [0, 1, 7, 8, 9, 2, 3, 4, 5, 6]);
        assert_eq!(shares.ends, [2, 2, 2, 5, 5, 10]);
        // 29 % of 100 episodes, despite the binary rounding of 0.29.
        let ranks: Vec<u32> = (0..1000).map(|position| position / 10).collect();
        let percents = [29.0, 57.0, 58.0];
        assert_eq!(BestShares::new(&ranks, &percents, 7).ends, [290, 570, 580]);
    }

    #[test]
    fn half_of_the_draws_are_of_shares_and_every_place_is_equally_likely() {
        let shares = shares(&[50.0, 100.0]);
        let (mut of_all, mut counts) = (0, [[0; 10]; 2]);
        for drawn in 0..40_000 {
            match shares.draw(drawn) {
                None => of_all += 1,
                Some((share, position)) => counts[usize::from(share)][position] += 1,
            }
        }
        // 20,000, 2000 and 1000 are expected, with standard deviations of 100, 45 and 32.
        assert!((19_600..20_400).contains(&of_all), "{of_all}");
        let [best, all] = counts;
        for (position, n) in best.into_iter().enumerate() {
            let inside = [0, 1, 7, 8, 9].contains(&position);
            assert!(if inside { (1820..2180).contains(&n) } else { n == 0 }, "{position}: {n}");
        }
        assert!(all.iter().all(|n| (870..1130).contains(n)), "{all:?}");
    }
}
