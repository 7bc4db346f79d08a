//! [`Discrete`]: an actor with a head on discrete actions, and critics with a value for each
//! action.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use overtone_core::{ActionSpace, ObservationSpace};
use overtone_data::Batch;
use overtone_kernels::Form;
use overtone_model::{
    Inputs, ModelError, Sections,
    contexts::Observed,
    head::{ActedRows, Decisions, Head, HeadConfig},
    init::Init,
};
use overtone_train::{TrainingData, TransitionTensors};

use super::{Critics, IqlConfig, Networks, Outputs, StateOf};
use crate::value::{
    Body, QNetwork,
    discrete_steps::DiscreteSteps,
    network::{Hidden, constant_like},
    policy::Actor,
    q_network::of_actions,
};

/// The networks of a task.
#[derive(Clone, Debug)]
pub struct Discrete {
    observations: ObservationSpace,
    actions: ActionSpace,
    head: HeadConfig,
}

impl Discrete {
    /// Networks for these spaces, with this head of the actor.
    pub fn new(observations: &ObservationSpace, actions: &ActionSpace, head: HeadConfig) -> Self {
        Self { observations: observations.clone(), actions: actions.clone(), head }
    }
}

/// An actor with a categorical distribution.
#[derive(Module, Debug)]
pub struct CategoricalActor {
    /// From an observation to `hidden` features.
    pub body: Body,
    /// From features to the probabilities of actions.
    pub head: Head,
    /// Fused operations if available, or the plain ones.
    #[module(skip)]
    pub form: Form,
}

impl CategoricalActor {
    /// An actor with a body of `hidden` layers and this head on the actions of a task with these
    /// spaces.
    ///
    /// # Errors
    /// When there is no encoder for such observations.
    pub fn init(
        (observations, actions): (&ObservationSpace, &ActionSpace),
        hidden: Hidden,
        head: &HeadConfig,
        init: &mut Init<'_>,
    ) -> Result<Self, ModelError> {
        let body = Body::init(observations, hidden, init)?;
        Ok(Self { body, head: head.init(hidden.width, actions, init), form: Form::Auto })
    }
}

impl Actor for CategoricalActor {
    fn decide(&self, observed: &Observed) -> Decisions {
        self.head.decide(self.body.features(observed, self.form))
    }
}

/// Two critics with one value for each action; the smaller one is used.
#[derive(Module, Debug)]
pub struct QTwin {
    /// One critic.
    pub first: QNetwork,
    /// The other critic, with different initial weights.
    pub second: QNetwork,
}

impl QTwin {
    /// `Q_i(s, a)`, each `[n, 1]`.
    fn values(&self, steps: &DiscreteSteps) -> [Tensor<2>; 2] {
        [&self.first, &self.second]
            .map(|critic| of_actions(critic.quantiles(&steps.observations), steps.actions.clone()))
    }
}

impl Networks for Discrete {
    type Actor = CategoricalActor;
    type Critics = Critics<QTwin, QNetwork>;
    type Steps = DiscreteSteps;

    fn init(
        &self,
        config: &IqlConfig,
        form: Form,
        init: &mut Init<'_>,
    ) -> Result<(CategoricalActor, Critics<QTwin, QNetwork>), ModelError> {
        self.head.validate(&self.actions)?;
        let Self { observations, actions, head } = self;
        let actor = CategoricalActor::init((observations, actions), config.layers(), head, init)?;
        let actor = CategoricalActor { form, ..actor };
        let mut network = |n_outputs| {
            let sizes = [n_outputs, 1];
            let network = QNetwork::init(&self.observations, config.layers(), sizes, init)?;
            Ok::<_, ModelError>(QNetwork { form, ..network })
        };
        let n_actions = self.actions.size();
        let critics = QTwin { first: network(n_actions)?, second: network(n_actions)? };
        Ok((actor, Critics { critics, value: network(1)? }))
    }

    fn steps(
        &self,
        config: &IqlConfig,
        batch: &mut Batch,
        data: &TrainingData,
        device: &Device,
    ) -> Option<DiscreteSteps> {
        config.rescaling(data).apply_to(batch);
        DiscreteSteps::of(batch, data, device)
    }

    fn send(
        &self,
        config: &IqlConfig,
        batch: &Batch,
        data: &TrainingData,
        to: &mut Sections,
    ) -> bool {
        let mut batch = batch.clone();
        config.rescaling(data).apply_to(&mut batch);
        DiscreteSteps::send(&batch, data, to)
    }

    fn received(inputs: &Inputs, data: &TrainingData) -> DiscreteSteps {
        DiscreteSteps::received(inputs, data)
    }

    fn with_rewards_times(steps: DiscreteSteps, factor: f32) -> DiscreteSteps {
        let rewards = steps.next.rewards * factor;
        DiscreteSteps { next: TransitionTensors { rewards, ..steps.next }, ..steps }
    }

    fn outputs(&self, state: &StateOf<Self>, steps: &DiscreteSteps, gamma: f64) -> Outputs {
        let Critics { critics, value } = &state.critics.network;
        let [first, second] = state.target.network.values(steps);
        let next_values = value.valid().values(&steps.next.next_observations);
        let actor = &state.actor.network;
        let hidden = actor.body.features(&steps.observations, actor.form);
        let actions = ActedRows::Discrete(steps.actions.clone());
        let penalties = steps.penalties.clone();
        let penalties = penalties.map(|penalties| constant_like(penalties, &hidden));
        let loss = actor.head.loss(hidden, actions, penalties);
        let returns = steps.returns(next_values, gamma);
        let error = |values: Tensor<2>| {
            let returns = constant_like(returns.clone(), &values);
            values - returns
        };
        Outputs {
            target: first.min_pair(second),
            value: value.values(&steps.observations),
            errors: Some(critics.values(steps).map(error)),
            log_probs: loss.rows.neg().unsqueeze_dim(1),
            regularization: loss.regularization,
            weights: Some(steps.weights().unsqueeze_dim(1)),
        }
    }
}
