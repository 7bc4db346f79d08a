//! [`ExpectileCritics`]: values of recorded actions, learned only from recorded actions (Kostrikov,
//! Nair & Levine 2022).
//!
//! With two critics `Q`, targets `Q'` that follow them and a value `V`, a step on a batch is, with
//! all networks taken before it,
//!
//! ```text
//! A   = min_i Q'_i(s, a) − V(s)
//! L_V = mean |τ − 1(A < 0)| A²
//! L_Q = ½ Σ_i mean (Q_i(s, a) − r − γ (1 − done) V(s'))²
//! ```
//!
//! Each loss moves only its own networks: `V(s')` is a constant in `L_Q`. Then `Q'` moves by a
//! fraction of the distance.

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
    keys::check_fractions,
    network::{Hidden, constant_like},
    parts::{self, Parts},
    twin::{concat, squared_errors},
};

/// Spread of the data's returns after rewards were scaled.
const SPREAD: f32 = 1000.0;
/// Minimum spread of the returns for scaling, relative to the largest one. For nearly equal
/// returns, the scaled values would be much larger than their differences, and no network could
/// distinguish them. If the spread is rounding error, the differences would be only rounding error.
const LEAST_SPREAD: f32 = 0.01;

/// The difference between the largest and the smallest return, if it is large enough for scaling.
fn spread([smallest, largest]: [f32; 2]) -> Option<f32> {
    let spread = largest - smallest;
    (spread > LEAST_SPREAD * smallest.abs().max(largest.abs())).then_some(spread)
}

/// Options of the critics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectileKeys {
    /// τ: the expectile of the values of recorded actions for `V`; one half is their mean.
    pub expectile: f64,
    /// γ, the discount.
    pub gamma: f64,
    /// Step size of the targets at every step.
    pub target_rate: f64,
    /// Hidden layers of every network.
    pub hidden: Hidden,
}

impl ExpectileKeys {
    /// # Errors
    /// Names the first key of `section` with an invalid value.
    pub fn check(&self, section: &str) -> Result<(), ModelError> {
        self.hidden.check(section)?;
        let keys = [
            ("expectile", self.expectile),
            ("gamma", self.gamma),
            ("target_rate", self.target_rate),
        ];
        check_fractions(section, &keys)
    }
}

/// The networks of one optimizer.
#[derive(Module, Debug)]
pub struct Critics {
    /// Critics of observations and actions.
    pub critics: Twin,
    /// `V`, the value of observations.
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
    /// The target of the critics; it does not track gradients.
    pub target: Twin,
}

/// Losses of one batch; each `[1]`, except the advantages.
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
    /// A state before the first step, for observations and actions of these widths.
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

    /// Both losses of the current networks.
    pub fn losses(&self, keys: &ExpectileKeys, steps: &Steps) -> ExpectileLosses {
        let Critics { critics, value } = &self.trained.network;
        let (observations, actions) = (steps.observations.clone(), steps.actions.clone());
        let inputs = concat(observations.clone(), actions);

        let target = self.target.smaller(inputs.clone());
        let values = value.forward(observations);
        let mean_value = values.clone().detach().mean();
        let target = constant_like(target, &values);
        let advantages = target - values;
        let below = advantages.clone().detach().lower_elem(0.0).float().cast(advantages.dtype());
        let slopes = (below.neg() + keys.expectile).abs();
        let value_loss = (slopes * advantages.clone().square()).mean();

        let next_values = value.valid().forward(steps.next_observations.clone());
        let returns = steps.returns(next_values, keys.gamma);
        let critic = squared_errors(&critics.values(inputs), returns) / 2.0;
        let advantages = advantages.detach();
        ExpectileLosses { value: value_loss, critic, advantages, mean_value }
    }

    /// One step down `loss`, the sum of both, after which the target is updated. Returns the norm
    /// of the gradient, `[1]`.
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

    /// All tensors for a checkpoint.
    pub fn export(&self) -> NamedTensors {
        let parts = Parts::default()
            .with(TARGET_CRITICS, &self.target)
            .with_training(CRITIC_OPTIMIZER, &self.trained);
        let mut tensors = parts.into_tensors();
        tensors.extend(self.trained.export_model());
        tensors
    }

    /// The stored networks, with step counts of zero.
    ///
    /// # Errors
    /// When one is missing or has another shape.
    pub fn begin(self, stored: &NamedTensors) -> Result<Self, ModelError> {
        Ok(Self {
            trained: parts::begin(self.trained, stored.clone())?,
            target: parts::module(self.target, TARGET_CRITICS, stored)?,
        })
    }

    /// The stored state.
    ///
    /// # Errors
    /// When a tensor is missing or has another shape.
    pub fn import(self, stored: &NamedTensors) -> Result<Self, ModelError> {
        Ok(Self {
            trained: parts::learner(self.trained, stored.clone(), CRITIC_OPTIMIZER, stored)?,
            target: parts::module(self.target, TARGET_CRITICS, stored)?,
        })
    }

    /// Number of trainable parameters.
    pub fn n_parameters(&self) -> usize {
        self.trained.n_parameters()
    }
}

/// An actor that learns together with such critics: everything that a step changes.
#[derive(Clone, Debug)]
pub struct ActorWithCritics<A> {
    /// The acting network.
    pub actor: Learner<A>,
    /// Values of recorded actions.
    pub critics: ExpectileCritics,
}

impl<A: Module> Export for ActorWithCritics<A> {
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

impl<A: Module> Stored for ActorWithCritics<A> {
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

/// Factor of the rewards that gives the data's returns a spread of 1000; it is computed with the
/// first batch.
#[derive(Clone, Debug, Default)]
pub struct RewardFactor(OnceLock<f32>);

impl RewardFactor {
    /// The factor for rewards of a batch that are already divided by the return scale; 1 if all
    /// episodes have nearly the same return.
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
    fn nearly_equal_returns_are_not_scaled() {
        assert_eq!(spread([-20.0, 180.0]), Some(200.0));
        assert_eq!(spread([98.0, 100.0]), Some(2.0));
        for ends in [[7.0, 7.0], [0.0, 0.0], [99.99999, 100.0], [-100.0, -99.5], [499.0, 500.0]] {
            assert_eq!(spread(ends), None, "{ends:?}");
        }
    }
}
