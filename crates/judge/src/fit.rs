//! [`fit`]: estimates of the discounted returns of several policies from a recording.
//!
//! A critic first learns the recording's own discounted returns, which are known, and then moves to
//! the values of the policies with [`FittedQ`]. From zero it would have to learn a horizon of
//! `1/(1 − γ)` steps through its targets.
//!
//! If there are several critics, each has its own initial weights, batches, and a weight from
//! Poisson(1) for each episode: the bootstrap of the recording.

use std::ops::ControlFlow;

use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};
use overtone_agents::value::{Mlp, network::Hidden};
use overtone_core::{
    ActionScale, Interval,
    seed::{self, Generator},
};
use overtone_data::Dataset;
use rand::RngExt;

use crate::{
    error::JudgeError,
    fitted_q::{Critic, FittedQ, return_bounds, weighted_squares},
    forced::Forced,
    recorded_steps::Recorded,
    statistics::{mean_and_error, normal, student},
};

/// A recording and the policies to judge on it.
#[derive(Clone, Copy, Debug)]
pub struct Fit<'a> {
    /// The recording: vectors, with rewards as recorded.
    pub data: &'a Dataset,
    /// The policies' actions at each of its rows.
    pub policies: &'a [Forced],
    /// `[rows]`: a number that conditions all policies at this row, in addition to the observation.
    pub conditioning: Option<&'a [f32]>,
    /// The scaling of recorded continuous actions to [-1, 1], if they have another range.
    pub action_scale: Option<&'a ActionScale>,
    /// Positions of the episodes to learn and to start from; `None`: all.
    pub episodes: Option<&'a [usize]>,
    /// The [time limit](crate::recorded_steps::time_limit) of the episodes.
    pub limit: Option<usize>,
}

/// Options of the critics.
#[derive(Clone, Debug, PartialEq)]
pub struct FitOptions {
    /// γ, the discount.
    pub gamma: f64,
    /// Number of critics. One critic has no weights of episodes.
    pub critics: usize,
    /// Updates towards the recording's own returns, before the others.
    pub return_updates: usize,
    /// Updates towards the policies' values.
    pub updates: usize,
    /// Updates between two estimates.
    pub estimate_every: usize,
    /// Steps of a batch.
    pub batch_size: usize,
    /// Adam's learning rate.
    pub learning_rate: f64,
    /// τ: the fraction of the distance by which a target follows at each update.
    pub target_rate: f64,
    /// Hidden layers of each critic.
    pub hidden: Hidden,
    /// Seed of weights, batches and bootstrap.
    pub seed: u64,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            gamma: 0.99,
            critics: 5,
            return_updates: 1000,
            updates: 2000,
            estimate_every: 200,
            batch_size: 256,
            learning_rate: 3e-4,
            // With .005, a value moves by 1/200 at an update and cannot travel a horizon of 100
            // steps in 2,000 updates.
            target_rate: 0.05,
            hidden: Hidden { n_layers: 2, width: 256, has_norms: true },
            seed: 1,
        }
    }
}

/// Maximum number of passes over the recorded steps: more would learn the noise of a small
/// recording. On recordings of 200 episodes of 8 steps, 10 and 50 passes have the same errors.
const PASSES: f64 = 20.0;

impl FitOptions {
    /// These options, with at most 20 passes over `n_steps` for the updates of each kind, and ten
    /// or more estimates.
    #[must_use]
    pub fn bounded(self, n_steps: usize) -> Self {
        let most = (PASSES * n_steps as f64 / self.batch_size as f64).ceil() as usize;
        let updates = self.updates.min(most);
        let estimate_every = self.estimate_every.min(updates / 10).max(1);
        let return_updates = self.return_updates.min(most);
        Self { updates, return_updates, estimate_every, ..self }
    }
}

/// A mean over critics and recorded starts.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub value: f64,
    /// The mean of each critic.
    pub per_critic: Vec<f64>,
    /// The standard error of the recorded starts.
    of_starts: f64,
}

impl Estimate {
    /// A central interval; `None` with one critic.
    pub fn interval(&self, level: f64) -> Option<Interval> {
        let critics = self.per_critic.len();
        let [_, error] = mean_and_error(&self.per_critic);
        // The spread of the critics, not of their mean: each of them is one bootstrap sample of the
        // recording, from which all learn.
        let of_critics = student(critics, level) * error * (critics as f64).sqrt();
        let half = of_critics.hypot(normal(level) * self.of_starts);
        let Self { value, .. } = *self;
        (critics > 1).then_some(Interval { low: value - half, high: value + half })
    }
}

/// The estimates after some updates.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimates {
    /// Updates towards the policies' values; 0: only the recording's returns were learned.
    pub updates: usize,
    /// `[critics][policies]`: mean value at the recorded starts, in discounted raw rewards.
    pub values: Vec<Vec<f64>>,
}

impl Estimates {
    /// The mean over critics.
    pub fn of(&self, policy: usize) -> f64 {
        self.values.iter().map(|critic| critic[policy]).sum::<f64>() / self.values.len() as f64
    }
}

/// Fitted critics.
#[derive(Debug)]
pub struct Fitted {
    /// Mean discounted return of the recording, up to cuts, and its standard error: the known
    /// answer for the policy that recorded it.
    pub recorded_return: [f64; 2],
    /// The smallest and the largest possible discounted return, in raw rewards.
    pub possible_returns: [f64; 2],
    /// The estimates over updates. Read the estimates of the recorded policy's clone first, because
    /// its answer is known.
    pub over_updates: Vec<Estimates>,
    recorded: Recorded,
    fitted_q: FittedQ,
    networks: Vec<Mlp>,
    /// Factor of the rewards.
    factor: f32,
    /// `[critics][starts · policies]`, in raw rewards.
    at_starts: Vec<Vec<f64>>,
}

/// Rows of one pass without gradients: 8 policies need some 40 MB.
const ROWS: usize = 1024;

/// Fits critics to a recording; results do not depend on the number of threads. `progress` is
/// called after each [`FitOptions::estimate_every`] updates of a critic, and may stop the fit.
///
/// # Errors
/// See [`JudgeError`].
///
/// # Panics
/// When `policies` is empty, or belongs to another recording: a caller's bug.
pub fn fit(
    inputs: &Fit<'_>,
    options: &FitOptions,
    progress: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Fitted, JudgeError> {
    let Fit { data, policies, conditioning, action_scale, episodes, limit } = *inputs;
    assert!(!policies.is_empty() && options.critics > 0, "no policy to judge, or no critic");
    let recorded = Recorded::of(data, policies, conditioning, action_scale, episodes, limit);
    let recorded = recorded.ok_or(JudgeError::Pixels)?;
    if recorded.steps().is_empty() {
        return Err(JudgeError::NoStep);
    }
    let factor = reward_factor(&recorded, options.gamma);
    let scaled_ends = recorded.reward_ends().map(|reward| reward * f64::from(factor));
    let [_, width, all] = recorded.widths();
    let fitted_q = FittedQ {
        n_policies: all / width,
        width,
        is_discrete: recorded.is_discrete(),
        gamma: options.gamma,
        bounds: return_bounds(scaled_ends, options.gamma, None),
    };
    let recorded_return = mean_and_error(&recorded.returns(options.gamma));
    let n_episodes = data.episodes().as_slice().len();
    let mut fitted = Fitted {
        recorded_return,
        possible_returns: return_bounds(recorded.reward_ends(), options.gamma, limit),
        over_updates: Vec::new(),
        recorded,
        fitted_q,
        networks: Vec::new(),
        factor,
        at_starts: Vec::new(),
    };
    for critic in 0..options.critics {
        fitted.add_critic(critic, n_episodes, options, progress)?;
    }
    Ok(fitted)
}

impl Fitted {
    /// The mean value of a policy at the recorded starts, in discounted raw rewards.
    pub fn estimate(&self, policy: usize) -> Estimate {
        self.estimate_of(|values| values[policy])
    }

    /// The estimate of a policy minus the estimate of another one. Errors that both share cancel.
    pub fn difference(&self, policy: usize, other: usize) -> Estimate {
        self.estimate_of(|values| values[policy] - values[other])
    }

    /// The difference between two policies after the updates of the second half, one number for
    /// each [`FitOptions::estimate_every`] updates.
    pub fn differences_over(&self, policy: usize, other: usize) -> Vec<f64> {
        let last = self.over_updates.last().map_or(0, |estimates| estimates.updates);
        let late = self.over_updates.iter().filter(|estimates| 2 * estimates.updates >= last);
        late.map(|estimates| estimates.of(policy) - estimates.of(other)).collect()
    }

    /// `Q_m(o, a)` of the recorded actions and `V_m(o)` of each policy at these rows, also of
    /// episodes that were not learned from: `[rows · policies]` each, means over critics, in raw
    /// rewards.
    pub fn values(&self, rows: &[usize]) -> [Vec<f64>; 2] {
        let n_critics = self.networks.len() as f64;
        let mut means = [Vec::new(), Vec::new()];
        for chunk in rows.chunks(ROWS) {
            let mut sums = [0, 1].map(|_| vec![0.0; chunk.len() * self.fitted_q.n_policies]);
            for network in &self.networks {
                let [observations, actions, policies] = self.recorded.at(chunk.iter().copied());
                let taken = self.fitted_q.recorded_values(network, observations.clone(), actions);
                let of_policies = self.fitted_q.policy_values(network, observations, policies);
                for (sum, values) in sums.iter_mut().zip([taken, of_policies]) {
                    for (sum, value) in sum.iter_mut().zip(self.in_raw_rewards(values)) {
                        *sum += value / n_critics;
                    }
                }
            }
            for (all, sum) in means.iter_mut().zip(sums) {
                all.extend(sum);
            }
        }
        means
    }

    /// Fits one more critic.
    fn add_critic(
        &mut self,
        number: usize,
        n_episodes: usize,
        options: &FitOptions,
        progress: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<(), JudgeError> {
        let FitOptions { gamma, batch_size, learning_rate, target_rate, .. } = *options;
        let own_seed = seed::derive_nth(seed::derive(options.seed, "critic"), number as u64);
        let generator = |role: &str| seed::generator(own_seed, role);
        let weights = match options.critics {
            1 => vec![1.0; n_episodes],
            _ => {
                let mut generator = generator("bootstrap");
                loop {
                    let weights = poisson_weights(n_episodes, &mut generator);
                    let mut used = self.recorded.steps().iter();
                    if used.any(|step| weights[step.episode] > 0.0) {
                        break weights;
                    }
                }
            }
        };
        let mut batches = generator("sampling");
        let n_steps = self.recorded.steps().len();
        let mut draw = || -> Vec<usize> {
            (0..batch_size).map(|_| batches.random_range(0..n_steps)).collect()
        };

        let factor = f64::from(self.factor);
        let returns = self.recorded.returns_to_go(gamma);
        let returns = self.recorded.steps().iter().map(|step| (returns[step.row] * factor) as f32);
        let returns: Vec<f32> = returns.collect();
        let mean = returns.iter().map(|&x| f64::from(x)).sum::<f64>() / n_steps as f64;
        let observation = self.recorded.widths()[0];
        let network =
            self.fitted_q.network(observation, options.hidden, mean as f32, &mut generator("init"));
        let mut critic = Critic::new(network);
        for _ in 0..options.return_updates {
            let drawn = draw();
            let steps = self.recorded.batch(&drawn, self.factor, &weights);
            let known: Vec<f32> = drawn.iter().map(|&at| returns[at]).collect();
            let known = TensorData::new(known, [batch_size, 1]);
            let known = Tensor::from_data(known, &Device::flex());
            let errors = self.fitted_q.errors(&critic.online.network, &steps, known);
            critic.descend(&weighted_squares(errors, &steps.weights), learning_rate);
        }
        critic.follow(1.0);
        self.note(number, 0, &critic)?;
        let updates = options.updates;
        for update in 1..=updates {
            let steps = self.recorded.batch(&draw(), self.factor, &weights);
            self.fitted_q.learn(&mut critic, &steps, [learning_rate, target_rate]);
            if update.is_multiple_of(options.estimate_every) || update == updates {
                self.note(number, update, &critic)?;
                if progress().is_break() {
                    return Err(JudgeError::Stopped);
                }
            }
        }
        self.at_starts.push(self.values_at_starts(&critic.online.network.valid()));
        self.networks.push(critic.online.network.valid());
        Ok(())
    }

    /// Adds the values of a critic to the estimates after `updates` updates.
    fn note(&mut self, number: usize, updates: usize, critic: &Critic) -> Result<(), JudgeError> {
        let values = self.values_at_starts(&critic.online.network.valid());
        let n_policies = self.fitted_q.n_policies;
        let n_starts = (values.len() / n_policies) as f64;
        let mean =
            |policy: usize| values.iter().skip(policy).step_by(n_policies).sum::<f64>() / n_starts;
        let means: Vec<f64> = (0..n_policies).map(mean).collect();
        if means.iter().any(|mean| !mean.is_finite()) {
            return Err(JudgeError::Diverged { critic: number, updates });
        }
        match self.over_updates.iter_mut().find(|estimates| estimates.updates == updates) {
            Some(estimates) => estimates.values.push(means),
            None => self.over_updates.push(Estimates { updates, values: vec![means] }),
        }
        Ok(())
    }

    /// `[starts · policies]`
    fn values_at_starts(&self, network: &Mlp) -> Vec<f64> {
        let starts = self.recorded.starts();
        let of_chunk = |rows: &[usize]| {
            let [observations, _, policies] = self.recorded.at(rows.iter().copied());
            self.in_raw_rewards(self.fitted_q.policy_values(network, observations, policies))
        };
        starts.chunks(ROWS).flat_map(of_chunk).collect()
    }

    fn in_raw_rewards(&self, values: Tensor<2>) -> Vec<f64> {
        values.into_data().iter::<f64>().map(|value| value / f64::from(self.factor)).collect()
    }

    /// The mean of a quantity of the policies' values at each start.
    fn estimate_of(&self, quantity: impl Fn(&[f64]) -> f64) -> Estimate {
        let per_start: Vec<Vec<f64>> = (self.at_starts.iter())
            .map(|values| values.chunks_exact(self.fitted_q.n_policies).map(&quantity).collect())
            .collect();
        let [critics, starts] = [per_start.len(), per_start[0].len()];
        let per_critic: Vec<f64> =
            per_start.iter().map(|values| values.iter().sum::<f64>() / starts as f64).collect();
        let mean_at = |start: usize| {
            per_start.iter().map(|values| values[start]).sum::<f64>() / critics as f64
        };
        let [value, of_starts] = mean_and_error(&(0..starts).map(mean_at).collect::<Vec<_>>());
        Estimate { value, per_critic, of_starts }
    }
}

/// Smallest deviation of the returns for scaling, relative to their mean. If it is rounding error,
/// the scaled values would be much larger than their differences.
const LEAST_DEVIATION: f64 = 0.001;

/// Factor of the rewards that gives the discounted returns-to-go of the steps a deviation of 1; 1 if
/// they are nearly equal.
///
/// With IQL's `1000 / (largest − smallest return of an episode)`, values are hundreds, and the default
/// number of updates hardly distinguishes policies: on the bundled `walker2d_medium`, the estimate of
/// the recorded policy was 244.5 (known: 267.1 ± 5.4), and is 263.6 with this factor.
fn reward_factor(recorded: &Recorded, gamma: f64) -> f32 {
    let returns = recorded.returns_to_go(gamma);
    let returns: Vec<f64> = recorded.steps().iter().map(|step| returns[step.row]).collect();
    let [mean, error] = mean_and_error(&returns);
    let deviation = error * (returns.len() as f64).sqrt();
    if deviation > LEAST_DEVIATION * mean.abs() { (1.0 / deviation) as f32 } else { 1.0 }
}

/// `n` weights from Poisson(1) (Knuth's method).
fn poisson_weights(n: usize, generator: &mut Generator) -> Vec<f32> {
    let mut draw = || {
        let (mut weight, mut product) = (0.0, generator.random::<f64>());
        while product > (-1.0f64).exp() {
            weight += 1.0;
            product *= generator.random::<f64>();
        }
        weight
    };
    (0..n).map(|_| draw()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_have_the_moments_of_poisson() {
        let weights = poisson_weights(100_000, &mut seed::generator(1, "bootstrap"));
        let [mean, error] = mean_and_error(&weights.iter().map(|&w| w.into()).collect::<Vec<_>>());
        // Mean and variance 1; five standard errors.
        assert!((mean - 1.0).abs() < 0.016, "{mean}");
        assert!((error * 100_000f64.sqrt() - 1.0).abs() < 0.016, "{error}");
        let zero = weights.iter().filter(|&&weight| weight == 0.0).count() as f64 / 1e5;
        assert!((zero - (-1.0f64).exp()).abs() < 0.008, "{zero}");
    }
}
