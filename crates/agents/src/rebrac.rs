//! ReBRAC (Tarasov et al. 2023): TD3 with two penalties on distance from the recorded actions, one
//! on the actor and one in the critics' target, and layer norms in the critics.
//!
//! With `Q`, `π`, `Q'`, `π'` and `ã` as in [TD3+BC](crate::td3_bc), and `a'` the action recorded
//! at `s'`, a step on a batch is
//!
//! ```text
//! y   = r + γ (1 − done) (min_i Q'_i(s', ã) − β₂ Σ (ã − a')²)
//! L_Q = Σ_i mean (Q_i(s, a) − y)²
//! ```
//!
//! and at every second step, with the critics after it and `q = min_i Q_i(s, π(s))`,
//!
//! ```text
//! L_π = β₁ mean Σ (π(s) − a)² − mean q / mean |q|
//! ```
//!
//! after which the targets move. `mean |q|` is a constant, `Σ` sums over an action's dimensions.
//!
//! With `n_steps` above 1, `r` is `Σ_{i<m} γ^i r_i`, `γ` is `γ^m`, and `s'` is seen `m` steps later
//! ([`Lookahead`](overtone_data::Lookahead)).
//!
//! Differs from the published implementation:
//!
//! - Layers are initialised with PyTorch's default, theirs with biases of 0.1 and a last layer near
//!   zero.
//! - The layer norm's ε is 1e-5, theirs 1e-6.
//! - One pair of β is the default for all tasks, theirs were tuned for each.
//! - The quick profile is for minutes, theirs for a million steps. It normalizes observations, its
//!   targets follow four times as fast, and its batches have 256 steps (theirs 1,024 on
//!   locomotion). Its β₁ is 0.1, the largest of theirs. (TD3+BC's α is β₁ = 1 / (α · action
//!   dimensions): 0.13 on Hopper.)

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
        keys::{check_positive, has_rare_rewards, steps_for},
        network::{self, Hidden, constant},
        td3::{Td3Keys, Td3Options},
        twin::{concat, per_size},
    },
};

/// Learning of an actor by values, with two penalties on distance from the recorded actions.
pub type Rebrac = Td3<RebracConfig>;

/// Options of the algorithm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct RebracConfig {
    /// β₁: weight of the actor's penalty on distance from the recorded actions. The paper tunes it
    /// for each dataset from 0.001 to 0.1, for a million steps of 1,024. Of 0.03, 0.1, 0.3, 1 and
    /// 3, 0.1 had the highest return after minutes of training, on average over six datasets.
    pub actor_penalty: f64,
    /// β₂: weight of the penalty in the critics' target; the paper tunes it for each dataset from 0
    /// to 0.5.
    pub critic_penalty: f64,
    /// Discount of later rewards.
    pub gamma: f64,
    /// The most steps whose rewards a target has before the value that continues it. More let values
    /// arrive sooner, and belong less to the learned actions. 0: 5 if rewards rarely change (at
    /// most at one step in twenty, such as -1 until the task is solved), else 1. On two public tasks with such
    /// rewards, 5 solved 20 and 5 of 20 episodes, and 1 none (docs/results/public.md).
    pub n_steps: usize,
    /// τ: rate of the target networks' running average. With the paper's 0.005, values are still
    /// far from convergence after minutes.
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
    /// Whether the hidden layers of the critics have layer norms.
    pub critic_norms: bool,
    /// Whether observations are normalized; the paper does not normalize them, but a short run then
    /// learns little.
    pub normalize: bool,
}

impl RebracConfig {
    /// The same options for data with or without rare rewards: `n_steps` is not 0.
    #[must_use]
    pub fn for_rewards(&self, are_rare: bool) -> Self {
        Self { n_steps: steps_for(self.n_steps, are_rare), ..self.clone() }
    }
}

/// Defaults for minutes on a CPU; the docs of the fields state the paper's values.
impl Default for RebracConfig {
    fn default() -> Self {
        Self {
            actor_penalty: 0.1,
            critic_penalty: 0.01,
            gamma: 0.99,
            n_steps: 0,
            target_rate: 0.02,
            target_noise: 0.2,
            noise_clip: 0.5,
            actor_every: 2,
            n_layers: 3,
            hidden: 256,
            critic_norms: true,
            normalize: true,
        }
    }
}

impl AlgorithmOptions for RebracConfig {
    fn validate(
        &self,
        observations: &ObservationSpace,
        actions: &ActionSpace,
    ) -> Result<(), ModelError> {
        network::widths(Self::NAME, observations, actions)?;
        self.keys().check(Self::NAME)?;
        let penalties =
            [("actor_penalty", self.actor_penalty), ("critic_penalty", self.critic_penalty)];
        check_positive(Self::NAME, &penalties)
    }

    fn describe(&self) -> String {
        let Self { actor_penalty, critic_penalty, n_steps, n_layers, hidden, .. } = self;
        let targets = match n_steps {
            0 | 1 => String::new(),
            _ => format!("targets of {n_steps} steps, "),
        };
        format!(
            "ReBRAC, {targets}penalties {actor_penalty} and {critic_penalty}, {n_layers} layers of \
             {hidden}"
        )
    }

    fn short_name(&self) -> String {
        "rebrac".into()
    }

    fn docs(&self) -> Docs {
        fields::<RebracConfig>()
    }

    fn keys_of_weights(&self) -> &'static [&'static str] {
        &["n_layers", "hidden", "critic_norms", "normalize"]
    }

    fn network(&self) -> ActingNetwork<'_> {
        self.keys().network()
    }

    fn trainer(&self, task: &Task, job: Job) -> Result<Box<dyn Training>, TrainError> {
        Td3::trainer(&self.for_rewards(has_rare_rewards(job.data.dataset())), task, job)
    }
}

impl Td3Options for RebracConfig {
    const NAME: &'static str = "rebrac";

    fn keys(&self) -> Td3Keys {
        let actor = Hidden { n_layers: self.n_layers, width: self.hidden, has_norms: false };
        Td3Keys {
            gamma: self.gamma,
            // 0 until the rewards are known.
            n_steps: self.n_steps.max(1),
            target_rate: self.target_rate,
            target_noise: self.target_noise,
            noise_clip: self.noise_clip,
            actor_every: self.actor_every,
            actor,
            critic: Hidden { has_norms: self.critic_norms, ..actor },
            is_normalized: self.normalize,
        }
    }

    /// `β₂ Σ(ã' − a')²`
    fn penalty(&self, next_actions: Tensor<2>, steps: &Steps) -> Option<Tensor<2>> {
        let away = (next_actions - steps.next_actions.clone()).square().sum_dim(1);
        Some(away * self.critic_penalty)
    }

    /// `L_π`
    fn actor_loss(&self, state: &ActorCritic, steps: &Steps) -> Tensor<1> {
        let actions = state.actor.network.act(steps.observations.clone());
        let away = (actions.clone() - constant(steps.actions.clone())).square().sum_dim(1);
        let critics = state.critics.network.valid();
        let values = critics.smaller(concat(steps.observations.clone(), actions));
        steps.mean(away) * self.actor_penalty - per_size(values, steps)
    }
}
