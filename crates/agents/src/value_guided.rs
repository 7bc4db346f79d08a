//! A Decision Transformer that is led to actions of higher value: what is recorded is learned as
//! by [`SequenceModel`](crate::sequence_model), and beside it what actions are worth, by
//! [critics of recorded actions](crate::value::expectile).
//!
//! With `π_t` what the transformer would do at timestep `t` of a context and `Q̄` the smaller of
//! both critics, the transformer descends
//!
//! ```text
//! L = L_DT − η · mean Q̄(o_t, π_t) / mean |Q̄(o_t, π_t)|
//! ```
//!
//! in which `L_DT` is the [Decision Transformer's](overtone_model::decision_transformer) own loss,
//! the means are over all real timesteps of the batch, and critics and denominator are constants:
//! the gradient goes through the actions alone. The value of an action that nobody recorded is a
//! guess, to which `L_DT` gives little room.
//!
//! Critics learn from the same batches before the transformer does, in `critic_updates` steps on
//! equal parts. Contexts end where they are drawn, so the last steps of an episode lie in fewer of
//! them than others do: critics see the end of a task up to `context_length` times too rarely.
//!
//! An episode earns its return by good and bad actions alike. Critics tell which is which, and can
//! join the good parts of several episodes, which returns cannot. Hu et al. (2024, "QT") guide a
//! Decision Transformer with this loss by critics of its own actions; critics of recorded actions
//! need no target policy and no noise.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use overtone_core::{ActionSpace, ObservationSpace, Policy, Task, seed::Generator};
use overtone_data::Batch;
use overtone_model::{
    Conditioning, DecisionTransformer, DecisionTransformerConfig, ModelConfig, ModelError,
    contexts::Observed,
    error::config_error,
    head::{ActedRows, HeadConfig},
    init::Init,
};
use overtone_train::{
    AdamWConfig, Algorithm, Checkpoint, Job, Learner, StepAt, StepFigures, TrainConfig, TrainError,
    Trainer, Training, TrainingData,
};
use serde::{Deserialize, Serialize};

use crate::{
    options::{AlgorithmOptions, Restored},
    sequence_model::policy_of,
    value::{
        ExpectileCritics, Rescaling, Steps, Twin,
        expectile::{BesideCritics, ExpectileKeys, ExpectileLosses, RewardFactor},
        keys::check_positive,
        network::{self, Hidden},
        twin::beside,
    },
};

/// The name after `algorithm=`, and of the options' section.
const NAME: &str = "value_guided";

/// Options of the algorithm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueGuidedOptions {
    /// What is led.
    pub model: DecisionTransformerConfig,
    /// By what.
    pub guide: GuideConfig,
}

/// Options of the critics, and of what they say to the transformer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GuideConfig {
    /// η: how much values count against the recorded actions; 0: not at all.
    pub guidance: f64,
    /// Steps of the critics for one of the transformer.
    pub critic_updates: usize,
    /// Of the critics.
    pub critic_learning_rate: f64,
    /// τ: which expectile of the values of recorded actions is a state's.
    pub expectile: f64,
    /// Discount.
    pub gamma: f64,
    /// The part of the way that targets go at every step of the critics.
    pub target_rate: f64,
    /// Hidden layers of critics and value.
    pub n_layers: usize,
    /// Their width.
    pub hidden: usize,
}

impl Default for GuideConfig {
    fn default() -> Self {
        Self {
            guidance: 1.0,
            critic_updates: 2,
            critic_learning_rate: 3e-4,
            expectile: 0.7,
            gamma: 0.99,
            target_rate: 0.005,
            n_layers: 2,
            hidden: 256,
        }
    }
}

impl GuideConfig {
    fn critics(&self) -> ExpectileKeys {
        let Self { expectile, gamma, target_rate, n_layers, hidden: width, .. } = *self;
        let hidden = Hidden { n_layers, width, has_norms: false };
        ExpectileKeys { expectile, gamma, target_rate, hidden }
    }

    /// # Errors
    /// Names the first key whose value guides nothing.
    pub fn check(&self) -> Result<(), ModelError> {
        self.critics().check(NAME)?;
        let keys =
            [("guidance", self.guidance), ("critic_learning_rate", self.critic_learning_rate)];
        check_positive(NAME, &keys)?;
        match self.critic_updates {
            1..=64 => Ok(()),
            n => Err(config_error("value_guided.critic_updates", n, "must lie in 1 to 64")),
        }
    }
}

impl AlgorithmOptions for ValueGuidedOptions {
    fn validate(
        &self,
        observations: &ObservationSpace,
        actions: &ActionSpace,
    ) -> Result<(), ModelError> {
        let Self { model, guide } = self;
        network::widths(NAME, observations, actions)?;
        guide.check()?;
        if model.conditioning == Conditioning::None {
            let expected = "what is guided is a Decision Transformer, which is told returns";
            return Err(config_error("model.conditioning", "none", expected));
        }
        if !model.best_percents.is_empty() {
            let got = format!("{:?}", model.best_percents);
            let expected = "none: a transformer that values guide is told returns, and no shares";
            return Err(config_error("model.best_percents", got, expected));
        }
        if self.has_distribution() && !matches!(model.head, HeadConfig::Gaussian(_)) {
            let expected = "values lead one action: tanh, pointwise or gaussian, which have one";
            return Err(config_error("head", model.head.name(), expected));
        }
        model.validate(observations, actions)
    }

    fn describe(&self) -> String {
        let Self { model, guide } = self;
        format!(
            "value-guided Decision Transformer, {}, eta {}",
            model.head.describe(),
            guide.guidance
        )
    }

    fn keys_of_weights(&self) -> &'static [&'static str] {
        &["n_layers", "hidden"]
    }

    fn model(&self) -> Option<ModelConfig> {
        Some(ModelConfig::Transformer(self.model.clone()))
    }

    fn reads_returns(&self) -> bool {
        true
    }

    fn has_distribution(&self) -> bool {
        !matches!(self.model.head, HeadConfig::Tanh(_) | HeadConfig::Pointwise(_))
    }

    fn trainer(
        &self,
        task: &Task,
        job: Job,
        resume: Option<&Checkpoint>,
    ) -> Result<Box<dyn Training>, TrainError> {
        let algorithm = ValueGuided::new(self.clone(), &task.observations, &task.actions);
        Ok(Box::new(Trainer::new(algorithm, job, resume)?))
    }

    fn policy(&self, of: &Restored<'_>) -> Result<Box<dyn Policy>, ModelError> {
        policy_of(&ModelConfig::Transformer(self.model.clone()), of)
    }
}

/// Everything that a step changes; the actor is the transformer.
pub type ValueGuidedState = BesideCritics<DecisionTransformer>;

/// Learns recorded actions, and better ones.
#[derive(Clone, Debug)]
pub struct ValueGuided {
    options: ValueGuidedOptions,
    observations: ObservationSpace,
    actions: ActionSpace,
    reward_factor: RewardFactor,
}

impl ValueGuided {
    /// The algorithm for tasks that show and take such.
    pub fn new(
        options: ValueGuidedOptions,
        observations: &ObservationSpace,
        actions: &ActionSpace,
    ) -> Self {
        let (observations, actions) = (observations.clone(), actions.clone());
        Self { options, observations, actions, reward_factor: RewardFactor::default() }
    }

    /// The steps of a batch as critics see them: observations as the transformer does.
    fn steps(&self, batch: &Batch, data: &TrainingData, device: &Device) -> Option<Steps> {
        let steps = Steps::of(batch, &Rescaling::new(None, true), device)?;
        let rewards = steps.rewards * self.reward_factor.of(data);
        Some(Steps { rewards, ..steps })
    }

    /// The critics' steps on a batch; their loss and the mean value, each `[1]`.
    fn learn_values(&self, critics: &mut ExpectileCritics, steps: &Steps) -> [Tensor<1>; 2] {
        let GuideConfig { critic_updates, critic_learning_rate, .. } = self.options.guide;
        let keys = self.options.guide.critics();
        let parts = steps.parts(critic_updates);
        let figures = parts.iter().map(|part| {
            let ExpectileLosses { value, critic, mean_value, .. } = critics.losses(&keys, part);
            let total = value + critic.clone();
            critics.descend(&keys, total, critic_learning_rate);
            [critic.inner(), mean_value.inner()]
        });
        let n = parts.len() as f64;
        let sum = figures.reduce(|[a, b], [c, d]| [a + c, b + d]);
        let zero = || Tensor::zeros([1], &steps.rewards.device());
        sum.unwrap_or_else(|| [zero(), zero()]).map(|sum| sum / n)
    }
}

/// What critics say of actions; each `[1]`.
pub struct Verdict {
    /// `mean Q̄(o, π) / mean |Q̄(o, π)|`, whose gradient goes through the actions alone.
    pub relative: Tensor<1>,
    /// `mean Q̄(o, π) − Q̄(o, a)`, a constant: what they gain over the recorded ones.
    pub gain: Tensor<1>,
}

impl Verdict {
    /// On the actions `π` at these observations.
    ///
    /// # Shapes
    /// - `observations`: `[rows, observation]`
    /// - `actions`, `recorded`: `[rows, action]`; beyond [-1, 1] as the nearer end
    /// - `shares`: `[rows]`: of each row in the means, 0 of padding
    pub fn of(
        critics: &Twin,
        observations: Tensor<2>,
        [actions, recorded]: [Tensor<2>; 2],
        shares: Tensor<1>,
    ) -> Self {
        let critics = critics.valid();
        let mean = |values: Tensor<2>| (values.squeeze_dim::<1>(1) * shares.clone()).sum();
        let values = |actions: Tensor<2>| {
            critics.smaller(beside(observations.clone(), actions.clamp(-1.0, 1.0)))
        };
        let (values, of_recorded) = (values(actions), values(recorded).detach());
        let scale = mean(values.clone().detach().abs()).clamp_min(f64::from(f32::MIN_POSITIVE));
        let gain = mean(values.clone().detach() - of_recorded);
        Self { relative: mean(values) / scale, gain }
    }
}

impl Algorithm for ValueGuided {
    type State = ValueGuidedState;

    /// The loss of recorded actions in the head's own unit; then in scaled rewards what critics
    /// say that the transformer's actions [gain](Verdict::gain), the critics' loss, and the mean
    /// value of the observations.
    fn figures(&self) -> &'static [&'static str] {
        &["action_loss", "gain", "critic_loss", "value"]
    }

    fn context_length(&self) -> usize {
        self.options.model.context_length
    }

    fn labels_per_context(&self) -> usize {
        self.options.model.context_length
    }

    fn reads_transitions(&self) -> bool {
        true
    }

    fn init(
        &self,
        config: &TrainConfig,
        device: &Device,
        generator: &mut Generator,
    ) -> Result<ValueGuidedState, TrainError> {
        let ValueGuidedOptions { model, guide } = &self.options;
        guide.check()?;
        let (observations, actions) = (&self.observations, &self.actions);
        let widths = network::widths(NAME, observations, actions)?;
        let mut init = Init::drawn(device, generator);
        let form = config.precision.form();
        let model = DecisionTransformer::init(model, observations, actions, &mut init)?;
        // As implicit Q-learning's: what is right for a transformer stops them.
        let of_critics = AdamWConfig { clip_norm: 1e9, ..AdamWConfig::default() };
        let hidden = guide.critics().hidden;
        Ok(ValueGuidedState {
            actor: Learner::new(model.with_form(form), config),
            critics: ExpectileCritics::init(widths, hidden, of_critics, form, &mut init),
        })
    }

    fn step(
        &self,
        state: &mut ValueGuidedState,
        batch: &mut Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
    ) -> StepFigures {
        let device = at.device.clone().inner();
        let none = || Tensor::full([1], f32::NAN, &device);
        let [critic_loss, mean_value] = match self.steps(batch, data, &device) {
            Some(steps) => self.learn_values(&mut state.critics, &steps),
            None => [none(), none()],
        };
        let contexts = data.contexts(batch, at.device);
        let (loss, actions) = state.actor.network.loss_and_points(&contexts, Some(at.seed));
        let rows = (actions, &contexts.observations, contexts.actions.rows());
        let (total, gain) = match rows {
            (Some(actions), Observed::Vectors(observations), ActedRows::Continuous(recorded)) => {
                let observations = observations.clone().flatten(0, 1);
                let shares = contexts.shares(&actions.device(), actions.dtype());
                let critics = &state.critics.trained.network.critics;
                let verdict = Verdict::of(critics, observations, [actions, recorded], shares);
                (loss.total - verdict.relative * self.options.guide.guidance, verdict.gain.inner())
            }
            _ => (loss.total, none()),
        };
        let grad_norm = state.actor.step(total.backward(), at.learning_rate);
        StepFigures {
            loss: total.inner(),
            grad_norm,
            others: vec![loss.action.inner(), gain, critic_loss, mean_value],
        }
    }

    /// Guided, it leaves recorded actions for better ones, and this loss grows by that.
    fn held_out_selects(&self) -> bool {
        self.options.guide.guidance == 0.0
    }

    /// The loss of recorded actions.
    fn held_out_loss(
        &self,
        state: &ValueGuidedState,
        batch: &mut Batch,
        data: &TrainingData,
        device: &Device,
    ) -> Option<Tensor<1>> {
        Some(state.actor.acting().loss(&data.contexts(batch, device), None).action)
    }
}
