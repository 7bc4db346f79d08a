//! Importance-weighted estimates of a policy's mean discounted return, from recorded episodes.
//!
//! With recorded actions of probability `β(a|h)` and a policy `π`, in episodes `i = 1 … n`:
//!
//! ```text
//! ρ_t = π(a_t|h_t)/β(a_t|h_t)     w_t = Π_{k≤t} ρ_k
//! PDIS  = mean_i Σ_t γ^t w_t r_t
//! WPDIS = Σ_t γ^t (Σ_i w_t r_t)/(Σ_i w_t)
//! WDR   = Σ_t γ^t Σ_i [ w̄_t (r_t − Q(h_t,a_t)) + w̄_{t−1} V(h_t) ],  w̄_t = w_t/Σ_i w_t, w̄_{−1} = 1/n
//! ESS_t = (Σ_i w_t)²/Σ_i w_t²
//! ```
//!
//! An episode that ended keeps its last weight, and its rewards and values are 0 from then on.
//! `t` runs to the end of the longest episode. PDIS and WPDIS are Precup, Sutton & Singh 2000, WDR
//! is Thomas & Brunskill 2016, the effective sample size is Kish 1965. PDIS is unbiased, but one
//! episode with a large weight can dominate it. WPDIS and WDR are only consistent.
//!
//! Intervals are percentiles of a bootstrap over episodes (Hanna, Stone & Niekum 2017). All
//! estimates use the same samples, so that differences are paired.

use overtone_core::Interval;
use overtone_core::judgement::{Method, Overlap, ReturnEstimate};
use overtone_core::seed::{Generator, derive, derive_nth};
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;

/// One recorded episode, from its first step to its end. Fragments without an end are left out by
/// the caller.
#[derive(Clone, Debug, PartialEq)]
pub struct Logged {
    /// `[length]`, rewards in the recording's units.
    pub rewards: Vec<f64>,
    /// `[length]`, `ln π(a_t|h_t)/β(a_t|h_t)` of the recorded actions; −∞ for actions that the
    /// policy never takes.
    pub log_ratios: Vec<f64>,
    /// Values of the policy, for WDR. They must come from other episodes.
    pub values: Option<Values>,
}

/// Estimated discounted returns of the policy from each step of an episode on.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// `[length]`, `Q(h_t, a_t)` of the recorded action.
    pub of_actions: Vec<f64>,
    /// `[length]`, `V(h_t)`, the mean of `Q` over the policy's actions.
    pub of_histories: Vec<f64>,
}

/// Parameters of the estimates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Discount γ, in (0, 1].
    pub discount: f64,
    /// Bootstrap samples.
    pub replications: usize,
    /// Fraction of the samples inside each interval.
    pub level: f64,
    /// Seed of the samples. The result does not depend on the number of threads.
    pub seed: u64,
}

impl Default for Settings {
    /// 2,000 samples: an end of a 95 % interval then varies by some 3 % of its distance from the
    /// estimate between seeds.
    fn default() -> Self {
        Self { discount: 0.99, replications: 2_000, level: 0.95, seed: 0 }
    }
}

/// Estimates for one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighted {
    /// Discounted return of the recorded policy.
    pub recorded: RecordedReturn,
    /// PDIS (absent if a weight exceeds the largest number), WPDIS, and WDR (absent without
    /// values), in this order.
    pub estimates: Vec<ReturnEstimate>,
    /// The effective sample size, and where it becomes too small.
    pub overlap: Overlap,
}

/// Mean discounted return of the recorded episodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordedReturn {
    /// The mean.
    pub mean: f64,
    /// Interval of the mean. Absent for one episode.
    pub interval: Option<Interval>,
}

/// A recording without estimates.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WeightsError {
    /// A number is not finite.
    #[error("episode {episode}, step {step}: `{field}` is {value}, not a finite number")]
    NotFinite {
        /// The episode.
        episode: usize,
        /// The step, from 0.
        step: usize,
        /// The array.
        field: &'static str,
        /// The number.
        value: f64,
    },
    /// No episode has a weight.
    #[error(
        "all weights are 0 from step {step} on: in every episode, the policy would not have taken \
         one of the recorded actions up to this step"
    )]
    NoWeight {
        /// The first step without a weight, from 0.
        step: usize,
    },
}

/// PDIS, WPDIS and WDR with intervals, and the effective sample size at each step.
///
/// # Errors
/// See [`WeightsError`].
///
/// # Panics
/// Without episodes or bootstrap samples, when arrays of an episode differ in length, when only some
/// episodes have values, or when the discount or the level is out of range: a caller's bug.
pub fn estimate(episodes: &[Logged], settings: &Settings) -> Result<Weighted, WeightsError> {
    let &Settings { discount, replications, level, seed } = settings;
    assert!(discount > 0.0 && discount <= 1.0, "the discount is {discount}");
    assert!(replications > 0 && level > 0.0 && level < 1.0, "{settings:?}");
    check(episodes)?;
    let table = Table::new(episodes, discount)?;
    let n = episodes.len();
    let once = vec![1; n];
    let of_sample = table.sums(&once);
    // [replication]. Each replication has its own seed, so the order of the threads does not
    // affect the result.
    let seed = derive(seed, "bootstrap");
    let mut drawn = vec![Sums::default(); if n < 2 { 0 } else { replications }];
    drawn.par_iter_mut().enumerate().for_each_init(
        || vec![0; n],
        |counts: &mut Vec<u32>, (i, sums)| {
            let mut generator = Generator::seed_from_u64(derive_nth(seed, i as u64));
            counts.fill(0);
            (0..n).for_each(|_| counts[generator.random_range(0..n)] += 1);
            *sums = table.sums(counts);
        },
    );
    // A sample whose weights are all 0 at a step has no WPDIS and no WDR. At least 63 % of the samples
    // have both, as one episode with a weight is enough.
    let interval = |number: &dyn Fn(&Sums) -> f64| {
        let numbers: Vec<f64> = drawn.iter().map(number).filter(|x| x.is_finite()).collect();
        (!numbers.is_empty()).then(|| Interval::central(numbers, level))
    };
    let estimate = |method, number: fn(&Sums) -> f64| ReturnEstimate {
        method,
        value: number(&of_sample),
        interval: interval(&number),
        difference: interval(&|sums: &Sums| number(sums) - sums.recorded),
    };
    let mut estimates = Vec::new();
    if of_sample.pdis.is_finite() {
        estimates.push(estimate(Method::Pdis, |sums| sums.pdis));
    }
    estimates.push(estimate(Method::Wpdis, |sums| sums.wpdis));
    if episodes[0].values.is_some() {
        estimates.push(estimate(Method::Wdr, |sums| sums.wdr));
    }
    let effective = table.effective_sizes(&once);
    let horizon = effective.iter().position(|&size| size < LEAST_EFFECTIVE * n as f64);
    Ok(Weighted {
        recorded: RecordedReturn {
            mean: of_sample.recorded,
            interval: interval(&|sums: &Sums| sums.recorded),
        },
        estimates,
        overlap: Overlap { effective, horizon },
    })
}

/// Effective sample size, as a fraction of the episodes, below which an estimate rests on too few
/// of them.
pub const LEAST_EFFECTIVE: f64 = 0.1;

/// Every number must be finite, but a log-ratio may be −∞.
fn check(episodes: &[Logged]) -> Result<(), WeightsError> {
    assert!(!episodes.is_empty(), "no episode");
    for (episode, logged) in episodes.iter().enumerate() {
        let Logged { rewards, log_ratios, values } = logged;
        assert!(!rewards.is_empty(), "episode {episode} has no steps");
        assert_eq!(values.is_some(), episodes[0].values.is_some(), "values of episode {episode}");
        let mut arrays = vec![("rewards", rewards), ("log_ratios", log_ratios)];
        if let Some(Values { of_actions, of_histories }) = values {
            arrays.extend([("of_actions", of_actions), ("of_histories", of_histories)]);
        }
        for (field, numbers) in arrays {
            assert_eq!(numbers.len(), rewards.len(), "`{field}` of episode {episode}");
            let is_ratio = field == "log_ratios";
            let is_valid = |x: &f64| x.is_finite() || is_ratio && *x == f64::NEG_INFINITY;
            if let Some(step) = numbers.iter().position(|x| !is_valid(x)) {
                let value = numbers[step];
                return Err(WeightsError::NotFinite { episode, step, field, value });
            }
        }
    }
    Ok(())
}

/// The episodes by step, longest episode first, so that the first `n_active` episodes are those
/// that have not ended.
///
/// Weights are products of many ratios. They are stored relative to the largest weight of their
/// step, whose logarithm is the step's `log_scale`.
struct Table {
    steps: Vec<Step>,
    /// The cells of step 0, then of step 1, …: `n_active` for each step.
    cells: Vec<Cell>,
    /// `[n]`, the last weight of each episode, relative to the largest last weight of the episodes
    /// that ended before or with it.
    last_weights: Vec<f64>,
}

struct Step {
    n_active: usize,
    /// `γ^t`.
    discount: f64,
    log_scale: f64,
    /// Factor between the scales of ended episodes at the step before and at this one.
    carry: f64,
    /// Factor between the scale of ended episodes and `log_scale`.
    of_ended: f64,
}

#[derive(Clone, Copy)]
struct Cell {
    /// `w_t`, relative to the scale of step t.
    weight: f64,
    /// `w_{t−1}`, relative to the scale of step t − 1; 1 at the first step.
    before: f64,
    reward: f64,
    of_action: f64,
    of_history: f64,
}

/// The recorded return and the estimates in one sample of episodes.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    recorded: f64,
    pdis: f64,
    wpdis: f64,
    wdr: f64,
}

/// `e^(log_weight − log_scale)`, for a scale that is at least the weight.
fn relative(log_weight: f64, log_scale: f64) -> f64 {
    if log_weight == f64::NEG_INFINITY { 0.0 } else { (log_weight - log_scale).exp() }
}

impl Table {
    fn new(episodes: &[Logged], discount: f64) -> Result<Self, WeightsError> {
        let mut episodes: Vec<&Logged> = episodes.iter().collect();
        episodes.sort_by_key(|episode| std::cmp::Reverse(episode.rewards.len()));
        let largest = |logs: &[f64]| logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut n_active = episodes.len();
        let (mut steps, mut cells) = (Vec::new(), Vec::new());
        let mut last_weights = vec![0.0; n_active];
        // `ln w` of each episode; the largest of those that ended.
        let mut logs = vec![0.0; n_active];
        let (mut scale_before, mut ended_scale) = (0.0, f64::NEG_INFINITY);
        for step in 0..episodes[0].rewards.len() {
            let ended = n_active;
            while episodes[n_active - 1].rewards.len() <= step {
                n_active -= 1;
            }
            let ended_before = ended_scale;
            ended_scale = ended_scale.max(largest(&logs[n_active..ended]));
            for (last, &log) in last_weights.iter_mut().zip(&logs).take(ended).skip(n_active) {
                *last = relative(log, ended_scale);
            }
            let before = logs[..n_active].to_vec();
            for (log, episode) in logs.iter_mut().zip(&episodes[..n_active]) {
                *log += episode.log_ratios[step];
            }
            let log_scale = ended_scale.max(largest(&logs[..n_active]));
            if log_scale == f64::NEG_INFINITY {
                return Err(WeightsError::NoWeight { step });
            }
            for (i, episode) in episodes[..n_active].iter().enumerate() {
                let values = episode.values.as_ref();
                cells.push(Cell {
                    weight: relative(logs[i], log_scale),
                    before: relative(before[i], scale_before),
                    reward: episode.rewards[step],
                    of_action: values.map_or(0.0, |values| values.of_actions[step]),
                    of_history: values.map_or(0.0, |values| values.of_histories[step]),
                });
            }
            steps.push(Step {
                n_active,
                discount: discount.powf(step as f64),
                log_scale,
                carry: relative(ended_before, ended_scale),
                of_ended: relative(ended_scale, log_scale),
            });
            scale_before = log_scale;
        }
        Ok(Self { steps, cells, last_weights })
    }

    /// The estimates in the sample that has each episode `counts[i]` times. WPDIS and WDR are not
    /// finite where all weights of the sample are 0 at a step.
    fn sums(&self, counts: &[u32]) -> Sums {
        let n: f64 = counts.iter().map(|&count| f64::from(count)).sum();
        let mut all = Sums::default();
        let (mut ended, mut n_before, mut total_before) = (0.0, counts.len(), n);
        let mut cells = &self.cells[..];
        for step in &self.steps {
            ended = self.ended(step, n_before, ended, counts, 1);
            let (mut weights, mut rewards, mut weighted) = (0.0, 0.0, 0.0);
            let (mut residuals, mut values) = (0.0, 0.0);
            for (cell, &count) in cells.iter().zip(&counts[..step.n_active]) {
                let count = f64::from(count);
                let weight = count * cell.weight;
                weights += weight;
                rewards += count * cell.reward;
                weighted += weight * cell.reward;
                residuals += weight * (cell.reward - cell.of_action);
                values += count * cell.before * cell.of_history;
            }
            let total = weights + ended * step.of_ended;
            all.recorded += step.discount * rewards / n;
            all.pdis += step.discount * (step.log_scale.exp() * weighted / n);
            all.wpdis += step.discount * (weighted / total);
            all.wdr += step.discount * (residuals / total + values / total_before);
            (n_before, total_before) = (step.n_active, total);
            cells = &cells[step.n_active..];
        }
        all
    }

    /// The sum of the ended episodes' weights to the power `power`, from the sum at the step before.
    fn ended(&self, step: &Step, n_before: usize, ended: f64, counts: &[u32], power: i32) -> f64 {
        let new = (step.n_active..n_before)
            .map(|i| f64::from(counts[i]) * self.last_weights[i].powi(power));
        ended * step.carry.powi(power) + new.sum::<f64>()
    }

    /// `ESS_t` of every step.
    fn effective_sizes(&self, once: &[u32]) -> Vec<f64> {
        let mut ended = [0.0; 2];
        let mut n_before = once.len();
        let mut cells = &self.cells[..];
        let size = |step: &Step| {
            let [weights, squares] = [1, 2].map(|power| {
                let ended = &mut ended[power as usize - 1];
                *ended = self.ended(step, n_before, *ended, once, power);
                let active = cells[..step.n_active].iter().map(|cell| cell.weight.powi(power));
                active.sum::<f64>() + *ended * step.of_ended.powi(power)
            });
            n_before = step.n_active;
            cells = &cells[step.n_active..];
            weights * weights / squares
        };
        self.steps.iter().map(size).collect()
    }
}
