//! [`SequenceModel`]: learning of recorded actions from their contexts.
//!
//! With a Decision Transformer conditioned on returns, this is Chen et al. (2021). Without returns,
//! or with a perceptron, it is behaviour cloning. A perceptron conditioned on returns is
//! [RvS](crate::rvs).
//!
//! A [return model](overtone_model::conditioning::return_model) learns in the same steps, with its
//! own loss and optimizer.

use burn::tensor::{Device, Tensor};
use overtone_core::{ActionSpace, ObservationSpace, Policy, Task, seed::Generator};
use overtone_data::Batch;
use overtone_kernels::Dropout;
use overtone_model::{
    Contexts, DecisionTransformerConfig, DropoutSeed, Inputs, Model, ModelConfig, ModelError,
    ModelPolicy, Places, ReturnModel, Sections,
    conditioning::return_model,
    error::config_error,
    init::Init,
    weights::{self, NamedTensors},
};
use overtone_train::{
    Algorithm, BatchLoss, Export, Exported, Gradient, Job, Learner, LearningRate, PartFigures,
    Parts, Recorded, StepAt, StepFigures, Stored, TrainConfig, TrainError, Trainer, Training,
    TrainingData,
};
use serde::{Deserialize, Serialize};

use crate::{
    acting::{ActingNetwork, PolicyParts},
    options::AlgorithmOptions,
    value::{parts, steps::where_finite},
};

/// Learning of recorded actions with one model.
#[derive(Clone, Debug)]
pub struct SequenceModel {
    /// The model.
    pub model: ModelConfig,
    /// The form of the observations.
    pub observations: ObservationSpace,
    /// The form of the actions.
    pub actions: ActionSpace,
}

/// Everything that a step changes.
#[derive(Clone, Debug)]
pub struct SequenceLearner {
    /// The model of actions, which acts.
    pub model: Learner<Model>,
    /// The model of the returns that bound an agent's target, if the conditioner has one.
    pub returns: Option<Learner<ReturnModel>>,
}

impl Algorithm for SequenceModel {
    type State = SequenceLearner;

    /// Discrete actions: nats per action, and the fraction of recorded actions that are the most
    /// probable one. Continuous actions, in the head's own unit: squared error, averaged over
    /// dimensions, or nats, summed over them.
    fn figures(&self) -> &'static [&'static str] {
        match self.actions {
            ActionSpace::Discrete { .. } => &["cross_entropy", "accuracy"],
            ActionSpace::Continuous { .. } => &["action_loss"],
        }
    }

    fn context_length(&self) -> usize {
        self.model.context_length()
    }

    fn labels_per_context(&self) -> usize {
        self.model.labels_per_context()
    }

    fn top_percents(&self) -> &[f32] {
        self.model.top_percents()
    }

    fn init(
        &self,
        config: &TrainConfig,
        device: &Device,
        generator: &mut Generator,
    ) -> Result<Self::State, TrainError> {
        let mut init = Init::drawn(device, generator);
        let model = Model::init(&self.model, &self.observations, &self.actions, &mut init)?;
        let model = Learner::new(model.with_form(config.precision.form()), config);
        let returns = |returns| ReturnModel::init(returns, &self.observations, &mut init);
        let returns = self.model.return_model().map(returns).transpose()?;
        let returns = returns.map(|returns| returns.with_form(config.precision.form()));
        Ok(SequenceLearner { model, returns: returns.map(|returns| Learner::new(returns, config)) })
    }

    fn step(
        &self,
        state: &mut Self::State,
        batch: &mut Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
    ) -> StepFigures {
        let contexts = self.contexts(batch, data, at.device);
        let of_returns = state.returns.is_some().then_some(at.learning_rate);
        let seed = DropoutSeed::new(at.seed, at.device);
        self.learn(state, &contexts, seed, (at.learning_rate, of_returns))
    }

    fn parts(&self) -> Option<&dyn Parts<Self::State>> {
        Some(self)
    }

    fn recorded(&self) -> Option<&dyn Recorded<Self::State>> {
        Some(self)
    }

    fn held_out_loss(
        &self,
        state: &Self::State,
        batch: &mut Batch,
        data: &TrainingData,
        device: &Device,
    ) -> Option<Tensor<1>> {
        let contexts = self.contexts(batch, data, device);
        Some(state.model.acting().loss(&contexts, None).action)
    }
}

impl SequenceModel {
    /// A batch with the inputs of the model's conditioning.
    fn contexts(&self, batch: &mut Batch, data: &TrainingData, device: &Device) -> Contexts {
        self.conditioned(data.contexts(batch, device))
    }

    /// A step with these learning rates of the model of actions and of the return model.
    fn learn(
        &self,
        state: &mut SequenceLearner,
        contexts: &Contexts,
        seed: DropoutSeed,
        (rate, of_returns): (impl Into<LearningRate>, Option<impl Into<LearningRate>>),
    ) -> StepFigures {
        let figures = state.model.descend(loss_of(&state.model, contexts, seed), rate);
        let (Some(returns), Some(rate)) = (&mut state.returns, of_returns) else { return figures };
        // Its loss and gradient norm only need to be finite.
        let loss = returns.network.mean_loss(contexts);
        let returns_norm = returns.step(loss.backward(), rate);
        let grad_norm = where_finite(figures.grad_norm, [loss.inner(), returns_norm]);
        StepFigures { grad_norm, ..figures }
    }

    fn conditioned(&self, contexts: Contexts) -> Contexts {
        match self.model.conditioning() {
            Some(conditioning) => conditioning.condition(contexts),
            None => contexts,
        }
    }
}

/// The gradient of a part consists of the model's gradient, then the return model's gradient.
impl Parts<SequenceLearner> for SequenceModel {
    fn part(
        &self,
        state: &SequenceLearner,
        batch: &mut Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
    ) -> PartFigures {
        let contexts = self.contexts(batch, data, at.device);
        let seed = DropoutSeed::new(at.seed, at.device);
        let figures = state.model.part(loss_of(&state.model, &contexts, seed));
        let Some(returns) = &state.returns else { return figures };
        let loss = returns.network.mean_loss(&contexts);
        let gradient = figures.gradient.and(Gradient::of(&returns.network, loss.backward()));
        PartFigures { gradient, ..figures }
    }

    fn descend(
        &self,
        state: &mut SequenceLearner,
        gradient: Gradient,
        learning_rate: f64,
    ) -> Tensor<1> {
        let Some(returns) = &mut state.returns else {
            return state.model.descend_along(gradient, learning_rate);
        };
        let [of_model, of_returns] = gradient.split(&state.model.network);
        let grad_norm = state.model.descend_along(of_model, learning_rate);
        let returns_norm = returns.descend_along(of_returns, learning_rate);
        where_finite(grad_norm, [returns_norm])
    }
}

impl Recorded<SequenceLearner> for SequenceModel {
    fn send(
        &self,
        state: &SequenceLearner,
        batch: &Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
        to: &mut Sections,
    ) -> bool {
        let time = batch.context_length;
        let n_padding: Vec<usize> = batch.n_real.iter().map(|&n| time - n as usize).collect();
        let (timesteps, top_percent_idx) = (&batch.timesteps[..], &batch.top_percent_idx[..]);
        to.ints("seed", &[2], Dropout::words(at.seed));
        state.model.send_rate("rate", at.learning_rate, to);
        if let Some(returns) = &state.returns {
            returns.send_rate("rate_of_returns", at.learning_rate, to);
        }
        let (n_padding, step_weights) = (&n_padding[..], &batch.step_weights[..]);
        self.model.send(Places { timesteps, n_padding, step_weights, top_percent_idx }, to);
        data.send(batch, to)
    }

    fn compute(
        &self,
        state: &mut SequenceLearner,
        inputs: &Inputs,
        data: &TrainingData,
    ) -> StepFigures {
        let (Some(seed), Some(rate)) =
            (inputs.ints("seed"), LearningRate::received(inputs, "rate"))
        else {
            panic!("the seed and the rate of a step were sent")
        };
        let contexts = self.conditioned(data.received(inputs));
        let of_returns = LearningRate::received(inputs, "rate_of_returns");
        self.learn(state, &contexts, DropoutSeed(seed), (rate, of_returns))
    }

    fn counted(&self, state: &mut SequenceLearner, _at: &StepAt<'_>) {
        state.model.counted();
        if let Some(returns) = &mut state.returns {
            returns.counted();
        }
    }

    fn memory<'s>(&self, state: &'s mut SequenceLearner) -> Vec<&'s mut Tensor<1>> {
        let of_returns = state.returns.iter_mut().flat_map(|returns| returns.optimizer.memory());
        state.model.optimizer.memory().into_iter().chain(of_returns).collect()
    }
}

/// The loss of a batch, with dropout.
fn loss_of(model: &Learner<Model>, contexts: &Contexts, seed: DropoutSeed) -> BatchLoss {
    let loss = model.network.loss(contexts, Some(seed));
    let figures = std::iter::once(loss.action).chain(loss.accuracy).collect();
    BatchLoss { total: loss.total, figures }
}

/// The return model is stored in both tensor files, under the name [`return_model::PART`].
impl Export for SequenceLearner {
    fn export_model(&self) -> NamedTensors {
        let mut tensors = self.model.export_model();
        if let Some(returns) = &self.returns {
            tensors.extend(weights::as_part(return_model::PART, returns.export_model()));
        }
        tensors
    }

    fn export_training(&self) -> NamedTensors {
        let mut tensors = self.model.export_training();
        if let Some(returns) = &self.returns {
            tensors.extend(weights::as_part(return_model::PART, returns.export_training()));
        }
        tensors
    }
}

impl Stored for SequenceLearner {
    fn begin(self, exported: &Exported) -> Result<Self, ModelError> {
        let of_returns =
            |returns| parts::begin(returns, weights::of_part(return_model::PART, &exported.model));
        let returns = self.returns.map(of_returns).transpose()?;
        Ok(Self { model: self.model.begin(exported)?, returns })
    }

    fn import(self, exported: &Exported, n_steps: u64) -> Result<Self, ModelError> {
        let part = |tensors| weights::of_part(return_model::PART, tensors);
        let of_returns = |returns: Learner<ReturnModel>| {
            let [model, training] = [&exported.model, &exported.training].map(part);
            returns.import(&Exported { model, training }, n_steps)
        };
        let returns = self.returns.map(of_returns).transpose()?;
        Ok(Self { model: self.model.import(exported, n_steps)?, returns })
    }

    fn n_parameters(&self) -> usize {
        self.model.n_parameters() + self.returns.as_ref().map_or(0, Stored::n_parameters)
    }
}

/// Options of a Decision Transformer (Chen et al. 2021): its model, which is conditioned on returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DecisionTransformerOptions(pub DecisionTransformerConfig);

/// Options of behaviour cloning: its model, without conditioning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BehaviorCloningConfig(pub ModelConfig);

/// The options that differ between algorithms that learn recorded actions with one model. The rest
/// of [`AlgorithmOptions`] follows from the model.
pub trait LearnsActions {
    /// The model.
    fn learned(&self) -> ModelConfig;

    /// As [`AlgorithmOptions::describe`].
    fn describe(&self) -> String;

    /// Checks that the model has the conditioning of the algorithm.
    ///
    /// # Errors
    /// Names the key with the wrong conditioning.
    fn check_conditioning(&self) -> Result<(), ModelError>;
}

impl<O: LearnsActions> AlgorithmOptions for O {
    fn validate(
        &self,
        observations: &ObservationSpace,
        actions: &ActionSpace,
    ) -> Result<(), ModelError> {
        self.check_conditioning()?;
        self.learned().validate(observations, actions)
    }

    fn describe(&self) -> String {
        LearnsActions::describe(self)
    }

    fn network(&self) -> ActingNetwork<'_> {
        ActingNetwork::Sequence(self.learned())
    }

    fn trainer(&self, task: &Task, job: Job) -> Result<Box<dyn Training>, TrainError> {
        let (observations, actions) = (task.observations.clone(), task.actions.clone());
        let algorithm = SequenceModel { model: self.learned(), observations, actions };
        Ok(Box::new(Trainer::new(algorithm, job)?))
    }
}

/// The policy of a model of actions.
pub(crate) fn policy(
    model: &ModelConfig,
    parts: &PolicyParts<'_>,
) -> Result<Box<dyn Policy>, ModelError> {
    let Task { observations, actions, .. } = parts.task;
    let (mut tensors, mut returns) = (parts.weights.clone(), None);
    if let Some(config) = model.return_model() {
        let return_weights = weights::of_part(return_model::PART, parts.weights);
        returns =
            Some(ReturnModel::from_weights(config, observations, &return_weights, parts.device)?);
        tensors.retain(|name, _| !name.starts_with(&format!("{}.", return_model::PART)));
    }
    let model = Model::from_weights(model, observations, actions, &tensors, parts.device)?;
    let policy = ModelPolicy::new(&model, returns.as_ref(), parts.normalization, parts.play)?;
    Ok(Box::new(policy))
}

impl LearnsActions for DecisionTransformerOptions {
    fn learned(&self) -> ModelConfig {
        ModelConfig::Transformer(self.0.clone())
    }

    fn describe(&self) -> String {
        describe_transformer("Decision Transformer", &self.0)
    }

    fn check_conditioning(&self) -> Result<(), ModelError> {
        if self.0.conditioning.is_none() {
            let expected = "must be set: without returns, use behavior_cloning";
            return Err(config_error("model.conditioning", "none", expected));
        }
        Ok(())
    }
}

impl LearnsActions for BehaviorCloningConfig {
    fn learned(&self) -> ModelConfig {
        self.0.clone()
    }

    fn describe(&self) -> String {
        match &self.0 {
            ModelConfig::Transformer(model) => {
                describe_transformer("transformer cloning behaviour", model)
            }
            ModelConfig::Perceptron(model) => {
                format!("perceptron cloning behaviour, {}", model.head.describe())
            }
        }
    }

    fn check_conditioning(&self) -> Result<(), ModelError> {
        match self.0.conditioning() {
            Some(_) => {
                let expected = "must be none: behaviour cloning is not conditioned on returns";
                Err(config_error("model.conditioning", "set", expected))
            }
            None => Ok(()),
        }
    }
}

/// Description of `what` with its head and its attention.
fn describe_transformer(what: &str, model: &DecisionTransformerConfig) -> String {
    format!("{what}, {}, {}", model.head.describe(), model.attention.describe())
}
