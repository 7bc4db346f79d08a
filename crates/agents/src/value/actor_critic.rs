//! [`ActorCritic`]: a trained actor with two critics, and targets of all of them: the state of TD3
//! and related algorithms.

use burn::tensor::Tensor;
use overtone_core::seed;
use overtone_model::{
    ModelError,
    init::{Init, standard_normal},
    weights::{self, NamedTensors},
};
use overtone_train::{AdamW, Export, Exported, Learner, Stored, Target, TrainConfig};

use super::{
    network::{Hidden, Mlp},
    parts::{self, Parts},
    twin::Twin,
};

/// Everything that a step changes.
#[derive(Clone, Debug)]
pub struct ActorCritic {
    /// The acting network, from an observation to an action, by [`Mlp::act`].
    pub actor: Learner<Mlp>,
    /// Values of observations and actions.
    pub critics: Learner<Twin>,
    /// The target of the actor.
    pub target_actor: Target<Mlp>,
    /// The target of the critics.
    pub target_critics: Target<Twin>,
}

impl ActorCritic {
    /// A state before the first step, for observations and actions of these widths.
    pub fn init(
        widths: [usize; 2],
        [actor, critic]: [Hidden; 2],
        config: &TrainConfig,
        init: &mut Init<'_>,
    ) -> Self {
        let form = config.precision.form();
        let actor = Mlp { form, ..Mlp::init(widths, actor, init) };
        let critics = Twin::init(widths, critic, init).with_form(form);
        Self {
            target_actor: Target::of(&actor),
            target_critics: Target::of(&critics),
            actor: Learner::new(actor, config),
            critics: Learner::without_averages(critics, config.optimizer),
        }
    }

    /// Moves the targets towards their networks by the fraction `rate`.
    pub fn follow(&mut self, rate: f64) {
        self.actor.lead(&mut self.target_actor, rate, |actor| actor);
        self.critics.lead(&mut self.target_critics, rate, |critics| critics);
    }

    /// The memory that a recorded step changes.
    pub fn memory(&mut self) -> Vec<&mut Tensor<1>> {
        let Self { actor, critics, target_actor, target_critics } = self;
        let optimizers = [&mut actor.optimizer, &mut critics.optimizer];
        let targets = [target_actor.memory(), target_critics.memory()];
        optimizers
            .into_iter()
            .flat_map(AdamW::memory)
            .chain(targets.into_iter().flatten())
            .collect()
    }

    /// The target actor's actions at the next observations, with noise:
    /// `clip(π'(s') + clip(noise, ±clip), ±1)`.
    pub fn next_actions(
        &self,
        next_observations: Tensor<2>,
        noise: Tensor<2>,
        clip: f64,
    ) -> Tensor<2> {
        let actions = self.target_actor.network.act(next_observations);
        (actions + noise.clamp(-clip, clip)).clamp(-1.0, 1.0)
    }
}

/// `[rows, width]` numbers of N(0, `std`²), drawn with a seed role of their own.
pub fn noise([rows, width]: [usize; 2], std: f64, step_seed: u64) -> Vec<f32> {
    let mut generator = seed::generator(step_seed, "target noise");
    (0..rows * width).map(|_| (standard_normal(&mut generator) * std) as f32).collect()
}

const CRITICS: &str = "critics";
const TARGET_ACTOR: &str = "target_actor";
const TARGET_CRITICS: &str = "target_critics";
const ACTOR_OPTIMIZER: &str = "actor_optimizer";
const CRITIC_OPTIMIZER: &str = "critic_optimizer";

impl Export for ActorCritic {
    fn export_model(&self) -> NamedTensors {
        self.actor.export_model()
    }

    fn export_training(&self) -> NamedTensors {
        Parts::default()
            .with(CRITICS, &self.critics.network)
            .with(TARGET_ACTOR, &self.target_actor.network)
            .with(TARGET_CRITICS, &self.target_critics.network)
            .with_training(ACTOR_OPTIMIZER, &self.actor)
            .with_training(CRITIC_OPTIMIZER, &self.critics)
            .into_tensors()
    }
}

impl Stored for ActorCritic {
    fn begin(self, exported: &Exported) -> Result<Self, ModelError> {
        let stored = &exported.training;
        Ok(Self {
            actor: self.actor.begin(exported)?,
            critics: parts::begin(self.critics, weights::of_part(CRITICS, stored))?,
            target_actor: parts::target(self.target_actor, TARGET_ACTOR, stored)?,
            target_critics: parts::target(self.target_critics, TARGET_CRITICS, stored)?,
        })
    }

    fn import(self, exported: &Exported, _n_steps: u64) -> Result<Self, ModelError> {
        let stored = &exported.training;
        let (actor, critics) = (exported.model.clone(), weights::of_part(CRITICS, stored));
        Ok(Self {
            actor: parts::learner(self.actor, actor, ACTOR_OPTIMIZER, stored)?,
            critics: parts::learner(self.critics, critics, CRITIC_OPTIMIZER, stored)?,
            target_actor: parts::target(self.target_actor, TARGET_ACTOR, stored)?,
            target_critics: parts::target(self.target_critics, TARGET_CRITICS, stored)?,
        })
    }

    fn n_parameters(&self) -> usize {
        self.actor.n_parameters() + self.critics.n_parameters()
    }
}
