//! [`OnVectors`]: a Gaussian actor and perceptrons, for continuous actions on vectors.

use std::{f64::consts::TAU, fmt::Debug, marker::PhantomData};

use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor},
};
use overtone_core::{ActionSpace, ObservationSpace};
use overtone_data::Batch;
use overtone_kernels::Form;
use overtone_model::{Inputs, ModelError, Sections, init::Init};
use overtone_train::TrainingData;

use super::{Critics, IqlConfig, LearnsValues, Networks, Outputs, StateOf, options::NAME};
use crate::value::{
    Mlp, Steps, Twin,
    network::{self, Hidden, constant_like},
    twin::concat,
};

/// Bounds of ln σ.
const LOG_STD: [f64; 2] = [-20.0, 2.0];

/// The networks for single actions: two critics and a value.
pub type Continuous = OnVectors<Critics<Twin, Mlp>>;
/// The networks for chunks of actions: a value alone.
pub type InChunks = OnVectors<ValueAlone>;

/// The networks of a task that learn values as `C`.
#[derive(Clone, Debug)]
pub struct OnVectors<C> {
    observations: ObservationSpace,
    actions: ActionSpace,
    critics: PhantomData<C>,
}

impl<C> OnVectors<C> {
    /// Networks for these spaces; the actions are already [in chunks](ActionSpace::in_chunks).
    pub fn new(observations: &ObservationSpace, actions: &ActionSpace) -> Self {
        let (observations, actions) = (observations.clone(), actions.clone());
        Self { observations, actions, critics: PhantomData }
    }
}

/// Networks that learn values of continuous actions on vectors.
pub trait OfSteps: LearnsValues {
    /// New networks for observations and actions of these widths.
    fn init(widths: [usize; 2], hidden: Hidden, form: Form, init: &mut Init<'_>) -> Self;

    /// The values of a batch.
    fn values(&self, target: &Self::Followed, steps: &Steps, gamma: f64) -> StepValues;
}

/// Values of `n` steps, each `[n, 1]`.
#[derive(Debug)]
pub struct StepValues {
    /// The value of the recorded action, without gradient.
    pub target: Tensor<2>,
    /// `V(s)`
    pub value: Tensor<2>,
    /// `Q_i(s, a) − r − γ (1 − done) V(s')`; `None` without critics.
    pub errors: Option<[Tensor<2>; 2]>,
}

impl OfSteps for Critics<Twin, Mlp> {
    fn init(widths: [usize; 2], hidden: Hidden, form: Form, init: &mut Init<'_>) -> Self {
        let critics = Twin::init(widths, hidden, init).with_form(form);
        Self { critics, value: Mlp { form, ..Mlp::init([widths[0], 1], hidden, init) } }
    }

    fn values(&self, target: &Twin, steps: &Steps, gamma: f64) -> StepValues {
        let Self { critics, value } = self;
        let inputs = concat(steps.observations.clone(), steps.actions.clone());
        let next_values = value.valid().forward(steps.next_observations.clone());
        let returns = steps.returns(next_values, gamma);
        let error = |values: Tensor<2>| {
            let returns = constant_like(returns.clone(), &values);
            values - returns
        };
        StepValues {
            target: target.smaller(inputs.clone()),
            value: value.forward(steps.observations.clone()),
            errors: Some(critics.values(inputs).map(error)),
        }
    }
}

/// `V` alone: a recorded action has the value that followed it.
#[derive(Module, Debug)]
pub struct ValueAlone {
    /// `V`, the value of observations.
    pub value: Mlp,
}

impl LearnsValues for ValueAlone {
    type Followed = Mlp;
    const FIGURES: &'static [&'static str] = &["actor_loss", "value"];
    const TARGET: &'static str = "target_value";

    fn followed(&self) -> &Mlp {
        &self.value
    }
}

impl OfSteps for ValueAlone {
    fn init(
        [observations, _]: [usize; 2],
        hidden: Hidden,
        form: Form,
        init: &mut Init<'_>,
    ) -> Self {
        Self { value: Mlp { form, ..Mlp::init([observations, 1], hidden, init) } }
    }

    fn values(&self, target: &Mlp, steps: &Steps, gamma: f64) -> StepValues {
        let next_values = target.forward(steps.next_observations.clone());
        let value = self.value.forward(steps.observations.clone());
        StepValues { target: steps.returns(next_values, gamma), value, errors: None }
    }
}

/// Widths of an observation and of an action.
///
/// # Errors
/// When observations are not vectors, or actions are not continuous.
pub(super) fn widths(
    observations: &ObservationSpace,
    actions: &ActionSpace,
) -> Result<[usize; 2], ModelError> {
    network::widths(NAME, observations, actions)
}

/// An actor `N(tanh μ(s), σ²)`; ln σ is one vector for all states.
#[derive(Module, Debug)]
pub struct GaussianActor {
    /// μ, before tanh.
    pub mean: Mlp,
    /// ln σ, `[action]`.
    pub log_std: Param<Tensor<1>>,
}

impl GaussianActor {
    /// `ln N(a; tanh μ(s), σ²)` of every row, `[rows, 1]`.
    pub fn log_likelihood(&self, observations: Tensor<2>, actions: Tensor<2>) -> Tensor<2> {
        let log_std = self.log_std.val().clamp(LOG_STD[0], LOG_STD[1]).unsqueeze::<2>();
        let mean = self.mean.act(observations);
        let actions = constant_like(actions, &mean);
        let distance = (actions - mean) / log_std.clone().exp();
        ((distance.square() + TAU.ln()) / -2.0 - log_std).sum_dim(1)
    }
}

impl<C: OfSteps> Networks for OnVectors<C> {
    type Actor = GaussianActor;
    type Critics = C;
    type Steps = Steps;

    fn init(
        &self,
        config: &IqlConfig,
        form: Form,
        init: &mut Init<'_>,
    ) -> Result<(GaussianActor, C), ModelError> {
        let (widths, hidden) = (widths(&self.observations, &self.actions)?, config.layers());
        let mean = Mlp { form, ..Mlp::init(widths, hidden, init) };
        let actor = GaussianActor { mean, log_std: init.constant([widths[1]], 0.0) };
        Ok((actor, C::init(widths, hidden, form, init)))
    }

    fn steps(
        &self,
        config: &IqlConfig,
        batch: &mut Batch,
        data: &TrainingData,
        device: &Device,
    ) -> Option<Steps> {
        Steps::of(batch, &config.rescaling(data), device)
    }

    fn send(
        &self,
        config: &IqlConfig,
        batch: &Batch,
        data: &TrainingData,
        to: &mut Sections,
    ) -> bool {
        !Steps::send(batch, &config.rescaling(data), to).is_empty()
    }

    fn received(inputs: &Inputs, _data: &TrainingData) -> Steps {
        Steps::received(inputs)
    }

    fn with_rewards_times(steps: Steps, factor: f32) -> Steps {
        let rewards = steps.rewards * factor;
        Steps { rewards, ..steps }
    }

    fn outputs(&self, state: &StateOf<Self>, steps: &Steps, gamma: f64) -> Outputs {
        let values = state.critics.network.values(&state.target.network, steps, gamma);
        let (observations, actions) = (steps.observations.clone(), steps.actions.clone());
        Outputs {
            target: values.target,
            value: values.value,
            errors: values.errors,
            log_probs: state.actor.network.log_likelihood(observations, actions),
            regularization: None,
            weights: steps.weights(),
        }
    }
}
