//! [`budget_curve`]: how good the kept policy is, for each number of evaluation episodes.

use std::collections::VecDeque;

use overtone_core::seed::{Generator, derive, derive_nth};
use rand::{RngExt, SeedableRng, seq::SliceRandom};
use rayon::prelude::*;
use serde::Serialize;

use super::{Rule, Selection};

/// The numbers of episodes of a curve, unless others are given.
pub const BUDGETS: [usize; 11] = [0, 1, 2, 5, 10, 20, 35, 50, 100, 140, 200];

/// How good the kept policy is after a number of episodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BudgetPoint {
    /// Evaluation episodes in all.
    pub episodes: usize,
    /// Mean over trials of the kept policy's mean return.
    pub mean: f64,
    /// Its 2.5th and 97.5th percentile over trials.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// Standard error of `mean`: the deviation over trials by the root of their number.
    pub standard_error: f64,
    /// Mean over trials of the regret: the best candidate's mean return less the kept one's.
    pub regret: f64,
}

/// Settings of a [`budget_curve`].
#[derive(Clone, Debug, PartialEq)]
pub struct Trials {
    /// The rule of the selection.
    pub rule: Rule,
    /// Numbers of episodes of the points.
    pub budgets: Vec<usize>,
    /// Policies among which each trial selects, drawn without replacement; at most all.
    pub candidates: usize,
    /// Episodes that are played at once: a batch is placed before its returns are known.
    pub batch: usize,
    /// Number of trials.
    pub trials: usize,
    /// Seed. The result does not depend on the number of threads.
    pub seed: u64,
}

/// Errors of a [`budget_curve`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CurveError {
    /// There are no policies.
    #[error("expected the returns of at least one policy")]
    NoPolicy,
    /// A policy has no episodes.
    #[error("policy {policy} has no returns")]
    NoReturns {
        /// Number of the policy, from 0.
        policy: usize,
    },
    /// A return is not finite.
    #[error("return {episode} of policy {policy} is {value}, expected a finite number")]
    NotFinite {
        /// Number of the policy, from 0.
        policy: usize,
        /// Number of the episode, from 0.
        episode: usize,
        /// The return.
        value: f64,
    },
    /// An estimate is not finite.
    #[error("the estimate of policy {policy} is {value}, expected a finite number")]
    Estimate {
        /// Number of the policy, from 0.
        policy: usize,
        /// The estimate.
        value: f64,
    },
    /// The numbers of estimates and policies differ.
    #[error("{got} estimates for {expected} policies, expected one for each")]
    Estimates {
        /// Number of estimates.
        got: usize,
        /// Number of policies.
        expected: usize,
    },
    /// A setting is 0.
    #[error("{0}=0: expected at least 1")]
    Zero(&'static str),
}

/// The mean return of the kept policy for each number of evaluation episodes, over simulated
/// selections (Jackson et al. 2025). `returns[i]` are the returns of policy `i`, at least one.
///
/// Each trial draws the candidates, then selects by the rule; an episode's return is one of the
/// policy's returns, drawn with replacement. The kept policy counts with the mean of all its
/// returns. With 0 episodes [`Rule::Process`] keeps the first policy, or the one with the highest
/// estimate; the other rules have no preference, and their point is the mean over the candidates.
///
/// # Errors
/// When a policy has no returns or one that is not finite, the numbers of policies and estimates
/// differ, or a setting is 0.
pub fn budget_curve(
    returns: &[Vec<f64>],
    estimates: Option<&[f64]>,
    settings: &Trials,
) -> Result<Vec<BudgetPoint>, CurveError> {
    check(returns, estimates, settings)?;
    let means: Vec<f64> =
        returns.iter().map(|all| all.iter().sum::<f64>() / all.len() as f64).collect();
    let seed = derive(settings.seed, "budget curve");
    // For each trial, the kept policy's mean return and its regret at every budget.
    let trials: Vec<Vec<(f64, f64)>> = (0..settings.trials)
        .into_par_iter()
        .map(|trial| {
            let mut generator = Generator::seed_from_u64(derive_nth(seed, trial as u64));
            one_trial(returns, &means, estimates, settings, &mut generator)
        })
        .collect();
    let point = |(i, &episodes): (usize, &usize)| {
        let mut kept: Vec<f64> = trials.iter().map(|trial| trial[i].0).collect();
        let n = kept.len() as f64;
        let mean = kept.iter().sum::<f64>() / n;
        let variance = kept.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        kept.sort_by(f64::total_cmp);
        let percentile = |p: f64| kept[((n - 1.0) * p).round() as usize];
        BudgetPoint {
            episodes,
            mean,
            low: percentile(0.025),
            high: percentile(0.975),
            standard_error: (variance / n).sqrt(),
            regret: trials.iter().map(|trial| trial[i].1).sum::<f64>() / n,
        }
    };
    Ok(settings.budgets.iter().enumerate().map(point).collect())
}

fn check(
    returns: &[Vec<f64>],
    estimates: Option<&[f64]>,
    settings: &Trials,
) -> Result<(), CurveError> {
    if returns.is_empty() {
        return Err(CurveError::NoPolicy);
    }
    for (policy, all) in returns.iter().enumerate() {
        if all.is_empty() {
            return Err(CurveError::NoReturns { policy });
        }
        if let Some(episode) = all.iter().position(|value| !value.is_finite()) {
            return Err(CurveError::NotFinite { policy, episode, value: all[episode] });
        }
    }
    let expected = returns.len();
    if let Some(got) = estimates.map(<[f64]>::len).filter(|&got| got != expected) {
        return Err(CurveError::Estimates { got, expected });
    }
    let mut values = estimates.unwrap_or_default().iter().copied().enumerate();
    if let Some((policy, value)) = values.find(|(_, value)| !value.is_finite()) {
        return Err(CurveError::Estimate { policy, value });
    }
    let counts = [
        ("candidates", settings.candidates),
        ("batch", settings.batch),
        ("trials", settings.trials),
    ];
    match counts.into_iter().find(|(_, count)| *count == 0) {
        Some((name, _)) => Err(CurveError::Zero(name)),
        None => Ok(()),
    }
}

/// The kept policy's mean return and regret at each budget.
fn one_trial(
    returns: &[Vec<f64>],
    means: &[f64],
    estimates: Option<&[f64]>,
    settings: &Trials,
    generator: &mut Generator,
) -> Vec<(f64, f64)> {
    let mut candidates: Vec<usize> = (0..returns.len()).collect();
    if settings.candidates < candidates.len() {
        candidates.shuffle(generator);
        candidates.truncate(settings.candidates);
    }
    let best = candidates.iter().map(|&policy| means[policy]).fold(f64::NEG_INFINITY, f64::max);
    let mut selection = Selection::new(settings.rule, candidates.len(), generator.random());
    if let Some(estimates) = estimates {
        selection = selection.with_estimates(candidates.iter().map(|&i| estimates[i]).collect());
    }
    let mut played = 0;
    // A batch is placed as a whole, also where a budget ends within it.
    let mut batch: VecDeque<usize> = VecDeque::new();
    let mut budgets: Vec<(usize, usize)> = settings.budgets.iter().copied().enumerate().collect();
    budgets.sort_by_key(|&(_, budget)| budget);
    let mut points = vec![(0.0, 0.0); budgets.len()];
    for (i, budget) in budgets {
        while played < budget {
            if batch.is_empty() {
                batch.extend(selection.next(settings.batch));
            }
            let Some(arm) = batch.pop_front() else { break };
            let all = &returns[candidates[arm]];
            selection.record(arm, all[generator.random_range(0..all.len())]);
            played += 1;
        }
        let kept = match (budget, settings.rule) {
            (0, Rule::Even | Rule::Unifloral) => {
                candidates.iter().map(|&policy| means[policy]).sum::<f64>()
                    / candidates.len() as f64
            }
            _ => means[candidates[selection.best()]],
        };
        points[i] = (kept, best - kept);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trials(rule: Rule) -> Trials {
        let budgets = BUDGETS.to_vec();
        Trials { rule, budgets, candidates: 4, batch: 1, trials: 400, seed: 3 }
    }

    #[test]
    fn without_noise_one_round_finds_the_best() {
        let returns: Vec<Vec<f64>> = (0..4).map(|i| vec![f64::from(i) - 9.0; 3]).collect();
        for rule in [Rule::Process, Rule::Even] {
            let curve = budget_curve(&returns, None, &trials(rule)).unwrap();
            for point in curve.iter().filter(|point| point.episodes >= 5) {
                assert_eq!((point.mean, point.regret), (-6.0, 0.0), "{rule:?}");
            }
        }
    }

    #[test]
    fn more_episodes_are_better_and_the_threads_do_not_matter() {
        let returns: Vec<Vec<f64>> =
            (0..9).map(|i| (0..40).map(|k| f64::from(i * 3 + k * 7 % 40)).collect()).collect();
        let curve = budget_curve(&returns, None, &trials(Rule::Process)).unwrap();
        assert!(curve[10].mean > curve[5].mean && curve[5].mean > curve[1].mean);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let alone = pool.install(|| budget_curve(&returns, None, &trials(Rule::Process)));
        assert_eq!(alone.unwrap(), curve);
    }

    #[test]
    fn bad_returns_are_errors() {
        let error = |returns: &[Vec<f64>], estimates: Option<&[f64]>, settings: &Trials| {
            budget_curve(returns, estimates, settings).unwrap_err()
        };
        let settings = trials(Rule::Even);
        assert_eq!(error(&[], None, &settings), CurveError::NoPolicy);
        let empty = [vec![1.0], vec![]];
        assert_eq!(error(&empty, None, &settings), CurveError::NoReturns { policy: 1 });
        let infinite = [vec![1.0, f64::INFINITY]];
        let expected = CurveError::NotFinite { policy: 0, episode: 1, value: f64::INFINITY };
        assert_eq!(error(&infinite, None, &settings), expected);
        let expected = CurveError::Estimates { got: 2, expected: 1 };
        assert_eq!(error(&[vec![1.0]], Some(&[1.0, 2.0]), &settings), expected);
        let nan = error(&[vec![1.0]], Some(&[f64::INFINITY]), &settings);
        assert_eq!(nan, CurveError::Estimate { policy: 0, value: f64::INFINITY });
        let none = Trials { trials: 0, ..settings };
        assert_eq!(error(&[vec![1.0]], None, &none), CurveError::Zero("trials"));
    }
}
