//! [`ActorCritic`]: an actor, two critics, targets of all of them, and two optimizers; what TD3
//! and its relatives change at a step.

use burn::{
    module::Module,
    tensor::{Gradients, Tensor, TensorData},
};
use overtone_core::seed;
use overtone_kernels::Form;
use overtone_model::{
    ModelError,
    init::{Init, standard_normal},
    transformer::DropoutSeed,
    weights::{self, NamedTensors},
};
use overtone_train::{AdamW, AdamWConfig, Export, Exported, Stored, follow};

use super::{
    network::{Hidden, Mlp},
    parts::{self, Parts},
    twin::Twin,
};

/// Everything that a step changes.
#[derive(Clone, Debug)]
pub struct ActorCritic {
    /// From an observation to an action, by [`Mlp::act`]; it plays.
    pub actor: Mlp,
    /// Values of observations and actions.
    pub critics: Twin,
    /// What follows the actor; tracks no gradients.
    pub target_actor: Mlp,
    /// What follows the critics; tracks no gradients.
    pub target_critics: Twin,
    /// Of the actor.
    pub actor_optimizer: AdamW,
    /// Of both critics.
    pub critic_optimizer: AdamW,
}

impl ActorCritic {
    /// Before the first step, for observations and actions of these widths.
    pub fn init(
        widths: [usize; 2],
        [actor, critic]: [Hidden; 2],
        optimizer: AdamWConfig,
        form: Form,
        init: &mut Init<'_>,
    ) -> Self {
        let actor = Mlp { form, ..Mlp::init(widths, actor, init) };
        let critics = Twin::init(widths, critic, init).with_form(form);
        Self {
            target_actor: actor.valid(),
            target_critics: critics.valid(),
            actor,
            critics,
            actor_optimizer: AdamW::new(optimizer),
            critic_optimizer: AdamW::new(optimizer),
        }
    }

    /// A step of the critics; the norm of their gradient, `[1]`.
    pub fn step_critics(&mut self, gradients: Gradients, learning_rate: f64) -> Tensor<1> {
        let critics = self.critics.clone();
        let (critics, norm) = self.critic_optimizer.step(critics, gradients, learning_rate);
        self.critics = critics;
        norm
    }

    /// A step of the actor, after which the targets move; the norm of its gradient, `[1]`.
    pub fn step_actor(&mut self, gradients: Gradients, learning_rate: f64, rate: f64) -> Tensor<1> {
        let actor = self.actor.clone();
        let (actor, norm) = self.actor_optimizer.step(actor, gradients, learning_rate);
        self.actor = actor;
        self.target_actor = follow(self.target_actor.clone(), &self.actor, rate);
        self.target_critics = follow(self.target_critics.clone(), &self.critics, rate);
        norm
    }

    /// What the target actor does at the next observations, with noise: `clip(π'(s') +
    /// clip(noise, ±clip), ±1)`.
    pub fn next_actions(
        &self,
        next_observations: Tensor<2>,
        noise: Tensor<2>,
        clip: f64,
    ) -> Tensor<2> {
        let actions = self.target_actor.act(next_observations);
        (actions + noise.clamp(-clip, clip)).clamp(-1.0, 1.0)
    }
}

/// `[rows, width]` numbers of N(0, `std`²) that a step draws in a role of its own.
pub fn noise(like: &Tensor<2>, std: f64, DropoutSeed(step_seed): DropoutSeed) -> Tensor<2> {
    let mut generator = seed::generator(step_seed, "target noise");
    let [rows, width] = like.dims();
    let numbers: Vec<f32> =
        (0..rows * width).map(|_| (standard_normal(&mut generator) * std) as f32).collect();
    let numbers = TensorData::new(numbers, [rows, width]);
    Tensor::from_data(numbers, (&like.device(), like.dtype()))
}

const CRITICS: &str = "critics";
const TARGET_ACTOR: &str = "target_actor";
const TARGET_CRITICS: &str = "target_critics";
const ACTOR_OPTIMIZER: &str = "actor_optimizer";
const CRITIC_OPTIMIZER: &str = "critic_optimizer";

impl Export for ActorCritic {
    fn export_model(&self) -> NamedTensors {
        weights::export(&self.actor)
    }

    fn export_training(&self) -> NamedTensors {
        Parts::default()
            .with(CRITICS, &self.critics)
            .with(TARGET_ACTOR, &self.target_actor)
            .with(TARGET_CRITICS, &self.target_critics)
            .with_optimizer(ACTOR_OPTIMIZER, &self.actor_optimizer)
            .with_optimizer(CRITIC_OPTIMIZER, &self.critic_optimizer)
            .into_tensors()
    }
}

impl Stored for ActorCritic {
    fn begin(self, exported: &Exported) -> Result<Self, ModelError> {
        let stored = &exported.training;
        Ok(Self {
            actor: weights::import(self.actor, &exported.model)?,
            critics: parts::module(self.critics, CRITICS, stored)?,
            target_actor: parts::module(self.target_actor, TARGET_ACTOR, stored)?,
            target_critics: parts::module(self.target_critics, TARGET_CRITICS, stored)?,
            ..self
        })
    }

    fn import(self, exported: &Exported, _n_steps: u64) -> Result<Self, ModelError> {
        let stored = &exported.training;
        let mut state = self.begin(exported)?;
        state.actor_optimizer =
            parts::optimizer(state.actor_optimizer, ACTOR_OPTIMIZER, &state.actor, stored)?;
        state.critic_optimizer =
            parts::optimizer(state.critic_optimizer, CRITIC_OPTIMIZER, &state.critics, stored)?;
        Ok(state)
    }

    fn n_parameters(&self) -> usize {
        self.actor.num_params() + self.critics.num_params()
    }
}
