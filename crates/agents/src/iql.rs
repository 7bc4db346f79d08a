//! Implicit Q-learning (Kostrikov, Nair & Levine 2022): values learned only from recorded actions,
//! continuous or discrete.
//!
//! It learns two critics `Q` with targets `Q'` that follow them, a value `V`, and an actor `π`. A
//! step on a batch is, with all networks taken before it,
//!
//! ```text
//! A   = min_i Q'_i(s, a) − V(s)
//! L_V = mean |τ − 1(A < 0)| A²
//! L_Q = ½ Σ_i mean (Q_i(s, a) − r − γ (1 − done) V(s'))²
//! L_π = −mean min(e^{βA}, 100) ln π(a|s)
//! ```
//!
//! Each loss moves only its own networks: `V(s')` is a constant in `L_Q`, and `A` in `L_π`. Then
//! `Q'` moves by a fraction of the distance. The actor's learning rate falls as a cosine, to 0 at
//! the run's end, if the run's own schedule is constant. Rewards are multiplied by
//! `1000 / (largest − smallest return of an episode)`, unless these are nearly equal.
//!
//! With a `chunk_size` of `h`, an action is a chunk: the next `h` recorded actions, which the agent
//! chooses at once and plays one after the other (Li, Zhou & Levine 2025). With `n_steps` of `n ≥ h`, `r`
//! is `Σ_{i<m} γ^i r_i`, and `s'` the observation `m` steps later, with `γ^m`, for the largest `m ≤ n` that
//! the recording allows ([`Lookahead`]). Of those `m` actions, the last `m − h` are the recorded policy's.
//!
//! A chunk has no critics, and the value that followed it takes their place; `V'` follows `V`:
//!
//! ```text
//! A   = r + γ (1 − done) V'(s') − V(s)
//! ```
//!
//! So only values of observations are learned, as in the value of HIQL without its goals (Park et al.
//! 2023). Critics of observations *and* chunks learn slower, because a recording has few chunks of each kind.
//! Where one chunk can have several outcomes, `A` has the one that was recorded, and with it luck.
//!
//! [Continuous] actions have an actor `N(tanh μ(s), σ²)`, which acts with `tanh μ(s)`. [Discrete]
//! actions have an actor with any head for them, and critics with one output for each action.
//!
//! Follows the paper's code on locomotion and CORL's. Differs from the paper's code: `L_Q` has the
//! factor ½ (Adam is invariant to it), layers are initialised with PyTorch's default (theirs are
//! orthogonal), ln σ has the lower bound −20 instead of −5, and observations are normalized.
//! Recorded actions may be -1 and 1, which the paper's code moves inwards by 1e-5. Critics and
//! actor use the value before its step, as in CORL. The paper has no discrete actions.

mod continuous;
mod discrete;
mod options;

use std::{f64::consts::PI, fmt::Debug, sync::OnceLock};

use burn::{
    module::{Module, ModuleDisplay},
    tensor::{Device, Tensor},
};
use overtone_core::seed::Generator;
use overtone_data::{Batch, Lookahead};
use overtone_kernels::Form;
use overtone_model::{Inputs, ModelError, Sections, init::Init, weights::NamedTensors};
use overtone_train::{
    Algorithm, Export, Exported, Learner, LearningRate, Recorded, ScheduleKind, StepAt,
    StepFigures, Stored, Target, TrainConfig, TrainError, TrainingData,
};

pub use self::{
    continuous::{Continuous, GaussianActor, InChunks, ValueAlone},
    discrete::{CategoricalActor, Discrete, QTwin},
    options::{IqlConfig, IqlOptions},
};
use crate::value::{
    network::constant_like,
    parts::{self, Parts},
    steps::{nothing_learned, where_finite},
};

/// The largest weight of an action.
const LARGEST_WEIGHT: f64 = 100.0;
/// Spread of the data's returns after rewards were scaled.
const SPREAD: f32 = 1000.0;
/// Minimum spread of the returns for scaling, relative to the largest one. For nearly equal
/// returns, the scaled values would be much larger than their differences, and no network could
/// distinguish them. If the spread is rounding error, the differences would be only rounding error.
const LEAST_SPREAD: f32 = 0.01;

/// A network that can be trained.
pub trait Network: Module + ModuleDisplay {}

impl<M: Module + ModuleDisplay> Network for M {}

/// The networks for one kind of actions.
pub trait Networks: Clone + Debug {
    /// `π`
    type Actor: Network;
    /// The networks that learn values.
    type Critics: LearnsValues;
    /// A batch on the device.
    type Steps;

    /// New networks, with their form of computation.
    ///
    /// # Errors
    /// When the options are not valid for the task.
    fn init(
        &self,
        config: &IqlConfig,
        form: Form,
        init: &mut Init<'_>,
    ) -> Result<(Self::Actor, Self::Critics), ModelError>;

    /// The steps of a batch; `None` if no step has a target. The batch's memory may be taken.
    fn steps(
        &self,
        config: &IqlConfig,
        batch: &mut Batch,
        data: &TrainingData,
        device: &Device,
    ) -> Option<Self::Steps>;

    /// Sends the steps of a batch for [`received`](Self::received). Returns `false` if no step has a
    /// target, or the data has no recorded form.
    fn send(
        &self,
        config: &IqlConfig,
        batch: &Batch,
        data: &TrainingData,
        to: &mut Sections,
    ) -> bool;

    /// Steps that were [sent](Self::send).
    fn received(inputs: &Inputs, data: &TrainingData) -> Self::Steps;

    /// The same steps with multiplied rewards.
    fn with_rewards_times(steps: Self::Steps, factor: f32) -> Self::Steps;

    /// The networks' outputs for a batch.
    fn outputs(&self, state: &StateOf<Self>, steps: &Self::Steps, gamma: f64) -> Outputs;
}

/// Outputs of all networks for a batch of `n` steps, each `[n, 1]`.
pub struct Outputs {
    /// The value of the recorded action, without gradient: `min_i Q'_i(s, a)`, or without critics
    /// `r + γ (1 − done) V'(s')`.
    pub target: Tensor<2>,
    /// `V(s)`
    pub value: Tensor<2>,
    /// `Q_i(s, a) − r − γ (1 − done) V(s')`, where `V(s')` is without gradient; `None` without critics.
    pub errors: Option<[Tensor<2>; 2]>,
    /// `ln π(a|s)`
    pub log_probs: Tensor<2>,
    /// Regularisation of the actor's head, `[n]`, to be averaged.
    pub regularization: Option<Tensor<1>>,
    /// The weight of each step in the losses; `None` if they are equal.
    pub weights: Option<Tensor<2>>,
}

/// The networks that learn values, with one optimizer.
pub trait LearnsValues: Network {
    /// The part with a target that follows it.
    type Followed: Network;
    /// Names of the figures after the main loss.
    const FIGURES: &'static [&'static str];
    /// The name of the target in a checkpoint.
    const TARGET: &'static str;

    /// The part with a target.
    fn followed(&self) -> &Self::Followed;
}

/// Critics and a value.
#[derive(Module, Debug)]
pub struct Critics<T: Network, V: Network> {
    /// Critics of observations and actions.
    pub critics: T,
    /// `V`, the value of observations.
    pub value: V,
}

impl<T: Network, V: Network> LearnsValues for Critics<T, V> {
    type Followed = T;
    const FIGURES: &'static [&'static str] = &["critic_loss", "actor_loss", "value"];
    const TARGET: &'static str = "target_critics";

    fn followed(&self) -> &T {
        &self.critics
    }
}

/// Everything that a step changes.
#[derive(Clone, Debug)]
pub struct IqlState<A: Network, C: LearnsValues> {
    /// The acting network.
    pub actor: Learner<A>,
    /// Values of recorded actions.
    pub critics: Learner<C>,
    /// Their target.
    pub target: Target<C::Followed>,
}

/// The state of these networks.
pub type StateOf<N> = IqlState<<N as Networks>::Actor, <N as Networks>::Critics>;

const CRITIC_OPTIMIZER: &str = "critic_optimizer";
const ACTOR_OPTIMIZER: &str = "actor_optimizer";

impl<A: Network, C: LearnsValues> Export for IqlState<A, C> {
    fn export_model(&self) -> NamedTensors {
        self.actor.export_model()
    }

    fn export_training(&self) -> NamedTensors {
        let mut tensors = Parts::default()
            .with_training(ACTOR_OPTIMIZER, &self.actor)
            .with(C::TARGET, &self.target.network)
            .with_training(CRITIC_OPTIMIZER, &self.critics)
            .into_tensors();
        tensors.extend(self.critics.export_model());
        tensors
    }
}

impl<A: Network, C: LearnsValues> Stored for IqlState<A, C> {
    fn begin(self, exported: &Exported) -> Result<Self, ModelError> {
        let stored = &exported.training;
        Ok(Self {
            actor: self.actor.begin(exported)?,
            critics: parts::begin(self.critics, stored.clone())?,
            target: parts::target(self.target, C::TARGET, stored)?,
        })
    }

    fn import(self, exported: &Exported, _n_steps: u64) -> Result<Self, ModelError> {
        let (model, stored) = (exported.model.clone(), &exported.training);
        Ok(Self {
            actor: parts::learner(self.actor, model, ACTOR_OPTIMIZER, stored)?,
            critics: parts::learner(self.critics, stored.clone(), CRITIC_OPTIMIZER, stored)?,
            target: parts::target(self.target, C::TARGET, stored)?,
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
    /// `L_Q`; `None` without critics.
    pub critic: Option<Tensor<1>>,
    /// `L_π`
    pub actor: Tensor<1>,
    /// Mean of `V(s)`, a constant.
    pub mean_value: Tensor<1>,
}

impl IqlLosses {
    /// The loss of the networks that learn values: `L_V + L_Q`.
    fn total(&self) -> Tensor<1> {
        let value = self.value.clone();
        self.critic.iter().cloned().fold(value, |total, critic| total + critic)
    }
}

/// Learning of an actor from the better of the recorded actions.
#[derive(Clone, Debug)]
pub struct Iql<N> {
    config: IqlConfig,
    networks: N,
    /// Computed with the first batch.
    reward_factor: OnceLock<f32>,
}

impl<N: Networks> Iql<N> {
    /// The algorithm with these networks.
    pub fn new(config: IqlConfig, networks: N) -> Self {
        Self { config: config.resolved(), networks, reward_factor: OnceLock::new() }
    }

    /// All losses of the current networks.
    pub fn losses(&self, state: &StateOf<N>, steps: &N::Steps) -> IqlLosses {
        let outputs = self.networks.outputs(state, steps, self.config.gamma);
        let Outputs { target, value, errors, log_probs, .. } = outputs;
        let mean = |rows: Tensor<2>| match &outputs.weights {
            None => rows.mean(),
            Some(weights) => {
                let weights = constant_like(weights.clone(), &rows);
                (rows * weights).sum()
            }
        };
        let mean_value = mean(value.clone().detach());
        let advantages = constant_like(target, &value) - value;
        let below = advantages.clone().detach().lower_elem(0.0).float().cast(advantages.dtype());
        let slopes = (below.neg() + self.config.expectile).abs();
        let value_loss = mean(slopes * advantages.clone().square());
        let critic = errors.map(|[first, second]| mean(first.square() + second.square()) / 2.0);
        let weights = (advantages.detach() * self.config.beta).exp().clamp_max(LARGEST_WEIGHT);
        let actor = mean(weights * log_probs).neg();
        let actor = match outputs.regularization {
            None => actor,
            Some(rows) => actor + mean(rows.unsqueeze_dim(1)),
        };
        IqlLosses { value: value_loss, critic, actor, mean_value }
    }

    /// One training step with these learning rates of the critics and of the actor.
    pub fn learn(
        &self,
        state: &mut StateOf<N>,
        steps: &N::Steps,
        [learning_rate, actor_rate]: [impl Into<LearningRate>; 2],
    ) -> StepFigures {
        let losses = self.losses(state, steps);
        let total = losses.total();
        let IqlLosses { critic, actor, mean_value, .. } = losses;
        let grad_norm = state.critics.step(total.backward(), learning_rate);
        let IqlState { critics, target, .. } = state;
        critics.lead(target, self.config.target_rate, LearnsValues::followed);
        let actor_norm = state.actor.step(actor.backward(), actor_rate);
        let [actor, mean_value] = [actor, mean_value].map(Tensor::inner);
        let critic = critic.map(Tensor::inner);
        StepFigures {
            loss: total.inner(),
            grad_norm: where_finite(grad_norm, [actor.clone(), actor_norm]),
            others: critic.into_iter().chain([actor, mean_value]).collect(),
        }
    }

    fn steps(&self, batch: &mut Batch, data: &TrainingData, device: &Device) -> Option<N::Steps> {
        let steps = self.networks.steps(&self.config, batch, data, device)?;
        Some(N::with_rewards_times(steps, self.reward_factor(data)))
    }

    fn reward_factor(&self, data: &TrainingData) -> f32 {
        if self.config.scale_rewards {
            *self.reward_factor.get_or_init(|| reward_factor(data))
        } else {
            1.0
        }
    }

    /// The actor's learning rate at a step.
    fn actor_rate(at: &StepAt<'_>) -> f64 {
        at.learning_rate * actor_rate_factor(at.schedule, at.step, at.n_steps)
    }
}

impl<N: Networks> Algorithm for Iql<N> {
    type State = StateOf<N>;

    /// The critics' own loss, the actor's loss, and the mean value of the observations, in scaled
    /// rewards. The loss of critics and value is the main loss.
    fn figures(&self) -> &'static [&'static str] {
        N::Critics::FIGURES
    }

    fn lookahead(&self) -> Option<Lookahead> {
        let IqlConfig { n_steps, gamma, chunk_size, .. } = self.config;
        Some(Lookahead { n_steps, gamma, chunk_size })
    }

    fn init(
        &self,
        config: &TrainConfig,
        device: &Device,
        generator: &mut Generator,
    ) -> Result<StateOf<N>, TrainError> {
        let mut init = Init::drawn(device, generator);
        let (actor, critics) =
            self.networks.init(&self.config, config.precision.form(), &mut init)?;
        Ok(IqlState {
            actor: Learner::new(actor, config),
            target: Target::of(critics.followed()),
            critics: Learner::without_averages(critics, config.optimizer),
        })
    }

    fn step(
        &self,
        state: &mut StateOf<N>,
        batch: &mut Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
    ) -> StepFigures {
        let device = at.device.clone().inner();
        let Some(steps) = self.steps(batch, data, &device) else {
            return nothing_learned(&device, self.figures().len());
        };
        self.learn(state, &steps, [at.learning_rate, Self::actor_rate(at)])
    }

    fn recorded(&self) -> Option<&dyn Recorded<StateOf<N>>> {
        Some(self)
    }

    /// The loss of critics and value.
    fn held_out_loss(
        &self,
        state: &StateOf<N>,
        batch: &mut Batch,
        data: &TrainingData,
        device: &Device,
    ) -> Option<Tensor<1>> {
        let steps = self.steps(batch, data, device)?;
        Some(self.losses(state, &steps).total().inner())
    }
}

impl<N: Networks> Recorded<StateOf<N>> for Iql<N> {
    fn send(
        &self,
        state: &StateOf<N>,
        batch: &Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
        to: &mut Sections,
    ) -> bool {
        state.critics.send_rate("critic_rate", at.learning_rate, to);
        state.actor.send_rate("actor_rate", Self::actor_rate(at), to);
        self.networks.send(&self.config, batch, data, to)
    }

    fn compute(&self, state: &mut StateOf<N>, inputs: &Inputs, data: &TrainingData) -> StepFigures {
        let rates = ["critic_rate", "actor_rate"].map(|name| {
            LearningRate::received(inputs, name).unwrap_or_else(|| panic!("{name} was not sent"))
        });
        let steps = N::received(inputs, data);
        self.learn(state, &N::with_rewards_times(steps, self.reward_factor(data)), rates)
    }

    fn counted(&self, state: &mut StateOf<N>, _at: &StepAt<'_>) {
        state.critics.counted();
        state.actor.counted();
    }

    fn memory<'s>(&self, state: &'s mut StateOf<N>) -> Vec<&'s mut Tensor<1>> {
        let IqlState { actor, critics, target } = state;
        let [actor, critics] = [actor.optimizer.memory(), critics.optimizer.memory()];
        actor.into_iter().chain(critics).chain(target.memory()).collect()
    }
}

/// Factor of the rewards that gives the data's returns a spread of 1000, for rewards that are
/// already divided by the return scale; 1 if all episodes have nearly the same return.
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
