//! [`Learner`]: what the training loop asks of a kind of agent.

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use overtone_core::seed::Generator;
use overtone_data::{DataError, Loader, Part, WindowSampler};
use overtone_model::transformer::DropoutSeed;

use crate::{agent::Agent, config::TrainConfig, error::TrainError};

/// A kind of agent and the data it is trained on.
///
/// The loop, its checkpoints and its metrics know nothing else of either.
pub trait Learner {
    /// What is trained.
    type Model: Module;
    /// What one step is computed from.
    type Batch: Default + Send + 'static;

    /// Names of what a step measures beside its loss, such as `accuracy`. The first is the mean
    /// loss of actions without the head's regulariser: what is measured on held-out episodes.
    const FIGURES: &'static [&'static str];

    /// What a checkpoint must say so that the agent can be played.
    fn agent(&self) -> Agent;

    /// Timesteps of a context.
    fn context_length(&self) -> usize;

    /// Actions learned from a full context; those of its real timesteps unless said otherwise.
    fn labels_per_context(&self) -> usize {
        self.context_length()
    }

    /// What is known of the data.
    fn data(&self) -> DataFacts;

    /// A new model.
    ///
    /// # Errors
    /// When the configuration describes none.
    fn init(&self, device: &Device, generator: &mut Generator) -> Result<Self::Model, TrainError>;

    /// Called once, before the first step: the learner may keep data on the device, and gives
    /// the model the operations that `config` asks for.
    ///
    /// # Errors
    /// When the data cannot be read.
    fn prepare(
        &mut self,
        model: Self::Model,
        config: &TrainConfig,
        device: &Device,
    ) -> Result<Self::Model, TrainError>;

    /// Which contexts of `part` are drawn, and in which order, in the run with seed `run_seed`.
    ///
    /// # Errors
    /// When the data has no context of this kind, or no episode is left to train on or to hold
    /// out.
    fn sampler(
        &self,
        part: Part,
        config: &TrainConfig,
        run_seed: u64,
    ) -> Result<WindowSampler, DataError>;

    /// Starts assembling batches.
    ///
    /// # Errors
    /// When a thread cannot be started.
    fn load(
        &self,
        sampler: WindowSampler,
        batch_size: usize,
    ) -> Result<Loader<Self::Batch>, DataError>;

    /// What a batch is made of.
    fn facts(&self, batch: &Self::Batch) -> BatchFacts;

    /// Asserts that the data is still what was opened: asked before every checkpoint.
    ///
    /// # Errors
    /// When it was changed meanwhile.
    fn check_data(&self) -> Result<(), DataError>;

    /// The loss of one batch, whose memory may be taken; without a seed nothing is dropped.
    /// From a GPU nothing is read.
    fn loss(
        &self,
        model: &Self::Model,
        batch: &mut Self::Batch,
        dropout: Option<DropoutSeed>,
        device: &Device,
    ) -> StepLoss;

    /// Where the data is while training, for people.
    fn memory(&self, device: &Device) -> String;
}

/// What a checkpoint says of the data.
#[derive(Clone, Debug, PartialEq)]
pub struct DataFacts {
    /// Hash of the data, held-out episodes included.
    pub hash: String,
    /// `starter`, `published` or `other`.
    pub kind: String,
    /// Returns of its whole episodes, held-out ones included, ascending.
    pub episode_returns: Vec<f32>,
}

/// What a batch is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchFacts {
    /// Real timesteps.
    pub n_labels: u64,
    /// Contexts drawn up to and with this batch.
    pub n_drawn: u64,
    /// Dataset rows of the contexts' last timesteps.
    pub indices: Vec<u64>,
}

/// What one batch gave; each tensor `[1]`.
pub struct StepLoss {
    /// What is differentiated.
    pub total: Tensor<1>,
    /// What [`Learner::FIGURES`] names, in that order.
    pub figures: Vec<Tensor<1>>,
}
