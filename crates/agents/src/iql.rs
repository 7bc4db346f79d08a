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
//! chooses at once and plays one after the other (Li, Zhou & Levine 2025). `r` is then
//! `Σ_{i<h} γ^i r_i`, and `s'` the observation `h` steps later, with `γ^h` ([`Lookahead`]). Unlike
//! targets of several steps for a single action, the target belongs to the chunk's own actions.
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

use std::{f64::consts::PI, fmt::Debug, sync::OnceLock};

use burn::{
    module::{Module, ModuleDisplay},
    tensor::{Device, Tensor},
};
use documented::DocumentedFields;
use overtone_core::{ActionSpace, ObservationSpace, Task, seed::Generator};
use overtone_data::{Batch, Lookahead};
use overtone_kernels::Form;
use overtone_model::{
    Inputs, ModelError, Sections, error::config_error, head::HeadConfig, init::Init,
    weights::NamedTensors,
};
use overtone_train::{
    Algorithm, Export, Exported, Job, Learner, LearningRate, Recorded, ScheduleKind, StepAt,
    StepFigures, Stored, Target, TrainConfig, TrainError, Trainer, Training, TrainingData,
};
use serde::{Deserialize, Serialize};

pub use self::{
    continuous::{Continuous, GaussianActor},
    discrete::{CategoricalActor, Discrete, QTwin},
};
use crate::{
    acting::ActingNetwork,
    options::{AlgorithmOptions, Docs, fields},
    value::{
        keys::{check_fractions, check_positive, count_rewards, steps_for},
        network::{Hidden, constant_like},
        parts::{self, Parts},
        steps::{Rescaling, nothing_learned, where_finite},
    },
};

/// The name after `algorithm=`, and the name of the options' section.
const NAME: &str = "iql";
/// The largest weight of an action.
const LARGEST_WEIGHT: f64 = 100.0;
/// The most actions of a chunk.
const LARGEST_CHUNK: usize = 100;
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
    /// Discount of later rewards. 0: 0.995 with chunks of actions, else 0.99. On `pointmaze-medium`, whose
    /// goal is 200 to 300 steps away, 0.99 solves all or none of the episodes, by seed, and 0.995 all.
    pub gamma: f64,
    /// Actions that the agent chooses at once, and plays one after the other (continuous actions
    /// only). Values arrive sooner with more. 0: 5 if the rewards of the data have at most two values
    /// (such as -1 until the task is solved), else 1. On two public tasks with such rewards, 5 solved
    /// 71 and 100 % of the episodes of four seeds, and 1 none (docs/results/public.md).
    pub chunk_size: usize,
    /// Rate of the target networks' running average. 0: 0.02 with chunks of actions, else 0.005. On
    /// `pointmaze-medium`, chunks solved 20 of 20 episodes with 0.02 after 16,000 updates, and 27 of 50
    /// with 0.005 after 21,700.
    pub target_rate: f64,
    /// Hidden layers of the actor, of each critic and of the value (vectors only; frames have one
    /// after the convolutions).
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
            gamma: 0.0,
            chunk_size: 0,
            target_rate: 0.0,
            n_layers: 2,
            hidden: 256,
            normalize: true,
            scale_rewards: true,
        }
    }
}

impl IqlConfig {
    /// The rate of the target networks.
    fn rate_of_target(&self) -> f64 {
        match self.target_rate {
            0.0 if self.chunk_size > 1 => 0.02,
            0.0 => 0.005,
            rate => rate,
        }
    }

    /// The discount of a step.
    fn discount(&self) -> f64 {
        match self.gamma {
            0.0 if self.chunk_size > 1 => 0.995,
            0.0 => 0.99,
            gamma => gamma,
        }
    }

    fn rescaling(&self, data: &TrainingData) -> Rescaling {
        Rescaling::new(data.dataset().normalization(), self.normalize)
    }

    fn layers(&self) -> Hidden {
        Hidden { n_layers: self.n_layers, width: self.hidden, has_norms: false }
    }
}

/// Options of the algorithm for one kind of actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IqlOptions {
    /// Its own keys.
    pub config: IqlConfig,
    /// The actor's head on discrete actions; `None` for continuous actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<HeadConfig>,
}

impl IqlOptions {
    /// The same options for data whose rewards have `n_rewards` values: `chunk_size` is not 0.
    #[must_use]
    pub fn for_rewards(&self, n_rewards: usize) -> Self {
        let chunk_size = match self.head {
            None => steps_for(self.config.chunk_size, n_rewards),
            Some(_) => self.config.chunk_size.max(1),
        };
        Self { config: IqlConfig { chunk_size, ..self.config.clone() }, head: self.head.clone() }
    }
}

impl AlgorithmOptions for IqlOptions {
    fn validate(
        &self,
        observations: &ObservationSpace,
        actions: &ActionSpace,
    ) -> Result<(), ModelError> {
        let Self { config, head } = self;
        check_positive(NAME, &[("beta", config.beta)])?;
        config.layers().check(NAME)?;
        let keys = [
            ("expectile", config.expectile),
            ("gamma", config.gamma),
            ("target_rate", config.target_rate),
        ];
        check_fractions(NAME, &keys)?;
        if config.chunk_size > LARGEST_CHUNK {
            let expected = format!("must lie in 0 to {LARGEST_CHUNK}");
            return Err(config_error("iql.chunk_size", config.chunk_size, expected));
        }
        match (head, actions) {
            (Some(_), ActionSpace::Discrete { .. }) if config.chunk_size > 1 => {
                let expected = "must be 0 or 1, because the task's actions are discrete";
                Err(config_error("iql.chunk_size", config.chunk_size, expected))
            }
            (Some(head), ActionSpace::Discrete { .. }) => head.validate(actions),
            (None, ActionSpace::Continuous { .. }) => {
                continuous::widths(observations, actions).map(drop)
            }
            (Some(head), ActionSpace::Continuous { .. }) => {
                let expected = "must not be set, because the task's actions are continuous";
                Err(config_error("head", head.name(), expected))
            }
            (None, ActionSpace::Discrete { .. }) => {
                let expected = "must be set, because the task's actions are discrete";
                Err(config_error("head", "none", expected))
            }
        }
    }

    fn describe(&self) -> String {
        let IqlConfig { expectile, beta, hidden, chunk_size, .. } = self.config;
        let head = self.head.as_ref().map(|head| format!("{}, ", head.describe()));
        let head = head.unwrap_or_default();
        let chunks = match chunk_size {
            ..=1 => String::new(),
            n => format!("chunks of {n} actions, "),
        };
        format!(
            "implicit Q-learning, {head}{chunks}expectile {expectile}, beta {beta}, layers of {hidden}"
        )
    }

    fn short_name(&self) -> String {
        let head = self.head.as_ref().map(|head| format!("-{}", head.name()));
        format!("iql{}", head.unwrap_or_default())
    }

    fn scales_rewards(&self) -> bool {
        true
    }

    fn docs(&self) -> Docs {
        fields::<IqlConfig>()
    }

    fn keys_of_weights(&self) -> &'static [&'static str] {
        &["chunk_size", "n_layers", "hidden", "normalize"]
    }

    /// A continuous action is the mean, without the deviation.
    fn network(&self) -> ActingNetwork<'_> {
        let (hidden, is_normalized) = (self.config.layers(), self.config.normalize);
        match &self.head {
            None => {
                let chunk_size = self.config.chunk_size.max(1);
                ActingNetwork::Tanh { prefix: "mean.", hidden, is_normalized, chunk_size }
            }
            Some(head) => ActingNetwork::Categorical { hidden, head, is_normalized },
        }
    }

    fn trainer(&self, task: &Task, job: Job) -> Result<Box<dyn Training>, TrainError> {
        let Task { observations, actions, .. } = task;
        let n_rewards = count_rewards(job.data.dataset().rewards());
        let Self { config, head } = self.for_rewards(n_rewards);
        Ok(match head {
            None => {
                let chunks = actions.in_chunks(config.chunk_size);
                let networks = Continuous::new(observations, &chunks);
                Box::new(Trainer::new(Iql::new(config, networks), job)?)
            }
            Some(head) => {
                let networks = Discrete::new(observations, actions, head);
                Box::new(Trainer::new(Iql::new(config, networks), job)?)
            }
        })
    }
}

/// A network that can be trained.
pub trait Network: Module + ModuleDisplay {}

impl<M: Module + ModuleDisplay> Network for M {}

/// The networks for one kind of actions.
pub trait Networks: Clone + Debug {
    /// `π`
    type Actor: Network;
    /// Two critics `Q`.
    type Twin: Network;
    /// `V`
    type Value: Network;
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
    ) -> Result<(Self::Actor, CriticsOf<Self>), ModelError>;

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
    /// `min_i Q'_i(s, a)`, without gradient.
    pub target: Tensor<2>,
    /// `V(s)`
    pub value: Tensor<2>,
    /// `Q_i(s, a)`
    pub critics: [Tensor<2>; 2],
    /// `r + γ (1 − done) V(s')`, without gradient.
    pub returns: Tensor<2>,
    /// `ln π(a|s)`
    pub log_probs: Tensor<2>,
    /// Regularisation of the actor's head, `[n]`, to be averaged.
    pub regularization: Option<Tensor<1>>,
    /// The weight of each step in the losses; `None` if they are equal.
    pub weights: Option<Tensor<2>>,
}

/// The networks that learn values, with one optimizer.
#[derive(Module, Debug)]
pub struct Critics<T: Network, V: Network> {
    /// Critics of observations and actions.
    pub critics: T,
    /// `V`, the value of observations.
    pub value: V,
}

/// Everything that a step changes.
#[derive(Clone, Debug)]
pub struct IqlState<A: Network, T: Network, V: Network> {
    /// The acting network.
    pub actor: Learner<A>,
    /// Values of recorded actions.
    pub critics: Learner<Critics<T, V>>,
    /// The target of the critics.
    pub target: Target<T>,
}

/// The critics of these networks.
pub type CriticsOf<N> = Critics<<N as Networks>::Twin, <N as Networks>::Value>;

/// The state of these networks.
pub type StateOf<N> =
    IqlState<<N as Networks>::Actor, <N as Networks>::Twin, <N as Networks>::Value>;

const TARGET_CRITICS: &str = "target_critics";
const CRITIC_OPTIMIZER: &str = "critic_optimizer";
const ACTOR_OPTIMIZER: &str = "actor_optimizer";

impl<A: Network, T: Network, V: Network> Export for IqlState<A, T, V> {
    fn export_model(&self) -> NamedTensors {
        self.actor.export_model()
    }

    fn export_training(&self) -> NamedTensors {
        let mut tensors = Parts::default()
            .with_training(ACTOR_OPTIMIZER, &self.actor)
            .with(TARGET_CRITICS, &self.target.network)
            .with_training(CRITIC_OPTIMIZER, &self.critics)
            .into_tensors();
        tensors.extend(self.critics.export_model());
        tensors
    }
}

impl<A: Network, T: Network, V: Network> Stored for IqlState<A, T, V> {
    fn begin(self, exported: &Exported) -> Result<Self, ModelError> {
        let stored = &exported.training;
        Ok(Self {
            actor: self.actor.begin(exported)?,
            critics: parts::begin(self.critics, stored.clone())?,
            target: parts::target(self.target, TARGET_CRITICS, stored)?,
        })
    }

    fn import(self, exported: &Exported, _n_steps: u64) -> Result<Self, ModelError> {
        let (model, stored) = (exported.model.clone(), &exported.training);
        Ok(Self {
            actor: parts::learner(self.actor, model, ACTOR_OPTIMIZER, stored)?,
            critics: parts::learner(self.critics, stored.clone(), CRITIC_OPTIMIZER, stored)?,
            target: parts::target(self.target, TARGET_CRITICS, stored)?,
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
pub struct Iql<N> {
    config: IqlConfig,
    networks: N,
    /// Computed with the first batch.
    reward_factor: OnceLock<f32>,
}

impl<N: Networks> Iql<N> {
    /// The algorithm with these networks.
    pub fn new(config: IqlConfig, networks: N) -> Self {
        Self { config, networks, reward_factor: OnceLock::new() }
    }

    /// All three losses of the current networks.
    pub fn losses(&self, state: &StateOf<N>, steps: &N::Steps) -> IqlLosses {
        let outputs = self.networks.outputs(state, steps, self.config.discount());
        let Outputs { target, value, critics, returns, log_probs, .. } = outputs;
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
        let [first, second] = critics.map(|values| {
            let returns = constant_like(returns.clone(), &values);
            mean((values - returns).square())
        });

        let weights = (advantages.detach() * self.config.beta).exp().clamp_max(LARGEST_WEIGHT);
        let actor = mean(weights * log_probs).neg();
        let actor = match outputs.regularization {
            None => actor,
            Some(rows) => actor + mean(rows.unsqueeze_dim(1)),
        };
        IqlLosses { value: value_loss, critic: (first + second) / 2.0, actor, mean_value }
    }

    /// One training step with these learning rates of the critics and of the actor.
    pub fn learn(
        &self,
        state: &mut StateOf<N>,
        steps: &N::Steps,
        [learning_rate, actor_rate]: [impl Into<LearningRate>; 2],
    ) -> StepFigures {
        let IqlLosses { value, critic, actor, mean_value } = self.losses(state, steps);
        let total = value.clone() + critic.clone();
        let grad_norm = state.critics.step(total.backward(), learning_rate);
        let IqlState { critics, target, .. } = state;
        critics.lead(target, self.config.rate_of_target(), |network| &network.critics);
        let actor_norm = state.actor.step(actor.backward(), actor_rate);
        let [critic, actor, mean_value] = [critic, actor, mean_value].map(Tensor::inner);
        StepFigures {
            loss: total.inner(),
            grad_norm: where_finite(grad_norm, [actor.clone(), actor_norm]),
            others: vec![critic, actor, mean_value],
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
        &["critic_loss", "actor_loss", "value"]
    }

    fn lookahead(&self) -> Option<Lookahead> {
        let (n_steps, gamma) = (self.config.chunk_size.max(1), self.config.discount());
        Some(Lookahead { n_steps, gamma, in_chunks: true })
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
            target: Target::of(&critics.critics),
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
        let IqlLosses { value, critic, .. } = self.losses(state, &steps);
        Some((value + critic).inner())
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
    fn discount_and_rate_of_zero_follow_from_the_chunks() {
        let of = |chunk_size, gamma| {
            let config = IqlConfig { chunk_size, gamma, ..IqlConfig::default() };
            [config.discount(), config.rate_of_target()]
        };
        assert_eq!(
            [of(1, 0.0), of(5, 0.0), of(5, 0.9)],
            [[0.99, 0.005], [0.995, 0.02], [0.9, 0.02]]
        );
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
