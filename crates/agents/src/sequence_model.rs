//! [`SequenceModel`]: logged actions are learned from the contexts they were taken in.
//!
//! With a Decision Transformer that is told returns this is Chen et al. (2021); without, or with
//! a perceptron, it is behaviour cloning; and with a perceptron that is told returns it is
//! [RvS](crate::rvs).

use burn::tensor::{Device, Tensor};
use overtone_core::{ActionSpace, ObservationSpace, Policy, Task, seed::Generator};
use overtone_data::Batch;
use overtone_model::{
    Conditioning, DecisionTransformerConfig, Model, ModelConfig, ModelError, ModelPolicy,
    PerceptronConfig, error::config_error, head::HeadConfig, init::Init,
};
use overtone_train::{
    Algorithm, BatchLoss, Checkpoint, Gradient, Job, Learner, PartFigures, Parts, StepAt,
    StepFigures, TrainConfig, TrainError, Trainer, Training, TrainingData,
};
use serde::{Deserialize, Serialize};

use crate::options::{AlgorithmOptions, Restored};

/// Learns logged actions.
#[derive(Clone, Debug)]
pub struct SequenceModel {
    /// The model.
    pub model: ModelConfig,
    /// What it sees.
    pub observations: ObservationSpace,
    /// What it does.
    pub actions: ActionSpace,
}

impl Algorithm for SequenceModel {
    type State = Learner<Model>;

    /// For a list of actions: nats per action, and the share of logged actions that are the most
    /// probable one. For real-valued ones, in the head's own unit: squared error, averaged over
    /// an action's numbers, or nats, added up over them.
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

    fn best_percents(&self) -> &[f32] {
        self.model.best_percents()
    }

    fn init(
        &self,
        config: &TrainConfig,
        device: &Device,
        generator: &mut Generator,
    ) -> Result<Self::State, TrainError> {
        let mut init = Init::drawn(device, generator);
        let model = Model::init(&self.model, &self.observations, &self.actions, &mut init)?;
        let model = model.with_form(config.precision.form());
        Ok(Learner::new(model, config))
    }

    fn step(
        &self,
        state: &mut Self::State,
        batch: &mut Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
    ) -> StepFigures {
        state.descend(loss_of(state, batch, data, at), at.learning_rate)
    }

    fn parts(&self) -> Option<&dyn Parts<Self::State>> {
        Some(self)
    }

    fn held_out_loss(
        &self,
        state: &Self::State,
        batch: &mut Batch,
        data: &TrainingData,
        device: &Device,
    ) -> Option<Tensor<1>> {
        Some(state.acting().loss(&data.contexts(batch, device), None).action)
    }
}

impl Parts<Learner<Model>> for SequenceModel {
    fn part(
        &self,
        state: &Learner<Model>,
        batch: &mut Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
    ) -> PartFigures {
        state.part(loss_of(state, batch, data, at))
    }

    fn descend(
        &self,
        state: &mut Learner<Model>,
        gradient: Gradient,
        learning_rate: f64,
    ) -> Tensor<1> {
        state.descend_along(gradient, learning_rate)
    }
}

/// The loss of a batch, with dropout.
fn loss_of(
    state: &Learner<Model>,
    batch: &mut Batch,
    data: &TrainingData,
    at: &StepAt<'_>,
) -> BatchLoss {
    let loss = state.network.loss(&data.contexts(batch, at.device), Some(at.seed));
    let figures = std::iter::once(loss.action).chain(loss.accuracy).collect();
    BatchLoss { total: loss.total, figures }
}

/// Options of a Decision Transformer (Chen et al. 2021): its model, which is told returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DecisionTransformerOptions(pub DecisionTransformerConfig);

/// Options of behaviour cloning: its model, which is told none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BehaviorCloningConfig(pub ModelConfig);

/// Options of an algorithm that learns logged actions with one model: where two of them differ.
/// The rest of [`AlgorithmOptions`] follows from the model.
pub trait LearnsActions {
    /// The model.
    fn learned(&self) -> ModelConfig;

    /// Whether it is told returns.
    fn is_told_returns(&self) -> bool;

    /// As [`AlgorithmOptions::describe`].
    fn describe(&self) -> String;

    /// Checks that the model is told what the algorithm tells it.
    ///
    /// # Errors
    /// Names the key that says otherwise.
    fn check_told(&self) -> Result<(), ModelError>;
}

impl<O: LearnsActions> AlgorithmOptions for O {
    fn validate(
        &self,
        observations: &ObservationSpace,
        actions: &ActionSpace,
    ) -> Result<(), ModelError> {
        self.check_told()?;
        self.learned().validate(observations, actions)
    }

    fn describe(&self) -> String {
        LearnsActions::describe(self)
    }

    fn model(&self) -> Option<ModelConfig> {
        Some(self.learned())
    }

    fn reads_returns(&self) -> bool {
        self.is_told_returns()
    }

    fn has_distribution(&self) -> bool {
        !matches!(self.learned().head(), HeadConfig::Tanh(_) | HeadConfig::Pointwise(_))
    }

    fn trainer(
        &self,
        task: &Task,
        job: Job,
        resume: Option<&Checkpoint>,
    ) -> Result<Box<dyn Training>, TrainError> {
        let (observations, actions) = (task.observations.clone(), task.actions.clone());
        let algorithm = SequenceModel { model: self.learned(), observations, actions };
        Ok(Box::new(Trainer::new(algorithm, job, resume)?))
    }

    fn policy(&self, of: &Restored<'_>) -> Result<Box<dyn Policy>, ModelError> {
        policy_of(&self.learned(), of)
    }
}

/// The policy of a model of actions.
pub(crate) fn policy_of(
    model: &ModelConfig,
    of: &Restored<'_>,
) -> Result<Box<dyn Policy>, ModelError> {
    let Task { observations, actions, .. } = of.task;
    let model = Model::from_weights(model, observations, actions, of.weights, of.device)?;
    Ok(Box::new(ModelPolicy::new(&model, of.normalization, of.play)?))
}

impl LearnsActions for DecisionTransformerOptions {
    fn learned(&self) -> ModelConfig {
        ModelConfig::Transformer(self.0.clone())
    }

    fn is_told_returns(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        describe_transformer("Decision Transformer", &self.0)
    }

    fn check_told(&self) -> Result<(), ModelError> {
        if self.0.conditioning == Conditioning::None {
            let expected = "a Decision Transformer is told returns; behaviour cloning is not";
            return Err(config_error("model.conditioning", "none", expected));
        }
        Ok(())
    }
}

impl LearnsActions for BehaviorCloningConfig {
    fn learned(&self) -> ModelConfig {
        self.0.clone()
    }

    fn is_told_returns(&self) -> bool {
        false
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

    fn check_told(&self) -> Result<(), ModelError> {
        match &self.0 {
            ModelConfig::Transformer(model) if model.conditioning != Conditioning::None => {
                let told = format!("{:?}", model.conditioning).to_lowercase();
                let expected = "behaviour cloning is told no returns; a Decision Transformer is";
                Err(config_error("model.conditioning", told, expected))
            }
            ModelConfig::Perceptron(PerceptronConfig { average_return: Some(_), .. }) => {
                let expected = "behaviour cloning is told no returns; RvS is";
                Err(config_error("average_return", "given", expected))
            }
            _ => Ok(()),
        }
    }
}

/// `what`, its head and its attention in words.
fn describe_transformer(what: &str, model: &DecisionTransformerConfig) -> String {
    format!("{what}, {}, {}", model.head.describe(), model.attention.describe())
}
