//! Selection of the best of several policies by few episodes (*policy selection* in unifloral,
//! Jackson et al. 2025; *active offline policy selection*, Konyushkova et al. 2021).
//!
//! The policies can be agents, acting modes of one agent, or both. A [`Rule`] decides which policy
//! plays the next episode. The kept policy is the one with the highest expected return afterwards.
//! [`budget_curve`] shows how good the kept policy is for each number of episodes.
//!
//! A selection by fewer episodes is the beginning of one by more, with the same seed.

mod curve;
mod process;

use std::str::FromStr;

use overtone_core::seed::{Generator, generator};
use rand::RngExt;

pub use curve::{BUDGETS, BudgetPoint, CurveError, Trials, budget_curve};
use process::Posterior;

/// The rule that decides which policy plays the next episode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// The policy with the highest upper bound: the mean of its posterior plus two standard
    /// deviations, in the model of independent returns of unknown mean and spread. Its bound is
    /// in the scale of the returns, so it explores where returns vary.
    #[default]
    Process,
    /// Each policy in turn.
    Even,
    /// unifloral's rule, for comparisons: the highest mean plus `sqrt(2 ln t / n)` points, where `n`
    /// of the `t` episodes are the policy's. This bonus ignores the scale of the returns.
    Unifloral,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 3] = [Self::Process, Self::Even, Self::Unifloral];

    /// The rule's name, as in files and options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Even => "even",
            Self::Unifloral => "unifloral",
        }
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let rule = Self::ALL.into_iter().find(|rule| rule.name() == name);
        rule.ok_or_else(|| format!("expected one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// The episodes of one policy: number, sum and sum of squares of their returns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Played {
    n: usize,
    sum: f64,
    squares: f64,
}

impl Played {
    /// Mean return; 0 without episodes.
    fn mean(&self) -> f64 {
        self.sum / self.n.max(1) as f64
    }

    /// Sum of squared deviations from the mean.
    fn squared_deviations(&self) -> f64 {
        (self.squares - self.n as f64 * self.mean().powi(2)).max(0.0)
    }

    fn add(&mut self, raw_return: f64) {
        self.n += 1;
        self.sum += raw_return;
        self.squares += raw_return * raw_return;
    }
}

/// A selection among several policies, episode by episode.
#[derive(Debug)]
pub struct Selection {
    rule: Rule,
    /// Estimated returns of the policies, known before any episode.
    estimates: Option<Vec<f64>>,
    played: Vec<Played>,
    /// Breaks ties of [`Rule::Unifloral`].
    generator: Generator,
}

impl Selection {
    /// A selection among `n_policies` policies without any episode. `seed` breaks the ties of
    /// [`Rule::Unifloral`]; the other rules take the first of equal policies.
    pub fn new(rule: Rule, n_policies: usize, seed: u64) -> Self {
        Self {
            rule,
            estimates: None,
            played: vec![Played::default(); n_policies],
            generator: generator(seed, "selection"),
        }
    }

    /// With an estimate of each policy's mean return, for [`Rule::Process`]. Estimates may be wrong
    /// by a spread that the model infers, but must be in the units of the returns.
    #[must_use]
    pub fn with_estimates(self, estimates: Vec<f64>) -> Self {
        Self { estimates: Some(estimates), ..self }
    }

    /// The policies of the next `n` episodes, before their returns are known. A policy that occurs
    /// twice plays two episodes.
    pub fn next(&mut self, n: usize) -> Vec<usize> {
        // In place of the returns of this batch that are not yet known: their expected values.
        let mut played = self.played.clone();
        (0..n)
            .map(|_| {
                let total: usize = played.iter().map(|policy| policy.n).sum();
                let policy = match self.rule {
                    Rule::Even => total % played.len(),
                    Rule::Unifloral => unifloral(&played, total, &mut self.generator),
                    Rule::Process => self.most_promising(&played),
                };
                let expected = match self.rule {
                    Rule::Process => self.posterior(&played).mean[policy],
                    Rule::Even | Rule::Unifloral => played[policy].mean(),
                };
                played[policy].add(expected);
                policy
            })
            .collect()
    }

    /// Adds the return of an episode of `policy`.
    pub fn record(&mut self, policy: usize, raw_return: f64) {
        self.played[policy].add(raw_return);
    }

    /// The policy to keep: the first with the highest expected return among those that were played
    /// or have an estimate. Without any episode or estimate it is the first policy.
    pub fn best(&self) -> usize {
        let means = match self.rule {
            Rule::Process => self.posterior(&self.played).mean,
            Rule::Even | Rule::Unifloral => self.played.iter().map(Played::mean).collect(),
        };
        let is_known = |policy: &usize| self.played[*policy].n > 0 || self.has_estimates();
        let known = (0..means.len()).filter(is_known);
        highest(known.map(|policy| (policy, means[policy]))).unwrap_or(0)
    }

    fn has_estimates(&self) -> bool {
        self.rule == Rule::Process && self.estimates.is_some()
    }

    fn posterior(&self, played: &[Played]) -> Posterior {
        Posterior::of(played, self.estimates.as_deref())
    }

    /// The first policy that was not played, unless estimates replace its first episode; then the
    /// highest upper bound.
    fn most_promising(&self, played: &[Played]) -> usize {
        let unplayed = played.iter().position(|policy| policy.n == 0);
        match unplayed {
            Some(policy) if !self.has_estimates() => policy,
            _ => {
                let Posterior { mean, deviation } = self.posterior(played);
                let bounds = mean.iter().zip(&deviation).map(|(mean, sd)| mean + 2.0 * sd);
                highest(bounds.enumerate()).unwrap_or(0)
            }
        }
    }
}

/// The first policy with the highest value.
fn highest(values: impl Iterator<Item = (usize, f64)>) -> Option<usize> {
    let higher = |best: (usize, f64), next: (usize, f64)| if next.1 > best.1 { next } else { best };
    values.reduce(higher).map(|(policy, _)| policy)
}

/// The policy of unifloral's next episode after `total` episodes. A policy without episodes has the
/// mean 0 and a bonus of thousands of points, except at the first episode, where `ln 1 = 0`.
fn unifloral(played: &[Played], total: usize, generator: &mut Generator) -> usize {
    let t = (total + 1) as f64;
    let bound = |policy: &Played| policy.mean() + (2.0 * t.ln() / (policy.n as f64 + 1e-9)).sqrt();
    let bounds: Vec<f64> = played.iter().map(bound).collect();
    let most = bounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let ties: Vec<usize> = (0..bounds.len()).filter(|&policy| bounds[policy] == most).collect();
    ties[generator.random_range(0..ties.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays `returns` of each policy in turn, up to `budget` episodes in batches of `batch`.
    fn play(
        selection: &mut Selection,
        returns: &[&[f64]],
        budget: usize,
        batch: usize,
    ) -> Vec<usize> {
        let mut next = vec![0; returns.len()];
        let mut all = Vec::new();
        while all.len() < budget {
            for policy in selection.next(batch.min(budget - all.len())) {
                let of_policy = returns[policy];
                selection.record(policy, of_policy[next[policy] % of_policy.len()]);
                next[policy] += 1;
                all.push(policy);
            }
        }
        all
    }

    #[test]
    fn even_takes_turns_and_keeps_the_first_of_equal_means() {
        let mut selection = Selection::new(Rule::Even, 3, 0);
        assert_eq!(selection.best(), 0);
        let all = play(&mut selection, &[&[1.0], &[2.0], &[2.0]], 7, 2);
        assert_eq!(all, [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(selection.best(), 1);
    }

    #[test]
    fn the_process_plays_each_once_and_then_the_contenders() {
        let returns: [&[f64]; 4] =
            [&[10.0, 12.0, 8.0], &[90.0, 110.0, 100.0], &[95.0, 120.0, 105.0], &[0.0, 1.0, 2.0]];
        let mut selection = Selection::new(Rule::Process, 4, 0);
        let all = play(&mut selection, &returns, 24, 1);
        assert_eq!(all[..4], [0, 1, 2, 3]);
        let n_played = |policy| all.iter().filter(|&&other| other == policy).count();
        assert!(n_played(1) + n_played(2) >= 18, "{all:?}");
        assert_eq!(selection.best(), 2);
    }

    #[test]
    fn fewer_episodes_are_the_beginning_of_more() {
        let returns: [&[f64]; 3] = [&[3.0, 9.0, 4.0], &[5.0, 6.0], &[2.0, 12.0, 1.0, 7.0]];
        for rule in Rule::ALL {
            let more = play(&mut Selection::new(rule, 3, 5), &returns, 35, 3);
            let fewer = play(&mut Selection::new(rule, 3, 5), &returns, 20, 3);
            assert_eq!(fewer, more[..20], "{rule:?}");
        }
    }

    #[test]
    fn negative_returns_do_not_favour_a_policy_that_was_not_played() {
        for rule in [Rule::Process, Rule::Even] {
            let mut selection = Selection::new(rule, 3, 0);
            for policy in selection.next(2) {
                selection.record(policy, [-30.0, -20.0][policy]);
            }
            assert_eq!(selection.best(), 1, "{rule:?}");
        }
    }

    #[test]
    fn the_choice_does_not_depend_on_units() {
        let returns: [&[f64]; 3] = [&[3.0, 9.0, 4.0], &[5.0, 6.0], &[2.0, 12.0, 1.0, 7.0]];
        let scaled = returns.map(|all| all.iter().map(|x| 1024.0 * x).collect::<Vec<f64>>());
        let scaled: Vec<&[f64]> = scaled.iter().map(|all| &all[..]).collect();
        let small = play(&mut Selection::new(Rule::Process, 3, 0), &returns, 40, 3);
        let large = play(&mut Selection::new(Rule::Process, 3, 0), &scaled, 40, 3);
        assert_eq!(small, large);
    }

    #[test]
    fn estimates_decide_without_episodes_and_lose_against_them() {
        let mut selection =
            Selection::new(Rule::Process, 3, 0).with_estimates(vec![1.0, 2.0, 30.0]);
        assert_eq!(selection.best(), 2);
        let all = play(&mut selection, &[&[10.0, 11.0], &[20.0, 21.0], &[0.0, 1.0]], 30, 1);
        assert_eq!(all[0], 2);
        assert_eq!(selection.best(), 1, "{all:?}");
    }
}
