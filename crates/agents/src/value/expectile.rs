//! [`ExpectileCritics`]: what recorded actions are worth, learned from recorded actions alone
//! (Kostrikov, Nair & Levine 2022).
//!
//! With two critics `Q`, `Q'` that follow them and a value `V`, a step on a batch is, with all
//! networks as before it,
//!
//! ```text
//! A   = min_i Q'_i(s, a) − V(s)
//! L_V = mean |τ − 1(A < 0)| A²
//! L_Q = ½ Σ_i mean (Q_i(s, a) − r − γ (1 − done) V(s'))²
//! ```
//!
//! of which each moves its own networks: `V(s')` is a constant in `L_Q`. Then `Q'` moves a part of
//! the way.

use std::sync::OnceLock;

use burn::{
    module::{Module, ParamId},
    tensor::{Gradients, Tensor},
};
use overtone_kernels::Form;
use overtone_model::{
    ModelError,
    init::Init,
    matrices::Matrices,
    weights::{self, NamedTensors},
};
use overtone_train::{AdamW, AdamWConfig, Export, Exported, Stored, TrainingData, follow};

use super::{
    Mlp, Steps, Twin,
    keys::check_shares,
    network::{Hidden, constant},
    parts::{self, Parts},
    twin::{beside, squared_errors},
};

/// What the returns of the data are apart after rewards were scaled.
const SPREAD: f32 = 1000.0;

/// How they learn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectileKeys {
    /// τ: which expectile of the values of recorded actions `V` is; one half is their mean.
    pub expectile: f64,
    /// γ, the discount.
    pub gamma: f64,
    /// The part of the way that targets go at every step.
    pub target_rate: f64,
    /// Hidden layers of every network.
    pub hidden: Hidden,
}

impl ExpectileKeys {
    /// # Errors
    /// Names the first key of `section` whose value describes no such critics.
    pub fn check(&self, section: &str) -> Result<(), ModelError> {
        self.hidden.check(section)?;
        let keys = [
            ("expectile", self.expectile),
            ("gamma", self.gamma),
            ("target_rate", self.target_rate),
        ];
        check_shares(section, &keys)
    }
}

/// What one optimizer moves.
#[derive(Module, Debug)]
pub struct Critics {
    /// Of observations and actions.
    pub critics: Twin,
    /// `V`, of observations.
    pub value: Mlp,
}

impl Matrices for Critics {
    fn matrices(&self) -> Vec<ParamId> {
        [self.critics.matrices(), self.value.matrices()].concat()
    }
}

/// See the [module's documentation](self).
#[derive(Clone, Debug)]
pub struct ExpectileCritics {
    /// Critics and value.
    pub trained: Critics,
    /// What follows the critics; tracks no gradients.
    pub target: Twin,
    /// Of critics and value.
    pub optimizer: AdamW,
}

/// What one batch costs; each `[1]` but the advantages.
pub struct ExpectileLosses {
    /// `L_V`
    pub value: Tensor<1>,
    /// `L_Q`
    pub critic: Tensor<1>,
    /// `A`, a constant, `[rows, 1]`.
    pub advantages: Tensor<2>,
    /// Mean of `V(s)`, a constant.
    pub mean_value: Tensor<1>,
}

const TARGET_CRITICS: &str = "target_critics";
const CRITIC_OPTIMIZER: &str = "critic_optimizer";
const ACTOR_OPTIMIZER: &str = "actor_optimizer";

impl ExpectileCritics {
    /// Before the first step, for observations and actions of these widths.
    pub fn init(
        widths: [usize; 2],
        hidden: Hidden,
        optimizer: AdamWConfig,
        form: Form,
        init: &mut Init<'_>,
    ) -> Self {
        let critics = Twin::init(widths, hidden, init).with_form(form);
        let value = Mlp { form, ..Mlp::init([widths[0], 1], hidden, init) };
        Self {
            target: critics.valid(),
            trained: Critics { critics, value },
            optimizer: AdamW::new(optimizer),
        }
    }

    /// Both losses, of networks as they are.
    pub fn losses(&self, keys: &ExpectileKeys, steps: &Steps) -> ExpectileLosses {
        let Critics { critics, value } = &self.trained;
        let (observations, actions) = (steps.observations.clone(), steps.actions.clone());
        let seen = beside(observations.clone(), actions);

        let target = self.target.smaller(seen.clone());
        let values = value.forward(observations);
        let mean_value = values.clone().detach().mean();
        let target = if values.is_autodiff() { constant(target) } else { target };
        let advantages = target - values;
        let below = advantages.clone().detach().lower_elem(0.0).float().cast(advantages.dtype());
        let slopes = (below.neg() + keys.expectile).abs();
        let value_loss = (slopes * advantages.clone().square()).mean();

        let next_values = value.valid().forward(steps.next_observations.clone());
        let returns = steps.returns(next_values, keys.gamma);
        let critic = squared_errors(&critics.values(seen), returns) / 2.0;
        let advantages = advantages.detach();
        ExpectileLosses { value: value_loss, critic, advantages, mean_value }
    }

    /// One step down `loss`, the sum of both, after which the target follows; the norm of the
    /// gradient, `[1]`.
    pub fn descend(
        &mut self,
        keys: &ExpectileKeys,
        loss: Tensor<1>,
        learning_rate: f64,
    ) -> Tensor<1> {
        let gradients = loss.backward();
        let (trained, norm) = self.optimizer.step(self.trained.clone(), gradients, learning_rate);
        self.trained = trained;
        self.target = follow(self.target.clone(), &self.trained.critics, keys.target_rate);
        norm
    }

    /// All that a checkpoint keeps of it.
    pub fn export(&self) -> NamedTensors {
        let parts = Parts::default()
            .with(TARGET_CRITICS, &self.target)
            .with_optimizer(CRITIC_OPTIMIZER, &self.optimizer);
        let mut tensors = parts.into_tensors();
        tensors.extend(weights::export(&self.trained));
        tensors
    }

    /// With the networks that were stored, but as if no step was taken.
    ///
    /// # Errors
    /// When one is missing or has another shape.
    pub fn begin(self, stored: &NamedTensors) -> Result<Self, ModelError> {
        Ok(Self {
            trained: weights::import(self.trained, stored)?,
            target: parts::module(self.target, TARGET_CRITICS, stored)?,
            ..self
        })
    }

    /// As it was stored.
    ///
    /// # Errors
    /// When a tensor is missing or has another shape.
    pub fn import(self, stored: &NamedTensors) -> Result<Self, ModelError> {
        let mut critics = self.begin(stored)?;
        critics.optimizer =
            parts::optimizer(critics.optimizer, CRITIC_OPTIMIZER, &critics.trained, stored)?;
        Ok(critics)
    }

    /// How many numbers are learned.
    pub fn n_parameters(&self) -> usize {
        self.trained.num_params()
    }
}

/// What acts beside such critics, and learns with them: everything that a step changes.
#[derive(Clone, Debug)]
pub struct BesideCritics<A> {
    /// Plays.
    pub actor: A,
    /// Of the actor.
    pub actor_optimizer: AdamW,
    /// What recorded actions are worth.
    pub critics: ExpectileCritics,
}

impl<A: Module + Matrices> BesideCritics<A> {
    /// A step of the actor; the norm of its gradient, `[1]`.
    pub fn step_actor(&mut self, gradients: Gradients, learning_rate: f64) -> Tensor<1> {
        let actor = self.actor.clone();
        let (actor, norm) = self.actor_optimizer.step(actor, gradients, learning_rate);
        self.actor = actor;
        norm
    }
}

impl<A: Module> Export for BesideCritics<A> {
    fn export_model(&self) -> NamedTensors {
        weights::export(&self.actor)
    }

    fn export_training(&self) -> NamedTensors {
        let actor = Parts::default().with_optimizer(ACTOR_OPTIMIZER, &self.actor_optimizer);
        let mut tensors = actor.into_tensors();
        tensors.extend(self.critics.export());
        tensors
    }
}

impl<A: Module> Stored for BesideCritics<A> {
    fn begin(self, exported: &Exported) -> Result<Self, ModelError> {
        Ok(Self {
            actor: weights::import(self.actor, &exported.model)?,
            critics: self.critics.begin(&exported.training)?,
            ..self
        })
    }

    fn import(self, exported: &Exported, _n_steps: u64) -> Result<Self, ModelError> {
        let stored = &exported.training;
        let actor = weights::import(self.actor, &exported.model)?;
        let critics = self.critics.import(stored)?;
        let actor_optimizer =
            parts::optimizer(self.actor_optimizer, ACTOR_OPTIMIZER, &actor, stored)?;
        Ok(Self { actor, actor_optimizer, critics })
    }

    fn n_parameters(&self) -> usize {
        self.actor.num_params() + self.critics.n_parameters()
    }
}

/// What rewards are multiplied by, so that the returns of the data are 1000 apart: found
/// with the first batch.
#[derive(Clone, Debug, Default)]
pub struct RewardFactor(OnceLock<f32>);

impl RewardFactor {
    /// It, for rewards of a batch, which are divided by the return scale; 1 where all episodes
    /// return the same.
    pub fn of(&self, data: &TrainingData) -> f32 {
        *self.0.get_or_init(|| {
            let spread = match data.episode_returns().ends() {
                Some([smallest, largest]) => largest - smallest,
                None => 0.0,
            };
            if spread > 0.0 { SPREAD / spread * data.return_scale() } else { 1.0 }
        })
    }
}
