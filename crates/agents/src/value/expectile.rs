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
    tensor::Tensor,
};
use overtone_kernels::Form;
use overtone_model::{ModelError, init::Init, matrices::Matrices, weights::NamedTensors};
use overtone_train::{AdamWConfig, Export, Exported, Learner, Stored, TrainingData, follow};

use super::{
    Mlp, Steps, Twin,
    keys::check_shares,
    network::{Hidden, constant_beside},
    parts::{self, Parts},
    twin::{beside, squared_errors},
};

/// What the returns of the data are apart after rewards were scaled.
const SPREAD: f32 = 1000.0;
/// The least distance of the returns, as a share of the largest, by which rewards are scaled. Of
/// nearly equal returns the scaled values would be so much larger than their differences that no
/// network tells them apart; where the distance is rounding, they would be rounding alone.
const LEAST_SPREAD: f32 = 0.01;

/// How far the smallest and the largest return are apart, where that is enough to scale by.
fn spread([smallest, largest]: [f32; 2]) -> Option<f32> {
    let spread = largest - smallest;
    (spread > LEAST_SPREAD * smallest.abs().max(largest.abs())).then_some(spread)
}

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
    pub trained: Learner<Critics>,
    /// What follows the critics; tracks no gradients.
    pub target: Twin,
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
            trained: Learner::without_averages(Critics { critics, value }, optimizer),
        }
    }

    /// Both losses, of networks as they are.
    pub fn losses(&self, keys: &ExpectileKeys, steps: &Steps) -> ExpectileLosses {
        let Critics { critics, value } = &self.trained.network;
        let (observations, actions) = (steps.observations.clone(), steps.actions.clone());
        let seen = beside(observations.clone(), actions);

        let target = self.target.smaller(seen.clone());
        let values = value.forward(observations);
        let mean_value = values.clone().detach().mean();
        let target = constant_beside(target, &values);
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
        let norm = self.trained.step(loss.backward(), learning_rate);
        let critics = &self.trained.network.critics;
        self.target = follow(self.target.clone(), critics, keys.target_rate);
        norm
    }

    /// All that a checkpoint keeps of it.
    pub fn export(&self) -> NamedTensors {
        let parts = Parts::default()
            .with(TARGET_CRITICS, &self.target)
            .with_training(CRITIC_OPTIMIZER, &self.trained);
        let mut tensors = parts.into_tensors();
        tensors.extend(self.trained.export_model());
        tensors
    }

    /// With the networks that were stored, but as if no step was taken.
    ///
    /// # Errors
    /// When one is missing or has another shape.
    pub fn begin(self, stored: &NamedTensors) -> Result<Self, ModelError> {
        Ok(Self {
            trained: parts::begin(self.trained, stored.clone())?,
            target: parts::module(self.target, TARGET_CRITICS, stored)?,
        })
    }

    /// As it was stored.
    ///
    /// # Errors
    /// When a tensor is missing or has another shape.
    pub fn import(self, stored: &NamedTensors) -> Result<Self, ModelError> {
        Ok(Self {
            trained: parts::learner(self.trained, stored.clone(), CRITIC_OPTIMIZER, stored)?,
            target: parts::module(self.target, TARGET_CRITICS, stored)?,
        })
    }

    /// How many numbers are learned.
    pub fn n_parameters(&self) -> usize {
        self.trained.n_parameters()
    }
}

/// What acts beside such critics, and learns with them: everything that a step changes.
#[derive(Clone, Debug)]
pub struct BesideCritics<A> {
    /// Plays.
    pub actor: Learner<A>,
    /// What recorded actions are worth.
    pub critics: ExpectileCritics,
}

impl<A: Module> Export for BesideCritics<A> {
    fn export_model(&self) -> NamedTensors {
        self.actor.export_model()
    }

    fn export_training(&self) -> NamedTensors {
        let actor = Parts::default().with_training(ACTOR_OPTIMIZER, &self.actor);
        let mut tensors = actor.into_tensors();
        tensors.extend(self.critics.export());
        tensors
    }
}

impl<A: Module> Stored for BesideCritics<A> {
    fn begin(self, exported: &Exported) -> Result<Self, ModelError> {
        Ok(Self {
            actor: self.actor.begin(exported)?,
            critics: self.critics.begin(&exported.training)?,
        })
    }

    fn import(self, exported: &Exported, _n_steps: u64) -> Result<Self, ModelError> {
        let (model, stored) = (exported.model.clone(), &exported.training);
        Ok(Self {
            actor: parts::learner(self.actor, model, ACTOR_OPTIMIZER, stored)?,
            critics: self.critics.import(stored)?,
        })
    }

    fn n_parameters(&self) -> usize {
        self.actor.n_parameters() + self.critics.n_parameters()
    }
}

/// What rewards are multiplied by, so that the returns of the data are 1000 apart: found
/// with the first batch.
#[derive(Clone, Debug, Default)]
pub struct RewardFactor(OnceLock<f32>);

impl RewardFactor {
    /// It, for rewards of a batch, which are divided by the return scale; 1 where all episodes
    /// return nearly the same.
    pub fn of(&self, data: &TrainingData) -> f32 {
        *self.0.get_or_init(|| match data.episode_returns().ends() {
            Some(ends) => spread(ends).map_or(1.0, |spread| SPREAD / spread * data.return_scale()),
            None => 1.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn nearly_equal_returns_are_no_scale() {
        assert_eq!(spread([-20.0, 180.0]), Some(200.0));
        assert_eq!(spread([98.0, 100.0]), Some(2.0));
        for ends in [[7.0, 7.0], [0.0, 0.0], [99.99999, 100.0], [-100.0, -99.5], [499.0, 500.0]] {
            assert_eq!(spread(ends), None, "{ends:?}");
        }
    }
}
