//! [`SequenceModel`]: logged actions are learned from the contexts they were taken in.
//!
//! With a Decision Transformer that is told returns this is Chen et al. (2021); without, or with
//! a perceptron, it is behaviour cloning.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use overtone_core::{ActionSpace, Normalization, ObservationSpace, Play, Policy, seed::Generator};
use overtone_data::Batch;
use overtone_model::{
    AttentionConfig, DecisionTransformerConfig, Model, ModelConfig, ModelError, ModelPolicy,
    init::Init, weights::NamedTensors,
};
use overtone_train::{
    AdamW, Algorithm, BatchLoss, StepAt, StepFigures, Supervised, TrainConfig, TrainError,
    TrainingData,
};

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
    type State = Supervised<Model>;

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

    fn init(
        &self,
        config: &TrainConfig,
        device: &Device,
        generator: &mut Generator,
    ) -> Result<Self::State, TrainError> {
        let mut init = Init::drawn(device, generator);
        let model = Model::init(&self.model, &self.observations, &self.actions, &mut init)?;
        let model = model.with_form(config.precision.form());
        Ok(Supervised { model, optimizer: AdamW::new(config.optimizer) })
    }

    fn step(
        &self,
        state: &mut Self::State,
        batch: &mut Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
    ) -> StepFigures {
        let loss = state.model.loss(&data.contexts(batch, at.device), Some(at.seed));
        let figures = std::iter::once(loss.action).chain(loss.accuracy).collect();
        state.descend(BatchLoss { total: loss.total, figures }, at.learning_rate)
    }

    fn held_out_loss(
        &self,
        state: &Self::State,
        batch: &mut Batch,
        data: &TrainingData,
        device: &Device,
    ) -> Tensor<1> {
        state.model.valid().loss(&data.contexts(batch, device), None).action
    }
}

/// The policy of a model with these weights, played so.
///
/// # Errors
/// When the weights do not fit the configuration.
pub(crate) fn policy(
    config: &ModelConfig,
    (observations, actions): (&ObservationSpace, &ActionSpace),
    weights: &NamedTensors,
    normalization: Option<&Normalization>,
    play: &Play,
    device: &Device,
) -> Result<Box<dyn Policy>, ModelError> {
    let model = Model::from_weights(config, observations, actions, weights, device)?;
    Ok(Box::new(ModelPolicy::new(&model, normalization, play)?))
}

/// `what`, its head and its attention in words.
pub(crate) fn describe_transformer(what: &str, model: &DecisionTransformerConfig) -> String {
    let attention = match &model.attention {
        AttentionConfig::Softmax => "softmax attention".to_owned(),
        AttentionConfig::Fourier(fourier) => {
            format!("Fourier attention of power {}", fourier.power)
        }
    };
    format!("{what}, {}, {attention}", model.head.describe())
}
