//! [`Continuous`]: a Gaussian actor and perceptrons, for continuous actions on vectors.

use std::f64::consts::TAU;

use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor},
};
use overtone_core::{ActionSpace, ObservationSpace};
use overtone_data::Batch;
use overtone_kernels::Form;
use overtone_model::{Inputs, ModelError, Sections, init::Init};
use overtone_train::TrainingData;

use super::{Critics, IqlConfig, Networks, Outputs, StateOf, options::NAME};
use crate::value::{
    Mlp, Steps, Twin,
    network::{self, constant_like},
    twin::concat,
};

/// Bounds of ln σ.
const LOG_STD: [f64; 2] = [-20.0, 2.0];

/// The networks of a task.
#[derive(Clone, Debug)]
pub struct Continuous {
    observations: ObservationSpace,
    actions: ActionSpace,
}

impl Continuous {
    /// Networks for these spaces.
    pub fn new(observations: &ObservationSpace, actions: &ActionSpace) -> Self {
        Self { observations: observations.clone(), actions: actions.clone() }
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

impl Networks for Continuous {
    type Actor = GaussianActor;
    type Twin = Twin;
    type Value = Mlp;
    type Steps = Steps;

    fn init(
        &self,
        config: &IqlConfig,
        form: Form,
        init: &mut Init<'_>,
    ) -> Result<(GaussianActor, Critics<Twin, Mlp>), ModelError> {
        let (widths, hidden) = (widths(&self.observations, &self.actions)?, config.layers());
        let mean = Mlp { form, ..Mlp::init(widths, hidden, init) };
        let actor = GaussianActor { mean, log_std: init.constant([widths[1]], 0.0) };
        let critics = Twin::init(widths, hidden, init).with_form(form);
        let value = Mlp { form, ..Mlp::init([widths[0], 1], hidden, init) };
        Ok((actor, Critics { critics, value }))
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
        let Critics { critics, value } = &state.critics.network;
        let (observations, actions) = (steps.observations.clone(), steps.actions.clone());
        let inputs = concat(observations.clone(), actions.clone());
        let next_values = value.valid().forward(steps.next_observations.clone());
        Outputs {
            target: state.target.network.smaller(inputs.clone()),
            value: value.forward(observations.clone()),
            critics: critics.values(inputs),
            returns: steps.returns(next_values, gamma),
            log_probs: state.actor.network.log_likelihood(observations, actions),
            regularization: None,
            weights: steps.weights(),
        }
    }
}
