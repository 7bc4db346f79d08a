//! [`FittedQ`]: values of several policies, learned from the same recorded steps (Le et al. 2019;
//! Paine et al. 2020).
//!
//! With a target network `Q'` that follows `Q`, and the action `π_m` of policy `m` at the *next*
//! step of the recording, a step on a batch is
//!
//! ```text
//! y_m = clip(r + γ (1 − terminated) v_m)
//! v_m = Q'_m(o', π_m)              continuous actions
//!     = Σ_a π_m(a) Q'_m(o', a)     discrete actions
//! L   = Σ_m mean w (Q_m(o, a) − y_m)²
//! ```
//!
//! One network has an output for each policy (for each policy and action if these are discrete).
//! Policies share the hidden layers, so the difference of two estimates has less noise than each.
//!
//! Differs from d3rlpy 2.8.1: the target network follows at every step, targets are clipped, and
//! the loss of discrete actions is squared (theirs is Huber's).

use burn::tensor::{Device, Int, Tensor, TensorData};
use overtone_agents::value::{
    Mlp,
    network::{Hidden, constant_like},
    twin::concat,
};
use overtone_core::seed::Generator;
use overtone_model::init::Init;
use overtone_train::{AdamWConfig, Learner, Target};

use crate::recorded_steps::RecordedSteps;

/// Learning of the values of several policies.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedQ {
    /// Number of policies.
    pub n_policies: usize,
    /// Numbers of a continuous action, or the number of discrete ones.
    pub width: usize,
    /// Whether actions are discrete.
    pub is_discrete: bool,
    /// γ, the discount.
    pub gamma: f64,
    /// Smallest and largest target.
    pub bounds: [f64; 2],
}

/// A critic: a network in training, and its target.
#[derive(Clone, Debug)]
pub struct Critic {
    /// The trained network.
    pub online: Learner<Mlp>,
    /// The network that computes targets.
    pub target: Target<Mlp>,
}

impl Critic {
    /// A critic before its first step, with the trained network as target.
    pub fn new(network: Mlp) -> Self {
        // The default is Adam; a norm that no gradient reaches turns its clipping off.
        let optimizer = AdamWConfig { clip_norm: 1e9, ..AdamWConfig::default() };
        Self { target: Target::of(&network), online: Learner::without_averages(network, optimizer) }
    }

    /// One step down the gradient of `loss`.
    pub fn descend(&mut self, loss: &Tensor<1>, learning_rate: f64) {
        self.online.step(loss.backward(), learning_rate);
    }

    /// Moves the target towards the trained network by the fraction `rate`.
    pub fn follow(&mut self, rate: f64) {
        self.target.follow(&self.online.network, rate);
    }
}

impl FittedQ {
    /// A network for observations of this width, with `mean` as first output for all inputs that
    /// its weights ignore.
    pub fn network(
        &self,
        observation: usize,
        hidden: Hidden,
        mean: f32,
        generator: &mut Generator,
    ) -> Mlp {
        let widths = if self.is_discrete {
            [observation, self.n_policies * self.width]
        } else {
            [observation + self.width, self.n_policies]
        };
        let init = &mut Init::drawn(&Device::flex().autodiff(), generator);
        let mut network = Mlp::init(widths, hidden, init);
        if let Some(last) = network.layers.last_mut() {
            last.bias = init.constant([widths[1]], mean);
        }
        network
    }

    /// `v_m`: the value of each policy's own action.
    ///
    /// # Shapes
    /// - `observations`: `[rows, observation]`; `policies`: `[rows, policies · width]`
    /// - result: `[rows, policies]`
    pub fn policy_values(
        &self,
        network: &Mlp,
        observations: Tensor<2>,
        policies: Tensor<2>,
    ) -> Tensor<2> {
        let Self { n_policies, width, is_discrete, .. } = *self;
        let [rows, observation] = observations.dims();
        if is_discrete {
            let values = network.forward(observations) * policies;
            return values.reshape([rows, n_policies, width]).sum_dim(2).squeeze_dim::<2>(2);
        }
        let repeated = observations.unsqueeze_dim::<3>(1).repeat_dim(1, n_policies);
        let repeated = repeated.reshape([rows * n_policies, observation]);
        let policies = policies.reshape([rows * n_policies, width]);
        // Output `m` for the rows of policy `m`; the other outputs are of other policies.
        let values = network.forward(concat(repeated, policies));
        let policy_idx: Vec<i32> =
            (0..rows * n_policies).map(|row| (row % n_policies) as i32).collect();
        let policy_idx = TensorData::new(policy_idx, [rows * n_policies, 1]);
        let policy_idx = Tensor::<2, Int>::from_data(policy_idx, &values.device());
        values.gather(1, policy_idx).reshape([rows, n_policies])
    }

    /// `Q_m(o, a)` of recorded actions for every policy.
    ///
    /// # Shapes
    /// - `observations`: `[rows, observation]`; `actions`: `[rows, width]`, or `[rows, 1]` with the
    ///   indices of discrete actions
    /// - result: `[rows, policies]`
    pub fn recorded_values(
        &self,
        network: &Mlp,
        observations: Tensor<2>,
        actions: Tensor<2>,
    ) -> Tensor<2> {
        if !self.is_discrete {
            return network.forward(concat(observations, actions));
        }
        let [rows, _] = observations.dims();
        let values = network.forward(observations).reshape([rows, self.n_policies, self.width]);
        let taken = constant_like(actions, &values).int().reshape([rows, 1, 1]);
        values.gather(2, taken.repeat_dim(1, self.n_policies)).squeeze_dim::<2>(2)
    }

    /// `y_m` of each step, `[rows, policies]`, without gradients.
    pub fn targets(&self, target: &Mlp, steps: &RecordedSteps) -> Tensor<2> {
        let [next, policies] = [&steps.next_observations, &steps.next_policies];
        let values = self.policy_values(target, next.clone(), policies.clone());
        let returns = values * steps.continues.clone() * self.gamma + steps.rewards.clone();
        let [low, high] = self.bounds;
        returns.clamp(low, high)
    }

    /// `Q_m(o, a) − y` of each step, `[rows, policies]`; `targets` are constants with a column for
    /// each policy, or one for all.
    pub fn errors(&self, network: &Mlp, steps: &RecordedSteps, targets: Tensor<2>) -> Tensor<2> {
        let [observations, actions] = [&steps.observations, &steps.actions];
        let values = self.recorded_values(network, observations.clone(), actions.clone());
        let targets = constant_like(targets, &values);
        values - targets
    }

    /// One step of `critic` towards the targets of its own, after which its target follows.
    pub fn learn(
        &self,
        critic: &mut Critic,
        steps: &RecordedSteps,
        [learning_rate, target_rate]: [f64; 2],
    ) {
        let targets = self.targets(&critic.target.network, steps);
        let errors = self.errors(&critic.online.network, steps, targets);
        critic.descend(&weighted_squares(errors, &steps.weights), learning_rate);
        critic.follow(target_rate);
    }
}

/// `Σ_m mean w e_m²`, `[1]`, of errors `[rows, policies]` with weights `[rows, 1]`.
pub fn weighted_squares(errors: Tensor<2>, weights: &Tensor<2>) -> Tensor<1> {
    let [rows, _] = errors.dims();
    let weights = constant_like(weights.clone(), &errors);
    // No division: burn rounds the factor of its gradient to single precision.
    (errors.square() * weights).sum() * (1.0 / rows as f64)
}

/// Bounds of a discounted return, from the smallest and the largest reward: smallest and largest
/// value of one reward, followed by nothing or by the same reward for `longest` steps in all (`None`:
/// for ever).
///
/// `r / (1 − γ)` alone would be wrong if the task can end: with rewards from 1 to 6 and γ = 0.99, a
/// robot that falls would still have the value 100.
pub fn return_bounds(
    [smallest, largest]: [f64; 2],
    gamma: f64,
    longest: Option<usize>,
) -> [f64; 2] {
    // For γ = 1 and a reward of 0 for ever the product is not a number, which `min` and `max` ignore.
    let steps = match longest {
        Some(steps) if gamma == 1.0 => steps as f64,
        Some(steps) => (1.0 - gamma.powf(steps as f64)) / (1.0 - gamma),
        None => 1.0 / (1.0 - gamma),
    };
    [(smallest * steps).min(smallest), (largest * steps).max(largest)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_bounds(
        rewards: [f64; 2],
        gamma: f64,
        longest: impl Into<Option<usize>>,
        expected: [f64; 2],
    ) {
        let bounds = return_bounds(rewards, gamma, longest.into());
        for (got, expected) in bounds.into_iter().zip(expected) {
            assert!(got == expected || (got - expected).abs() < 1e-9, "{rewards:?}: {got}");
        }
    }

    #[test]
    fn bounds_hold_whether_the_task_ends_or_not() {
        check_bounds([1.0, 6.0], 0.75, None, [1.0, 24.0]);
        check_bounds([-2.0, -1.0], 0.75, None, [-8.0, -1.0]);
        check_bounds([-1.0, 3.0], 0.5, None, [-2.0, 6.0]);
        check_bounds([0.0, 1.0], 1.0, None, [0.0, f64::INFINITY]);
        check_bounds([-1.0, 0.0], 1.0, None, [f64::NEG_INFINITY, 0.0]);
        // 2 (1 + .5 + .25), and −1 at once.
        check_bounds([-1.0, 2.0], 0.5, 3, [-1.75, 3.5]);
        check_bounds([1.0, 2.0], 0.5, 3, [1.0, 3.5]);
        check_bounds([-1.0, 2.0], 1.0, 3, [-3.0, 6.0]);
    }
}
