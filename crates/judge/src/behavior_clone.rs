//! [`BehaviorClone`]: the recorded policy, estimated from its actions.
//!
//! Episodes are in [`FOLDS`] folds. The distribution at a row comes from a network that did not
//! learn from this row's fold. Otherwise recorded actions would look more likely than they are.

use std::collections::HashSet;

use burn::{
    module::Module,
    tensor::{Tensor, activation::log_softmax},
};
use overtone_agents::value::{
    Mlp,
    network::{Hidden, constant_like},
};
use overtone_core::{interval::quantile, seed};
use overtone_model::init::{Init, standard_normal};
use overtone_train::{AdamWConfig, Learner};
use rand::RngExt;

use crate::{
    error::JudgeError,
    forced::{Forced, ForcedActions},
    recorded_steps::{Recorded, folds},
};

/// Number of folds: each network learns from three fifths of the episodes.
pub const FOLDS: usize = 5;

/// Maximum of updates per network.
const UPDATES: usize = 1000;

/// Updates between two measurements on the fold that stops learning.
const EVERY: usize = 50;

/// Measurements without an improvement after which learning stops: small recordings overfit.
const PATIENCE: usize = 4;

/// Maximum of rows per measurement.
const MEASURED: usize = 4096;

const BATCH: usize = 256;
const LEARNING_RATE: f64 = 1e-3;
const HIDDEN: Hidden = Hidden { n_layers: 2, width: 256, has_norms: true };

/// Smallest and largest logarithm of a standard deviation. Actions that repeat exactly would have
/// an unbounded density.
const LOG_STD: [f64; 2] = [-5.0, 2.0];

/// Fraction of recorded actions that count as rare.
pub const RARE: f64 = 0.01;

/// A distribution over actions at each row: probabilities of discrete actions, or independent
/// Gaussians for continuous ones, which depend on the observation alone.
#[derive(Clone, Debug)]
pub struct BehaviorClone {
    /// `[rows, n]` log-probabilities, or `[rows, 2 · width]` means and logarithms of deviations.
    outputs: Vec<f32>,
    /// Number of discrete actions, or numbers of a continuous one.
    width: usize,
    is_discrete: bool,
    /// `[rows]`: log-probability, or log-density, of the recorded action.
    recorded: Vec<f64>,
}

impl BehaviorClone {
    /// Fits a clone to all episodes of a recording. `progress` is called after each fold.
    ///
    /// Each network learns from all folds but two: it stops by the loss on the second one, so that the
    /// likelihoods on the first one are those of unseen episodes.
    ///
    /// # Errors
    /// [`JudgeError::CloneDiverged`] when a loss is not finite.
    pub fn fit(
        recorded: &Recorded,
        seed: u64,
        progress: &mut dyn FnMut(),
    ) -> Result<Self, JudgeError> {
        let [_, width, _] = recorded.widths();
        let is_discrete = recorded.is_discrete();
        let n_outputs = if is_discrete { width } else { 2 * width };
        let mut outputs = vec![0.0; recorded.n_rows() * n_outputs];
        let folds = folds(recorded.n_episodes(), FOLDS, seed);
        for fold in 0..FOLDS {
            let rows_of = |fold: usize| {
                let episodes = &folds[fold];
                recorded.split_rows(|episode| episodes.binary_search(&episode).is_ok())
            };
            let stopping = (fold + 1) % FOLDS;
            let ([inside, _], [measured, others]) = (rows_of(fold), rows_of(stopping));
            let is_unseen: HashSet<usize> = inside.iter().copied().collect();
            let learned: Vec<usize> =
                others.into_iter().filter(|row| !is_unseen.contains(row)).collect();
            let fold_seed = seed::derive_nth(seed::derive(seed, "clone"), fold as u64);
            let network = learn(recorded, &learned, &measured, n_outputs, fold_seed)?;
            for rows in inside.chunks(MEASURED) {
                let [observations, ..] = recorded.at(rows.iter().copied());
                let output = network.forward(observations);
                let penalties = recorded.penalties(rows.iter().copied());
                let values = distribution(output, penalties, is_discrete).into_data();
                let values: Vec<f32> = values.iter::<f32>().collect();
                for (&row, values) in rows.iter().zip(values.chunks_exact(n_outputs)) {
                    outputs[row * n_outputs..][..n_outputs].copy_from_slice(values);
                }
            }
            progress();
        }
        let mut clone = Self { outputs, width, is_discrete, recorded: Vec::new() };
        clone.recorded = (0..recorded.n_rows())
            .map(|row| match recorded.action(row) {
                [index] if is_discrete => clone.row(row)[*index as usize].into(),
                action => clone.log_density(row, action),
            })
            .collect();
        Ok(clone)
    }

    fn row(&self, row: usize) -> &[f32] {
        let n = if self.is_discrete { self.width } else { 2 * self.width };
        &self.outputs[row * n..][..n]
    }

    fn log_density(&self, row: usize, action: &[f32]) -> f64 {
        let (means, log_stds) = self.row(row).split_at(self.width);
        let of_one = |((&x, &mean), &log_std): ((&f32, &f32), &f32)| {
            let distance = f64::from(x - mean) / f64::from(log_std).exp();
            -0.5 * distance * distance - f64::from(log_std) - 0.5 * std::f64::consts::TAU.ln()
        };
        action.iter().zip(means).zip(log_stds).map(of_one).sum()
    }

    /// The clone's action at each row: probabilities, or a draw from its Gaussian by `seed`, limited
    /// to [-1, 1]. The mean would be another policy than the recorded one, which varies.
    pub fn policy(&self, seed: u64) -> Forced {
        let (width, rows) = (self.width, self.recorded.len());
        let actions = if self.is_discrete {
            let values = self.outputs.iter().map(|log_prob| log_prob.exp()).collect();
            ForcedActions::Probabilities { n: width, values }
        } else {
            let mut noise = seed::generator(seed, "clone's actions");
            let mut values = Vec::with_capacity(rows * width);
            for row in 0..rows {
                let (means, log_stds) = self.row(row).split_at(width);
                values.extend(means.iter().zip(log_stds).map(|(mean, log_std)| {
                    let distance = log_std.exp() * standard_normal(&mut noise) as f32;
                    (mean + distance).clamp(-1.0, 1.0)
                }));
            }
            ForcedActions::Vectors { width, values }
        };
        Forced { actions, returns_to_go: vec![0.0; rows] }
    }

    /// The share of rows on which a policy's action is less likely than the rarest 1 % of recorded
    /// actions. A discrete action counts with the policy's probability.
    pub fn uncovered(&self, policy: &ForcedActions) -> f64 {
        let mut sorted = self.recorded.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let rare = quantile(&sorted, RARE);
        let of_row = |(row, action): (usize, &[f32])| {
            if self.is_discrete {
                let probs = action.iter().zip(self.row(row));
                probs
                    .filter(|(_, clone)| f64::from(**clone) < rare)
                    .map(|(p, _)| f64::from(*p))
                    .sum()
            } else {
                f64::from(u8::from(self.log_density(row, action) < rare))
            }
        };
        let rows = policy.values().chunks_exact(self.width).enumerate();
        rows.map(of_row).sum::<f64>() / self.recorded.len() as f64
    }
}

/// Log-probabilities, or means and logarithms of deviations, from a network's output. Penalties, `[rows,
/// n]`, are added to the logits of discrete actions.
fn distribution(output: Tensor<2>, penalties: Option<Tensor<2>>, is_discrete: bool) -> Tensor<2> {
    if is_discrete {
        let logits = match penalties {
            Some(penalties) => output.clone() + constant_like(penalties, &output),
            None => output,
        };
        return log_softmax(logits, 1);
    }
    let [_, outputs] = output.dims();
    let means = output.clone().narrow(1, 0, outputs / 2);
    let log_stds = output.narrow(1, outputs / 2, outputs / 2).clamp(LOG_STD[0], LOG_STD[1]);
    Tensor::cat(vec![means, log_stds], 1)
}

/// Mean negative log-likelihood of recorded actions.
///
/// # Shapes
/// - `output`: `[rows, outputs]`; `actions`: `[rows, width]`, or `[rows, 1]` with indices
/// - `penalties`: `[rows, n]`
fn loss(
    output: Tensor<2>,
    actions: Tensor<2>,
    penalties: Option<Tensor<2>>,
    is_discrete: bool,
) -> Tensor<1> {
    let output = distribution(output, penalties, is_discrete);
    let actions = constant_like(actions, &output);
    if is_discrete {
        return output.gather(1, actions.int()).mean().neg();
    }
    let width = actions.dims()[1];
    let (means, log_stds) = (output.clone().narrow(1, 0, width), output.narrow(1, width, width));
    let distance = (actions - means) * log_stds.clone().neg().exp();
    (distance.square() * 0.5 + log_stds).sum_dim(1).mean()
}

/// The network that fits `left_out` best while it learns from `rows`.
fn learn(
    recorded: &Recorded,
    rows: &[usize],
    left_out: &[usize],
    n: usize,
    seed: u64,
) -> Result<Mlp, JudgeError> {
    let is_discrete = recorded.is_discrete();
    let [observation, ..] = recorded.widths();
    let device = burn::tensor::Device::flex().autodiff();
    let network = Mlp::init(
        [observation, n],
        HIDDEN,
        &mut Init::drawn(&device, &mut seed::generator(seed, "init")),
    );
    let measured: Vec<usize> =
        left_out.iter().step_by(left_out.len().div_ceil(MEASURED).max(1)).copied().collect();
    let [seen, acted, _] = recorded.at(measured.iter().copied());
    let penalties = recorded.penalties(measured.into_iter());
    let measure = |network: &Mlp| {
        let output = network.forward(seen.clone());
        let loss = loss(output, acted.clone(), penalties.clone(), is_discrete);
        loss.into_data().iter::<f64>().sum::<f64>()
    };
    let mut batches = seed::generator(seed, "sampling");
    let mut best = (f64::INFINITY, network.valid());
    let mut learner = Learner::without_averages(network, AdamWConfig::default());
    let mut since = 0;
    for update in 1..=UPDATES {
        let drawn: Vec<usize> =
            (0..BATCH).map(|_| rows[batches.random_range(0..rows.len())]).collect();
        let [observations, actions, _] = recorded.at(drawn.iter().copied());
        let penalties = recorded.penalties(drawn.into_iter());
        let output = learner.network.forward(observations);
        let loss = loss(output, actions, penalties, is_discrete);
        learner.step(loss.backward(), LEARNING_RATE);
        if update % EVERY == 0 {
            let network = learner.network.valid();
            let measured = measure(&network);
            if !measured.is_finite() {
                return Err(JudgeError::CloneDiverged { updates: update });
            }
            since += 1;
            if measured < best.0 {
                (best, since) = ((measured, network), 0);
            }
            if since == PATIENCE {
                break;
            }
        }
    }
    Ok(best.1)
}
