//! TD3+BC (Fujimoto & Gu 2021): TD3's critics, and an actor that is held near the recorded
//! actions.
//!
//! With two critics `Q`, an actor `π`, and `Q'`, `π'` that follow them, a step on a batch is
//!
//! ```text
//! ã   = clip(π'(s') + clip(ε, ±c), ±1),  ε ~ N(0, σ²)
//! y   = r + γ (1 − done) min_i Q'_i(s', ã)
//! L_Q = Σ_i mean (Q_i(s, a) − y)²
//! ```
//!
//! and at every second step, with the critics after it,
//!
//! ```text
//! λ   = α / mean |Q_1(s, π(s))|
//! L_π = −λ mean Q_1(s, π(s)) + mean (π(s) − a)²
//! ```
//!
//! after which the targets move by `τ` of the way. `λ` is a constant. With `α = 0` the actor
//! clones behaviour.
//!
//! Differs from the published implementation: the last step of an episode that a limit cut is
//! left out (there it is learned from with whatever row comes next, or left out by the reader).

use burn::tensor::{Device, Tensor};
use overtone_core::{
    ActionSpace, Normalization, ObservationSpace, Play, Policy, Task, seed::Generator,
};
use overtone_data::Batch;
use overtone_model::{ModelError, error::config_error, init::Init, weights::NamedTensors};
use overtone_train::{
    Algorithm, Checkpoint, Job, StepAt, StepFigures, TrainConfig, TrainError, Trainer, Training,
    TrainingData,
};
use serde::{Deserialize, Serialize};

use crate::{
    algorithm::AlgorithmOptions,
    value::{
        ActorCritic, ActorPolicy, Rescaling, Steps,
        actor_critic::{noise, nothing_learned},
        network::{self, Hidden, constant},
        policy::ActorOf,
        twin::{beside, squared_errors},
    },
};

/// The name after `algorithm=`.
const NAME: &str = "td3_bc";

/// Options of the algorithm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Td3BcConfig {
    /// α: how much values count against the recorded actions; 0 clones them.
    pub alpha: f64,
    /// Discount.
    pub gamma: f64,
    /// τ: the part of the way that targets go when they move.
    pub target_rate: f64,
    /// σ: standard deviation of the noise on the target actor's actions.
    pub target_noise: f64,
    /// c: the largest noise.
    pub noise_clip: f64,
    /// Steps of the critics for one of the actor and the targets.
    pub actor_every: u64,
    /// Hidden layers of every network.
    pub n_layers: usize,
    /// Their width.
    pub hidden: usize,
    /// Whether observations are normalized.
    pub normalize: bool,
}

impl Default for Td3BcConfig {
    fn default() -> Self {
        Self {
            alpha: 2.5,
            gamma: 0.99,
            target_rate: 0.005,
            target_noise: 0.2,
            noise_clip: 0.5,
            actor_every: 2,
            n_layers: 2,
            hidden: 256,
            normalize: true,
        }
    }
}

impl Td3BcConfig {
    /// # Errors
    /// Names the first key whose value describes no algorithm for such a task.
    pub fn check(
        &self,
        observations: &ObservationSpace,
        actions: &ActionSpace,
    ) -> Result<(), ModelError> {
        network::widths(NAME, observations, actions)?;
        self.layers().check()?;
        for (key, value) in [
            ("alpha", self.alpha),
            ("target_noise", self.target_noise),
            ("noise_clip", self.noise_clip),
        ] {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(config_error(key, value, "must be 0 or positive"));
            }
        }
        for (key, value) in [("gamma", self.gamma), ("target_rate", self.target_rate)] {
            if !(0.0..=1.0).contains(&value) {
                return Err(config_error(key, value, "must lie in [0, 1]"));
            }
        }
        if self.actor_every == 0 {
            return Err(config_error("actor_every", 0, "must be at least 1"));
        }
        Ok(())
    }

    fn layers(&self) -> Hidden {
        Hidden { n_layers: self.n_layers, width: self.hidden, has_norms: false }
    }
}

impl AlgorithmOptions for Td3BcConfig {
    fn validate(&self, task: &Task) -> Result<(), ModelError> {
        self.check(&task.observations, &task.actions)
    }

    fn describe(&self) -> String {
        format!("TD3+BC, alpha {}, {} layers of {}", self.alpha, self.n_layers, self.hidden)
    }

    fn short_name(&self) -> String {
        "td3-bc".into()
    }

    fn trainer(
        &self,
        task: &Task,
        job: Job,
        resume: Option<&Checkpoint>,
    ) -> Result<Box<dyn Training>, TrainError> {
        let (observations, actions) = (task.observations.clone(), task.actions.clone());
        let algorithm = Td3Bc { config: self.clone(), observations, actions };
        Ok(Box::new(Trainer::new(algorithm, job, resume)?))
    }

    fn policy(
        &self,
        task: &Task,
        weights: &NamedTensors,
        normalization: Option<&Normalization>,
        _play: &Play,
        device: &Device,
    ) -> Result<Box<dyn Policy>, ModelError> {
        self.validate(task)?;
        let actor = ActorOf {
            algorithm: NAME,
            hidden: self.layers(),
            observations: &task.observations,
            actions: &task.actions,
            normalization,
            is_normalized: self.normalize,
        };
        Ok(Box::new(ActorPolicy::of_weights(actor, weights, device)?))
    }
}

/// Learns an actor by the values of what was recorded.
#[derive(Clone, Debug)]
pub struct Td3Bc {
    /// Its options.
    pub config: Td3BcConfig,
    /// What it sees.
    pub observations: ObservationSpace,
    /// What it does.
    pub actions: ActionSpace,
}

impl Td3Bc {
    /// `L_Q`, given [noise](ActorCritic::next_actions) for every next action, and the mean of
    /// `Q_1(s, a)`; each `[1]`.
    pub fn critic_loss(
        &self,
        state: &ActorCritic,
        steps: &Steps,
        noise: Tensor<2>,
    ) -> [Tensor<1>; 2] {
        let Td3BcConfig { gamma, noise_clip, .. } = self.config;
        let next = steps.next_observations.clone();
        let next_actions = state.next_actions(next.clone(), noise, noise_clip);
        let next_values = state.target_critics.smaller(beside(next, next_actions));
        let returns = steps.returns(next_values, gamma);
        let seen = beside(steps.observations.clone(), steps.actions.clone());
        let values = state.critics.values(seen);
        let loss = squared_errors(&values, returns);
        let [first, _] = values;
        [loss, first.mean()]
    }

    /// `L_π`, `[1]`; the critics are constants.
    pub fn actor_loss(&self, state: &ActorCritic, steps: &Steps) -> Tensor<1> {
        let actions = state.actor.act(steps.observations.clone());
        let cloning = (actions.clone() - constant(steps.actions.clone())).square().mean();
        let critic = burn::module::Module::valid(&state.critics.first);
        let values = critic.forward(beside(steps.observations.clone(), actions));
        let size = values.clone().detach().abs().mean();
        cloning - values.mean() / size * self.config.alpha
    }

    /// One step of learning, the `step`-th from 0.
    pub fn learn(
        &self,
        state: &mut ActorCritic,
        steps: &Steps,
        noise: Tensor<2>,
        (step, learning_rate): (u64, f64),
    ) -> StepFigures {
        let [critic_loss, value] = self.critic_loss(state, steps, noise);
        let grad_norm = state.step_critics(critic_loss.backward(), learning_rate);
        let mut actor_loss = critic_loss.clone().inner().zeros_like();
        let every = self.config.actor_every;
        if (step + 1).is_multiple_of(every) {
            let loss = self.actor_loss(state, steps);
            state.step_actor(loss.backward(), learning_rate, self.config.target_rate);
            // Reports average over all steps, of which the others have no such loss.
            actor_loss = loss.inner() * every as f64;
        }
        StepFigures {
            loss: critic_loss.inner(),
            grad_norm,
            others: vec![actor_loss, value.inner()],
        }
    }
}

impl Algorithm for Td3Bc {
    type State = ActorCritic;

    /// Beside the critics' loss the actor's, and the mean value of the recorded actions.
    fn figures(&self) -> &'static [&'static str] {
        &["actor_loss", "value"]
    }

    fn context_length(&self) -> usize {
        1
    }

    fn reads_transitions(&self) -> bool {
        true
    }

    fn init(
        &self,
        config: &TrainConfig,
        device: &Device,
        generator: &mut Generator,
    ) -> Result<ActorCritic, TrainError> {
        self.config.check(&self.observations, &self.actions)?;
        let widths = network::widths(NAME, &self.observations, &self.actions)?;
        let (hidden, form) = ([self.config.layers(); 2], config.precision.form());
        let mut init = Init::drawn(device, generator);
        Ok(ActorCritic::init(widths, hidden, config.optimizer, form, &mut init))
    }

    fn step(
        &self,
        state: &mut ActorCritic,
        batch: &mut Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
    ) -> StepFigures {
        let device = at.device.clone().inner();
        let rescaling = Rescaling::new(data.dataset().normalization(), self.config.normalize);
        let Some(steps) = Steps::of(batch, &rescaling, &device) else {
            return nothing_learned(&device, self.figures().len());
        };
        let noise = noise(&steps.actions, self.config.target_noise, at.seed);
        self.learn(state, &steps, noise, (at.step, at.learning_rate))
    }

    /// The critics' loss, without noise.
    fn held_out_loss(
        &self,
        state: &ActorCritic,
        batch: &mut Batch,
        data: &TrainingData,
        device: &Device,
    ) -> Tensor<1> {
        let rescaling = Rescaling::new(data.dataset().normalization(), self.config.normalize);
        match Steps::of(batch, &rescaling, device) {
            Some(steps) => {
                let noise = steps.actions.zeros_like();
                let [loss, _] = self.critic_loss(state, &steps, noise);
                if loss.is_autodiff() { loss.inner() } else { loss }
            }
            None => Tensor::zeros([1], device),
        }
    }
}
