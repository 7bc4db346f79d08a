//! Conservative Q-learning for discrete actions (Kumar et al. 2020), on quantile regression (Dabney
//! et al. 2018), with the selection of the next action by double Q-learning (van Hasselt et al.
//! 2016). With `alpha = 0` it is QR-DQN on recorded data.
//!
//! A network computes `n` quantiles `θ_i(s, a)` of the discounted return of each action; their mean
//! is `Q(s, a)`. With `τ_i = (2i + 1)/(2n)`, `a* = argmax_a Q(s', a)` and
//! `u_ij = r + γ(1 − d) θ'_j(s', a*) − θ_i(s, a)`, where `θ'` is a copy of the network that is
//! updated every `target_every` steps:
//!
//! ```text
//! L = mean over the batch of  Σ_i mean_j |τ_i − 1(u_ij < 0)| H(u_ij)
//!                             + α (ln Σ_b e^{Q(s, b)} − Q(s, a))
//! ```
//!
//! With masks of actions, `a*` and `Σ_b` are among the allowed ones.
//!
//! Huber's `H(u)` is `u²/2` up to 1 and `|u| − 1/2` beyond. A step has weight 0 if the data ends
//! after it although the task has not ended: it has no target.
//!
//! Differs from the published implementation: frames are encoded by this project's Nature encoder,
//! which ends in tanh (theirs in ReLU). A hidden layer has width 256 (theirs 512). Gradients are
//! clipped at norm 10 (theirs are not). Vectors are encoded by a perceptron.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use documented::DocumentedFields;
use overtone_core::{ActionSpace, ObservationSpace, Task, seed::Generator};
use overtone_data::{Batch, Lookahead};
use overtone_kernels::quantile_huber;
use overtone_model::{
    Inputs, ModelError, Sections,
    contexts::Observed,
    error::config_error,
    head::{Decisions, LogitsDecisions},
    init::Init,
    weights::NamedTensors,
};
use overtone_train::{
    Algorithm, Export, Exported, Job, Learner, LearningRate, Recorded, Shortened, StepAt,
    StepFigures, Stored, Target, TrainConfig, TrainError, Trainer, Training, TrainingData,
};
use serde::{Deserialize, Serialize};

use crate::{
    acting::ActingNetwork,
    options::{AlgorithmOptions, Docs, fields},
    value::{
        DiscreteSteps, QNetwork,
        keys::{check_fractions, check_positive},
        network::{Hidden, constant_like},
        parts::{self, Parts},
        policy::Actor,
        q_network::{log_sum_exp, of_actions},
        steps::nothing_learned,
    },
};

/// The name after `algorithm=`, and the name of the options' section.
const NAME: &str = "discrete_cql";

/// Options of the algorithm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct DiscreteCqlConfig {
    /// α: weight of the term that lowers values of actions that were not recorded; 0 is QR-DQN. The
    /// paper's 4. d3rlpy's 1 was worse on CartPole (docs/tasks.md). On a corridor with random
    /// actions it was better: with 4, td_loss kept growing (docs/how-to/own-environment.md).
    pub alpha: f64,
    /// Discount of later rewards.
    pub gamma: f64,
    /// Quantiles of each action's return; the paper's 200 on frames, 25 in the quick profile and on
    /// vectors. The losses of the quantiles add up: with 200, the conservative term has little
    /// effect for many thousand updates.
    pub quantiles: usize,
    /// Width of the hidden layers: two for vectors, one after the convolutions for frames.
    pub hidden: usize,
    /// Steps between updates of the target network, at most a tenth of the run. On frames the
    /// paper's 2000, or 130 in the quick profile, which updates it 20 times in 2,600 steps. On
    /// vectors 500.
    pub target_every: u64,
    /// Probability of a random action when the agent acts.
    pub epsilon: f64,
}

impl Default for DiscreteCqlConfig {
    fn default() -> Self {
        Self {
            alpha: 4.0,
            gamma: 0.99,
            quantiles: 25,
            hidden: 256,
            target_every: 500,
            epsilon: 0.001,
        }
    }
}

impl DiscreteCqlConfig {
    fn layers(&self) -> Hidden {
        Hidden { n_layers: 2, width: self.hidden, has_norms: false }
    }
}

impl AlgorithmOptions for DiscreteCqlConfig {
    fn validate(
        &self,
        _observations: &ObservationSpace,
        actions: &ActionSpace,
    ) -> Result<(), ModelError> {
        if let ActionSpace::Continuous { .. } = actions {
            let expected = "the task's actions are continuous; this algorithm needs discrete ones";
            return Err(config_error("algorithm", NAME, expected));
        }
        check_positive(NAME, &[("alpha", self.alpha)])?;
        check_fractions(NAME, &[("gamma", self.gamma), ("epsilon", self.epsilon)])?;
        for (key, value) in [
            ("quantiles", self.quantiles),
            ("hidden", self.hidden),
            ("target_every", self.target_every as usize),
        ] {
            if !(1..=1 << 16).contains(&value) {
                let key = format!("{NAME}.{key}");
                return Err(config_error(key, value, "must lie in 1 to 65536"));
            }
        }
        Ok(())
    }

    fn describe(&self) -> String {
        let Self { alpha, quantiles, .. } = self;
        format!("conservative Q-learning, alpha {alpha}, {quantiles} quantiles")
    }

    fn short_name(&self) -> String {
        format!("cql{}", self.alpha)
    }

    fn docs(&self) -> Docs {
        fields::<DiscreteCqlConfig>()
    }

    fn keys_of_weights(&self) -> &'static [&'static str] {
        &["quantiles", "hidden"]
    }

    fn network(&self) -> ActingNetwork<'_> {
        let (n_quantiles, epsilon) = (self.quantiles, self.epsilon);
        ActingNetwork::Quantiles { hidden: self.layers(), n_quantiles, epsilon }
    }

    fn trainer(&self, task: &Task, job: Job) -> Result<Box<dyn Training>, TrainError> {
        let (observations, actions) = (task.observations.clone(), task.actions.clone());
        let algorithm = DiscreteCql { config: self.clone(), observations, actions };
        Ok(Box::new(Trainer::new(algorithm, job)?))
    }
}

/// Q-learning of a task's discrete actions.
#[derive(Clone, Debug)]
pub struct DiscreteCql {
    /// Its options.
    pub config: DiscreteCqlConfig,
    /// The form of the observations.
    pub observations: ObservationSpace,
    /// The discrete actions.
    pub actions: ActionSpace,
}

/// The trained network and its target.
#[derive(Clone, Debug)]
pub struct DiscreteCqlState {
    /// The network that is trained and acts.
    pub online: Learner<QNetwork>,
    /// The network that computes targets.
    pub target: Target<QNetwork>,
}

impl Export for DiscreteCqlState {
    fn export_model(&self) -> NamedTensors {
        self.online.export_model()
    }

    fn export_training(&self) -> NamedTensors {
        // Its own step count: a batch without targets is a step of the run alone.
        Parts::default()
            .with(TARGET, &self.target.network)
            .with_training(OPTIMIZER, &self.online)
            .into_tensors()
    }
}

impl Stored for DiscreteCqlState {
    fn begin(self, exported: &Exported) -> Result<Self, ModelError> {
        Ok(Self {
            online: self.online.begin(exported)?,
            target: parts::target(self.target, TARGET, &exported.training)?,
        })
    }

    fn import(self, exported: &Exported, _: u64) -> Result<Self, ModelError> {
        let Exported { model, training } = exported;
        Ok(Self {
            online: parts::learner(self.online, model.clone(), OPTIMIZER, training)?,
            target: parts::target(self.target, TARGET, training)?,
        })
    }

    fn n_parameters(&self) -> usize {
        self.online.n_parameters()
    }
}

/// Prefixes of the tensors of the target network and of the optimizer in a checkpoint.
const TARGET: &str = "target";
const OPTIMIZER: &str = "optimizer";

/// Losses of one batch; each `[1]`.
pub struct CqlLoss {
    /// The minimised loss.
    pub total: Tensor<1>,
    /// The quantile loss, a constant.
    pub temporal_difference: Tensor<1>,
    /// The conservative term before its weight, a constant.
    pub conservative: Tensor<1>,
    /// The mean value of the recorded actions, a constant.
    pub value: Tensor<1>,
}

impl Actor for QNetwork {
    fn decide(&self, observed: &Observed) -> Decisions {
        Decisions::Actions(LogitsDecisions::of(self.values(observed)))
    }
}

impl Algorithm for DiscreteCql {
    type State = DiscreteCqlState;

    /// The quantile loss, the conservative term before its weight, and the mean value of the
    /// recorded actions.
    fn figures(&self) -> &'static [&'static str] {
        &["td_loss", "conservative_loss", "value"]
    }

    fn lookahead(&self) -> Option<Lookahead> {
        Some(Lookahead::ONE)
    }

    fn shorten(&mut self, n_updates: u64) -> Vec<Shortened> {
        let key = format!("{NAME}.target_every");
        Shortened::limit(key, &mut self.config.target_every, n_updates).into_iter().collect()
    }

    fn init(
        &self,
        config: &TrainConfig,
        device: &Device,
        generator: &mut Generator,
    ) -> Result<DiscreteCqlState, TrainError> {
        self.config.validate(&self.observations, &self.actions)?;
        let mut init = Init::drawn(device, generator);
        let sizes = [self.actions.size(), self.config.quantiles];
        let online = QNetwork::init(&self.observations, self.config.layers(), sizes, &mut init)?;
        let online = QNetwork { form: config.precision.form(), ..online };
        let target = Target::of(&online);
        Ok(DiscreteCqlState { online: Learner::new(online, config), target })
    }

    fn step(
        &self,
        state: &mut DiscreteCqlState,
        batch: &mut Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
    ) -> StepFigures {
        let figures = match DiscreteSteps::of(batch, data, at.device) {
            Some(steps) => self.learn(state, &steps, at.learning_rate),
            None => nothing_learned(&at.device.clone().inner(), self.figures().len()),
        };
        self.copy_if_due(state, at.step);
        figures
    }

    fn recorded(&self) -> Option<&dyn Recorded<DiscreteCqlState>> {
        Some(self)
    }

    /// The quantile loss.
    fn held_out_loss(
        &self,
        state: &DiscreteCqlState,
        batch: &mut Batch,
        data: &TrainingData,
        device: &Device,
    ) -> Option<Tensor<1>> {
        let steps = DiscreteSteps::of(batch, data, device)?;
        Some(self.loss(state, &state.online.network.valid(), &steps).temporal_difference)
    }
}

impl Recorded<DiscreteCqlState> for DiscreteCql {
    fn send(
        &self,
        state: &DiscreteCqlState,
        batch: &Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
        to: &mut Sections,
    ) -> bool {
        state.online.send_rate("rate", at.learning_rate, to);
        DiscreteSteps::send(batch, data, to)
    }

    fn compute(
        &self,
        state: &mut DiscreteCqlState,
        inputs: &Inputs,
        data: &TrainingData,
    ) -> StepFigures {
        let Some(rate) = LearningRate::received(inputs, "rate") else { panic!("no rate was sent") };
        state.target.keep_memory();
        self.learn(state, &DiscreteSteps::received(inputs, data), rate)
    }

    fn counted(&self, state: &mut DiscreteCqlState, at: &StepAt<'_>) {
        state.online.counted();
        self.copy_if_due(state, at.step);
    }

    fn memory<'s>(&self, state: &'s mut DiscreteCqlState) -> Vec<&'s mut Tensor<1>> {
        state.online.optimizer.memory()
    }
}

impl DiscreteCql {
    /// Learning of the network from one batch.
    pub fn learn(
        &self,
        state: &mut DiscreteCqlState,
        steps: &DiscreteSteps,
        learning_rate: impl Into<LearningRate>,
    ) -> StepFigures {
        let CqlLoss { total, temporal_difference, conservative, value } =
            self.loss(state, &state.online.network, steps);
        let grad_norm = state.online.step(total.backward(), learning_rate);
        StepFigures {
            loss: total.inner(),
            grad_norm,
            others: [temporal_difference, conservative, value].map(Tensor::inner).to_vec(),
        }
    }

    /// Updates the target network after step number `step`, counted from 0, if an update is due.
    pub fn copy_if_due(&self, state: &mut DiscreteCqlState, step: u64) {
        if (step + 1).is_multiple_of(self.config.target_every) {
            state.online.lead(&mut state.target, 1.0, |network| network);
        }
    }

    /// The loss of `online`.
    pub fn loss(
        &self,
        state: &DiscreteCqlState,
        online: &QNetwork,
        steps: &DiscreteSteps,
    ) -> CqlLoss {
        let returns = self.targets(state, steps);

        let quantiles = online.quantiles(&steps.observations);
        let values = quantiles.clone().mean_dim(2).squeeze_dim::<2>(2);
        let chosen = of_actions(quantiles, steps.actions.clone());
        let returns = constant_like(returns, &chosen);
        let weights = constant_like(steps.weights(), &chosen);
        let rows_td = quantile_huber(chosen, returns, online.form);

        let taken = steps.actions.clone().unsqueeze_dim::<2>(1);
        let value = values.clone().gather(1, taken).squeeze_dim::<1>(1);
        let rows_conservative = log_sum_exp(among(values, &steps.penalties)) - value.clone();

        let mean = |rows: Tensor<1>| (rows * weights.clone()).sum();
        let temporal_difference = mean(rows_td);
        let conservative = mean(rows_conservative);
        CqlLoss {
            total: temporal_difference.clone() + conservative.clone() * self.config.alpha,
            temporal_difference: temporal_difference.detach(),
            conservative: conservative.detach(),
            value: mean(value).detach(),
        }
    }

    /// Targets of the quantiles by the target network, `[rows, n]`.
    fn targets(&self, state: &DiscreteCqlState, steps: &DiscreteSteps) -> Tensor<2> {
        let next = &steps.next.next_observations;
        let values = state.online.network.valid().values(next);
        let penalties = steps.next.next_penalties.clone();
        let penalties = penalties.map(|penalties| penalties.flatten(0, 1));
        let best = among(values, &penalties).argmax(1).squeeze_dim::<1>(1);
        steps.returns(of_actions(state.target.network.quantiles(next), best), self.config.gamma)
    }
}

/// Values with the penalties on actions that are not allowed, `[rows, actions]`.
fn among(values: Tensor<2>, penalties: &Option<Tensor<2>>) -> Tensor<2> {
    match penalties {
        None => values,
        Some(penalties) => {
            let penalties = constant_like(penalties.clone(), &values);
            values + penalties
        }
    }
}
