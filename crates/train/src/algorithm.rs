//! [`Algorithm`]: how an agent learns, as the training loop sees it.

use burn::tensor::{Device, Tensor};
use overtone_core::seed::Generator;
use overtone_data::{DataError, Loader, Part, WindowSampler};
use overtone_model::{ModelError, transformer::DropoutSeed, weights::NamedTensors};

use crate::{agent::Agent, config::TrainConfig, error::TrainError};

/// How an agent learns from the data it is given.
///
/// An algorithm owns its step: which networks there are, how many optimizers, which backward
/// passes. The loop, its checkpoints, its metrics and bit-exact resumption know nothing of it.
/// All randomness of a step comes from [`StepAt`], so that a step depends on the state, the
/// batch and the step's number alone.
pub trait Algorithm {
    /// Everything that a step changes: networks, target networks, optimizers.
    type State: Stored;
    /// What one step is computed from.
    type Batch: Default + Send + 'static;

    /// Names of what a step measures beside its loss, such as `accuracy`.
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

    /// The state before the first step.
    ///
    /// # Errors
    /// When the configuration describes none.
    fn init(
        &self,
        config: &TrainConfig,
        device: &Device,
        generator: &mut Generator,
    ) -> Result<Self::State, TrainError>;

    /// Called once, before the first step of a process: data may be kept on the device from
    /// here on.
    ///
    /// # Errors
    /// When the data cannot be read.
    fn prepare(&mut self, config: &TrainConfig, device: &Device) -> Result<(), TrainError>;

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

    /// One step of learning from one batch, whose memory may be taken. From a GPU nothing is
    /// read.
    fn step(
        &self,
        state: &mut Self::State,
        batch: &mut Self::Batch,
        at: &StepAt<'_>,
    ) -> StepFigures;

    /// What is measured on held-out episodes, `[1]`: the mean loss of their actions, without
    /// dropout and without regularisers. `device` tracks no gradients.
    fn held_out_loss(
        &self,
        state: &Self::State,
        batch: &mut Self::Batch,
        device: &Device,
    ) -> Tensor<1>;

    /// Where the data is while training, for people.
    fn memory(&self, device: &Device) -> String;
}

/// A state that can be written to a checkpoint, and goes on from one to the same bits.
pub trait Stored: Sized {
    /// Copies every tensor to the host.
    fn export(&self) -> Exported;

    /// The state that was exported after `n_steps` steps, in the place of this one.
    ///
    /// # Errors
    /// When a tensor is missing or has another shape.
    fn import(self, exported: &Exported, n_steps: u64) -> Result<Self, ModelError>;

    /// Trainable numbers, those of target networks not counted.
    fn n_parameters(&self) -> usize;
}

/// A state on the host, by tensor name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exported {
    /// What playing needs: the weights of the network that acts.
    pub model: NamedTensors,
    /// What only training needs: moments of optimizers, target networks, critics.
    pub training: NamedTensors,
}

/// Where in a run a step is taken.
#[derive(Clone, Copy, Debug)]
pub struct StepAt<'a> {
    /// Steps taken before this one.
    pub step: u64,
    /// By the run's schedule.
    pub learning_rate: f64,
    /// Everything that the step draws derives from it.
    pub seed: DropoutSeed,
    /// Where to compute; it tracks gradients.
    pub device: &'a Device,
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

/// What one step gave; each tensor `[1]`, on the device, without gradients.
#[derive(Clone, Debug)]
pub struct StepFigures {
    /// What was minimised.
    pub loss: Tensor<1>,
    /// The norm of its gradient before clipping.
    pub grad_norm: Tensor<1>,
    /// What [`Algorithm::FIGURES`] names, in that order.
    pub others: Vec<Tensor<1>>,
}
