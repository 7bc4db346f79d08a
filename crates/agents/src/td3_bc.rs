//! TD3+BC (Fujimoto & Gu 2021): TD3's critics, and an actor with a penalty on distance from the
//! recorded actions.
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
//! after which the targets move by the fraction `τ`. `λ` is a constant. With `α = 0` the actor
//! clones behaviour.
//!
//! With `n_steps` above 1, `r` is `Σ_{i<m} γ^i r_i`, `γ` is `γ^m`, and `s'` is seen `m` steps later
//! ([`Lookahead`](overtone_data::Lookahead)).
//!
//! Differs from the published implementation: the last step of a truncated episode is left out.
//! (There its next observation is the first of the next episode, or the reader leaves it out.)

use burn::{module::Module, tensor::Tensor};
use documented::DocumentedFields;
use overtone_core::{ActionSpace, ObservationSpace, Task};
use overtone_model::ModelError;
use overtone_train::{Job, TrainError, Training};
use serde::{Deserialize, Serialize};

use crate::{
    acting::ActingNetwork,
    options::{AlgorithmOptions, Docs, fields},
    value::{
        ActorCritic, Steps, Td3,
        keys::check_positive,
        network::{self, Hidden, constant},
        td3::{Td3Keys, Td3Options},
        twin::{concat, per_size},
    },
};

/// Learning of an actor by the values of recorded actions.
pub type Td3Bc = Td3<Td3BcConfig>;

/// Options of the algorithm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct Td3BcConfig {
    /// α: weight of the value term relative to the cloning term, 2.5 as in the paper; 0: only
    /// cloning.
    pub alpha: f64,
    /// Discount of later rewards.
    pub gamma: f64,
    /// The most steps whose rewards a target has before the value that continues it. More let values
    /// arrive sooner, and belong less to the learned actions.
    pub n_steps: usize,
    /// τ: rate of the target networks' running average.
    pub target_rate: f64,
    /// σ: standard deviation of the noise on the target actor's actions.
    pub target_noise: f64,
    /// c: the largest noise.
    pub noise_clip: f64,
    /// Steps of the critics per step of the actor and the targets, at most a tenth of the run.
    pub actor_every: u64,
    /// Hidden layers of the actor and of each critic.
    pub n_layers: usize,
    /// Width of the hidden layers.
    pub hidden: usize,
    /// Whether observations are normalized.
    pub normalize: bool,
}

impl Default for Td3BcConfig {
    fn default() -> Self {
        Self {
            alpha: 2.5,
            gamma: 0.99,
            n_steps: 1,
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

impl AlgorithmOptions for Td3BcConfig {
    fn validate(
        &self,
        observations: &ObservationSpace,
        actions: &ActionSpace,
    ) -> Result<(), ModelError> {
        network::widths(Self::NAME, observations, actions)?;
        self.keys().check(Self::NAME)?;
        check_positive(Self::NAME, &[("alpha", self.alpha)])
    }

    fn describe(&self) -> String {
        format!("TD3+BC, alpha {}, {} layers of {}", self.alpha, self.n_layers, self.hidden)
    }

    fn short_name(&self) -> String {
        "td3-bc".into()
    }

    fn docs(&self) -> Docs {
        fields::<Td3BcConfig>()
    }

    fn keys_of_weights(&self) -> &'static [&'static str] {
        &["n_layers", "hidden", "normalize"]
    }

    fn network(&self) -> ActingNetwork<'_> {
        self.keys().network()
    }

    fn trainer(&self, task: &Task, job: Job) -> Result<Box<dyn Training>, TrainError> {
        Td3::trainer(self, task, job)
    }
}

impl Td3Options for Td3BcConfig {
    const NAME: &'static str = "td3_bc";

    fn keys(&self) -> Td3Keys {
        let layers = Hidden { n_layers: self.n_layers, width: self.hidden, has_norms: false };
        Td3Keys {
            gamma: self.gamma,
            n_steps: self.n_steps,
            target_rate: self.target_rate,
            target_noise: self.target_noise,
            noise_clip: self.noise_clip,
            actor_every: self.actor_every,
            actor: layers,
            critic: layers,
            is_normalized: self.normalize,
        }
    }

    /// `L_π`
    fn actor_loss(&self, state: &ActorCritic, steps: &Steps) -> Tensor<1> {
        let actions = state.actor.network.act(steps.observations.clone());
        let cloning = steps.mean((actions.clone() - constant(steps.actions.clone())).square());
        let critic = state.critics.network.first.valid();
        let values = critic.forward(concat(steps.observations.clone(), actions));
        cloning - per_size(values, steps) * self.alpha
    }
}
