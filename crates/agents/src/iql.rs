//! Implicit Q-learning (Kostrikov, Nair & Levine 2022): values learned only from recorded actions.
//!
//! It learns two critics `Q` with targets `Q'` that follow them, a value `V`, and an actor
//! `N(tanh μ(s), σ²)`, where ln σ is one vector for all states. A step on a batch is, with all
//! networks taken before it,
//!
//! ```text
//! A   = min_i Q'_i(s, a) − V(s)
//! L_V = mean |τ − 1(A < 0)| A²
//! L_Q = ½ Σ_i mean (Q_i(s, a) − r − γ (1 − done) V(s'))²
//! L_π = −mean min(e^{βA}, 100) ln N(a; tanh μ(s), σ²)
//! ```
//!
//! Each loss moves only its own networks: `V(s')` is a constant in `L_Q`, and `A` in `L_π`. Then
//! `Q'` moves by a fraction of the distance. The actor's learning rate falls as a cosine, to 0 at the run's end, if
//! the run's own schedule is constant. Rewards are multiplied by
//! `1000 / (largest − smallest return of an episode)`, unless these are nearly equal. The agent
//! acts with `tanh μ(s)`.
//!
//! Follows the paper's code on locomotion and CORL's. Differs from the paper's code: `L_Q` has the
//! factor ½ (Adam is invariant to it), layers are initialised with PyTorch's default (theirs are
//! orthogonal), ln σ has the lower bound −20 instead of −5, and observations are normalized.
//! Recorded actions may be -1 and 1, which the paper's code moves inwards by 1e-5. Critics and
//! actor use the value before its step, as in CORL.

use std::{
    f64::consts::{PI, TAU},
    sync::OnceLock,
};

use burn::{
    module::{Module, Param, ParamId},
    tensor::{Device, Tensor},
};
use documented::DocumentedFields;
use overtone_core::{ActionSpace, ObservationSpace, Policy, Task, seed::Generator};
use overtone_data::Batch;
use overtone_model::{
    ModelError,
    init::Init,
    matrices::Matrices,
    weights::{self, NamedTensors},
};
use overtone_train::{
    Algorithm, Checkpoint, Export, Exported, Job, Learner, ScheduleKind, StepAt, StepFigures,
    Stored, TrainConfig, TrainError, Trainer, Training, TrainingData, follow,
};
use serde::{Deserialize, Serialize};

use crate::{
    options::{AlgorithmOptions, Restored},
    value::{
        ActorPolicy, Mlp, Rescaling, Steps, Twin,
        keys::{check_fractions, check_positive},
        network::{self, Hidden, constant_like},
        parts::{self, Parts},
        policy::ActorOf,
        steps::{nothing_learned, where_finite},
        twin::{concat, squared_errors},
    },
};

/// The name after `algorithm=`, and the name of the options' section.
const NAME: &str = "iql";
/// The largest weight of an action.
const LARGEST_WEIGHT: f64 = 100.0;
/// Bounds of ln σ.
const LOG_STD: [f64; 2] = [-20.0, 2.0];
/// Spread of the data's returns after rewards were scaled.
const SPREAD: f32 = 1000.0;
/// Minimum spread of the returns for scaling, relative to the largest one. For nearly equal
/// returns, the scaled values would be much larger than their differences, and no network could
/// distinguish them. If the spread is rounding error, the differences would be only rounding error.
const LEAST_SPREAD: f32 = 0.01;

/// Options of the algorithm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct IqlConfig {
    /// τ: expectile of the values of recorded actions, from 0.5 (their mean) towards 1 (their
    /// best); the paper's 0.7.
    pub expectile: f64,
    /// β: how much more weight better actions have; 0 clones all actions. The paper's 3 is for a
    /// million steps. After minutes of training, 3 had a lower return than 1 on seven datasets of
    /// twelve, and less than half on three (docs/results/d4rl-like.md).
    pub beta: f64,
    /// Discount of later rewards.
    pub gamma: f64,
    /// Rate of the target networks' running average.
    pub target_rate: f64,
    /// Hidden layers of the actor, of each critic and of the value.
    pub n_layers: usize,
    /// Width of the hidden layers.
    pub hidden: usize,
    /// Whether observations are normalized.
    pub normalize: bool,
    /// Whether rewards are multiplied by 1000 / (largest - smallest episode return of the data), as
    /// in the paper on locomotion tasks.
    pub scale_rewards: bool,
}

impl Default for IqlConfig {
    fn default() -> Self {
        Self {
            expectile: 0.7,
            beta: 1.0,
            gamma: 0.99,
            target_rate: 0.005,
            n_layers: 2,
            hidden: 256,
            normalize: true,
            scale_rewards: true,
        }
    }
}

impl IqlConfig {
    fn layers(&self) -> Hidden {
        Hidden { n_layers: self.n_layers, width: self.hidden, has_norms: false }
    }
}

impl AlgorithmOptions for IqlConfig {
    fn validate(
        &self,
        observations: &ObservationSpace,
        actions: &ActionSpace,
    ) -> Result<(), ModelError> {
        network::widths(NAME, observations, actions)?;
        check_positive(NAME, &[("beta", self.beta)])?;
        self.layers().check(NAME)?;
        let keys = [
            ("expectile", self.expectile),
            ("gamma", self.gamma),
            ("target_rate", self.target_rate),
        ];
        check_fractions(NAME, &keys)
    }

    fn describe(&self) -> String {
        let Self { expectile, beta, n_layers, hidden, .. } = self;
        format!(
            "implicit Q-learning, expectile {expectile}, beta {beta}, {n_layers} layers of {hidden}"
        )
    }

    fn short_name(&self) -> String {
        "iql".into()
    }

    fn keys_of_weights(&self) -> &'static [&'static str] {
        &["n_layers", "hidden", "normalize"]
    }

    fn trainer(
        &self,
        task: &Task,
        job: Job,
        resume: Option<&Checkpoint>,
    ) -> Result<Box<dyn Training>, TrainError> {
        let algorithm = Iql::new(self.clone(), &task.observations, &task.actions);
        Ok(Box::new(Trainer::new(algorithm, job, resume)?))
    }

    fn policy(&self, of: &Restored<'_>) -> Result<Box<dyn Policy>, ModelError> {
        // Acting does not use the deviation, only the weights of the mean.
        let mean = weights::of_part("mean", of.weights);
        let of = Restored { weights: &mean, ..*of };
        let actor =
            ActorOf { algorithm: NAME, hidden: self.layers(), is_normalized: self.normalize };
        Ok(Box::new(ActorPolicy::restore(actor, &of)?))
    }
}

/// An actor `N(tanh μ(s), σ²)`.
#[derive(Module, Debug)]
pub struct GaussianActor {
    /// μ, before tanh.
    pub mean: Mlp,
    /// ln σ, `[action]`.
    pub log_std: Param<Tensor<1>>,
}

impl Matrices for GaussianActor {
    fn matrices(&self) -> Vec<ParamId> {
        self.mean.matrices()
    }
}

impl GaussianActor {
    /// `ln N(a; tanh μ(s), σ²)` of every row, `[rows, 1]`.
    pub fn log_likelihood(&self, observations: Tensor<2>, actions: Tensor<2>) -> Tensor<2> {
        let log_std = self.log_std.val().clamp(LOG_STD[0], LOG_STD[1]).unsqueeze::<2>();
        let mean = self.mean.act(observations);
        let actions = constant_like(actions, &mean);
        let distance = (actions - mean) / log_std.clone().exp();
        ((distance.square() + TAU.ln()) / -2.0 - log_std).sum_dim(1)
    }
}

/// The networks that learn values, with one optimizer.
#[derive(Module, Debug)]
pub struct Critics {
    /// Critics of observations and actions.
    pub critics: Twin,
    /// `V`, the value of observations.
    pub value: Mlp,
}

impl Matrices for Critics {
    fn matrices(&self) -> Vec<ParamId> {
        [self.critics.matrices(), self.value.matrices()].concat()
    }
}

/// Everything that a step changes; the actor acts with its mean.
#[derive(Clone, Debug)]
pub struct IqlState {
    /// The acting network.
    pub actor: Learner<GaussianActor>,
    /// Values of recorded actions.
    pub critics: Learner<Critics>,
    /// The target of the critics; it does not track gradients.
    pub target: Twin,
}

const TARGET_CRITICS: &str = "target_critics";
const CRITIC_OPTIMIZER: &str = "critic_optimizer";
const ACTOR_OPTIMIZER: &str = "actor_optimizer";

impl Export for IqlState {
    fn export_model(&self) -> NamedTensors {
        self.actor.export_model()
    }

    fn export_training(&self) -> NamedTensors {
        let mut tensors = Parts::default()
            .with_training(ACTOR_OPTIMIZER, &self.actor)
            .with(TARGET_CRITICS, &self.target)
            .with_training(CRITIC_OPTIMIZER, &self.critics)
            .into_tensors();
        tensors.extend(self.critics.export_model());
        tensors
    }
}

impl Stored for IqlState {
    fn begin(self, exported: &Exported) -> Result<Self, ModelError> {
        let stored = &exported.training;
        Ok(Self {
            actor: self.actor.begin(exported)?,
            critics: parts::begin(self.critics, stored.clone())?,
            target: parts::module(self.target, TARGET_CRITICS, stored)?,
        })
    }

    fn import(self, exported: &Exported, _n_steps: u64) -> Result<Self, ModelError> {
        let (model, stored) = (exported.model.clone(), &exported.training);
        Ok(Self {
            actor: parts::learner(self.actor, model, ACTOR_OPTIMIZER, stored)?,
            critics: parts::learner(self.critics, stored.clone(), CRITIC_OPTIMIZER, stored)?,
            target: parts::module(self.target, TARGET_CRITICS, stored)?,
        })
    }

    fn n_parameters(&self) -> usize {
        self.actor.n_parameters() + self.critics.n_parameters()
    }
}

/// Losses of one batch; each `[1]`.
pub struct IqlLosses {
    /// `L_V`
    pub value: Tensor<1>,
    /// `L_Q`
    pub critic: Tensor<1>,
    /// `L_π`
    pub actor: Tensor<1>,
    /// Mean of `V(s)`, a constant.
    pub mean_value: Tensor<1>,
}

/// Learning of an actor from the better of the recorded actions.
#[derive(Clone, Debug)]
pub struct Iql {
    config: IqlConfig,
    observations: ObservationSpace,
    actions: ActionSpace,
    /// Computed with the first batch.
    reward_factor: OnceLock<f32>,
}

impl Iql {
    /// The algorithm for tasks with these spaces.
    pub fn new(config: IqlConfig, observations: &ObservationSpace, actions: &ActionSpace) -> Self {
        let (observations, actions) = (observations.clone(), actions.clone());
        Self { config, observations, actions, reward_factor: OnceLock::new() }
    }

    /// All three losses of the current networks.
    pub fn losses(&self, state: &IqlState, steps: &Steps) -> IqlLosses {
        let Critics { critics, value } = &state.critics.network;
        let (observations, actions) = (steps.observations.clone(), steps.actions.clone());
        let inputs = concat(observations.clone(), actions.clone());

        let target = state.target.smaller(inputs.clone());
        let values = value.forward(observations.clone());
        let mean_value = values.clone().detach().mean();
        let target = constant_like(target, &values);
        let advantages = target - values;
        let below = advantages.clone().detach().lower_elem(0.0).float().cast(advantages.dtype());
        let slopes = (below.neg() + self.config.expectile).abs();
        let value_loss = (slopes * advantages.clone().square()).mean();

        let next_values = value.valid().forward(steps.next_observations.clone());
        let returns = steps.returns(next_values, self.config.gamma);
        let critic = squared_errors(&critics.values(inputs), returns) / 2.0;

        let weights = (advantages.detach() * self.config.beta).exp().clamp_max(LARGEST_WEIGHT);
        let likelihoods = state.actor.network.log_likelihood(observations, actions);
        let actor = (weights * likelihoods).mean().neg();
        IqlLosses { value: value_loss, critic, actor, mean_value }
    }

    /// One training step with these learning rates of the critics and of the actor.
    pub fn learn(
        &self,
        state: &mut IqlState,
        steps: &Steps,
        [learning_rate, actor_rate]: [f64; 2],
    ) -> StepFigures {
        let IqlLosses { value, critic, actor, mean_value } = self.losses(state, steps);
        let total = value.clone() + critic.clone();
        let grad_norm = state.critics.step(total.backward(), learning_rate);
        let critics = &state.critics.network.critics;
        state.target = follow(state.target.clone(), critics, self.config.target_rate);
        let actor_norm = state.actor.step(actor.backward(), actor_rate);
        let [critic, actor, mean_value] = [critic, actor, mean_value].map(Tensor::inner);
        StepFigures {
            loss: total.inner(),
            grad_norm: where_finite(grad_norm, [actor.clone(), actor_norm]),
            others: vec![critic, actor, mean_value],
        }
    }

    fn steps(&self, batch: &Batch, data: &TrainingData, device: &Device) -> Option<Steps> {
        let rescaling = Rescaling::new(data.dataset().normalization(), self.config.normalize);
        let steps = Steps::of(batch, &rescaling, device)?;
        if !self.config.scale_rewards {
            return Some(steps);
        }
        let rewards = steps.rewards * *self.reward_factor.get_or_init(|| reward_factor(data));
        Some(Steps { rewards, ..steps })
    }
}

impl Algorithm for Iql {
    type State = IqlState;

    /// The critics' own loss, the actor's loss, and the mean value of the observations, in scaled
    /// rewards. The loss of critics and value is the main loss.
    fn figures(&self) -> &'static [&'static str] {
        &["critic_loss", "actor_loss", "value"]
    }

    fn reads_transitions(&self) -> bool {
        true
    }

    fn init(
        &self,
        config: &TrainConfig,
        device: &Device,
        generator: &mut Generator,
    ) -> Result<IqlState, TrainError> {
        self.config.validate(&self.observations, &self.actions)?;
        let widths = network::widths(NAME, &self.observations, &self.actions)?;
        let (hidden, form) = (self.config.layers(), config.precision.form());
        let mut init = Init::drawn(device, generator);
        let mean = Mlp { form, ..Mlp::init(widths, hidden, &mut init) };
        let actor = GaussianActor { mean, log_std: init.constant([widths[1]], 0.0) };
        let critics = Twin::init(widths, hidden, &mut init).with_form(form);
        let value = Mlp { form, ..Mlp::init([widths[0], 1], hidden, &mut init) };
        Ok(IqlState {
            actor: Learner::new(actor, config),
            target: critics.valid(),
            critics: Learner::without_averages(Critics { critics, value }, config.optimizer),
        })
    }

    fn step(
        &self,
        state: &mut IqlState,
        batch: &mut Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
    ) -> StepFigures {
        let device = at.device.clone().inner();
        let Some(steps) = self.steps(batch, data, &device) else {
            return nothing_learned(&device, self.figures().len());
        };
        let falling = actor_rate_factor(at.schedule, at.step, at.n_steps);
        self.learn(state, &steps, [at.learning_rate, at.learning_rate * falling])
    }

    /// The loss of critics and value.
    fn held_out_loss(
        &self,
        state: &IqlState,
        batch: &mut Batch,
        data: &TrainingData,
        device: &Device,
    ) -> Option<Tensor<1>> {
        let steps = self.steps(batch, data, device)?;
        let IqlLosses { value, critic, .. } = self.losses(state, &steps);
        Some((value + critic).inner())
    }
}

/// Factor of the rewards that gives the data's returns a spread of 1000, for rewards that are already
/// divided by the return scale; 1 if all episodes have nearly the same return.
fn reward_factor(data: &TrainingData) -> f32 {
    let spread = data.episode_returns().ends().and_then(spread);
    spread.map_or(1.0, |spread| SPREAD / spread * data.return_scale())
}

/// The difference between the largest and the smallest return, if it is large enough for scaling.
fn spread([smallest, largest]: [f32; 2]) -> Option<f32> {
    let spread = largest - smallest;
    (spread > LEAST_SPREAD * smallest.abs().max(largest.abs())).then_some(spread)
}

/// The actor's learning rate as a fraction of the run's: the paper's cosine, if the run's schedule
/// is constant.
fn actor_rate_factor(schedule: ScheduleKind, step: u64, n_steps: u64) -> f64 {
    match schedule {
        ScheduleKind::Constant => 0.5 * (1.0 + (PI * step as f64 / n_steps.max(1) as f64).cos()),
        ScheduleKind::Cosine => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cosines_do_not_multiply() {
        let constant = [0, 8, 16].map(|step| actor_rate_factor(ScheduleKind::Constant, step, 16));
        for (factor, expected) in constant.into_iter().zip([1.0, 0.5, 0.0]) {
            assert!((factor - expected).abs() < 1e-12, "{constant:?}");
        }
        assert_eq!(actor_rate_factor(ScheduleKind::Cosine, 8, 16), 1.0);
    }

    #[test]
    fn nearly_equal_returns_are_not_scaled() {
        assert_eq!(spread([-20.0, 180.0]), Some(200.0));
        assert_eq!(spread([98.0, 100.0]), Some(2.0));
        for ends in [[7.0, 7.0], [0.0, 0.0], [99.99999, 100.0], [-100.0, -99.5], [499.0, 500.0]] {
            assert_eq!(spread(ends), None, "{ends:?}");
        }
    }
}
