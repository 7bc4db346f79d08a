//! [`Algorithm`]: a learning algorithm, as the training loop sees it.

use burn::tensor::{Device, Tensor};
use overtone_core::seed::Generator;
use overtone_data::{Batch, Lookahead};
use overtone_model::{Inputs, ModelError, Sections, weights::NamedTensors};

use crate::{
    config::{ScheduleKind, TrainConfig},
    error::TrainError,
    gradient::Gradient,
    shortened::Shortened,
    training_data::TrainingData,
};

/// A learning algorithm.
///
/// An algorithm owns its step: its networks, its optimizers and its backward passes. The loop, its
/// checkpoints, its metrics and bit-exact resumption do not depend on them. All randomness of a
/// step comes from [`StepAt`], so a step depends only on the state, the batch and the step's
/// number.
pub trait Algorithm {
    /// Everything that a step changes: networks, target networks, optimizers.
    type State: Stored;

    /// Names of the figures that a step measures in addition to its loss, such as `accuracy`.
    fn figures(&self) -> &'static [&'static str];

    /// Number of timesteps of a context: one by default, a single step.
    fn context_length(&self) -> usize {
        1
    }

    /// Number of action labels in a full context; by default, the number of its real timesteps.
    fn labels_per_context(&self) -> usize {
        self.context_length()
    }

    /// How far a step's [`TrainingData::transitions`] look, if it learns values. The error of a value has
    /// a target that the networks compute, and it grows while they learn the scale of returns, so
    /// the loss on held-out episodes selects no checkpoint.
    fn lookahead(&self) -> Option<Lookahead> {
        None
    }

    /// Limits the counts of updates in its options to a tenth of a run of `n_updates`
    /// ([`Shortened::limit`]), so that a short run reaches them. Returns those that change.
    fn shorten(&mut self, _n_updates: u64) -> Vec<Shortened> {
        Vec::new()
    }

    /// The state before the first step.
    ///
    /// # Errors
    /// When the configuration is not valid.
    fn init(
        &self,
        config: &TrainConfig,
        device: &Device,
        generator: &mut Generator,
    ) -> Result<Self::State, TrainError>;

    /// One training step on one batch of `data`; the step may take the batch's memory. It does not
    /// read from a GPU.
    fn step(
        &self,
        state: &mut Self::State,
        batch: &mut Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
    ) -> StepFigures;

    /// The step on a batch that is cut into parts; `None` if a step is more than the descent of one
    /// gradient.
    fn parts(&self) -> Option<&dyn Parts<Self::State>> {
        None
    }

    /// The step in a form that can be recorded; `None` if the algorithm or its configuration has
    /// none.
    fn recorded(&self) -> Option<&dyn Recorded<Self::State>> {
        None
    }

    /// Top percents of the dataset by return: half of the contexts are drawn from these episodes
    /// and conditioned on their top percent.
    fn top_percents(&self) -> &[f32] {
        &[]
    }

    /// The loss on held-out episodes, `[1]`: a mean without dropout and without regularisers.
    /// `None` if the batch has no data for it. `device` does not track gradients.
    fn held_out_loss(
        &self,
        state: &Self::State,
        batch: &mut Batch,
        data: &TrainingData,
        device: &Device,
    ) -> Option<Tensor<1>>;
}

/// Number of action labels in a batch; in contexts with padding, only real timesteps count, and
/// timesteps whose [weight](Batch::step_weights) is 0 do not.
pub(crate) fn n_labels(algorithm: &impl Algorithm, batch: &Batch) -> u64 {
    let most = algorithm.labels_per_context();
    let n_real = batch.n_real.iter().map(|&n_real| (n_real as usize).min(most));
    if batch.step_weights.is_empty() {
        return n_real.map(|n| n as u64).sum();
    }
    let contexts = n_real.zip(batch.step_weights.chunks_exact(batch.context_length));
    let of_context = |(n, weights): (usize, &[f32])| {
        weights.iter().rev().take(n).filter(|&&weight| weight > 0.0).count() as u64
    };
    contexts.map(of_context).sum()
}

/// A step in two halves: the gradients of the parts of a batch, and the descent of their sum, which
/// the caller computes.
pub trait Parts<S> {
    /// Loss, figures and gradient of one part of a batch. It does not read from a GPU.
    fn part(
        &self,
        state: &S,
        batch: &mut Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
    ) -> PartFigures;

    /// One step down the whole batch's gradient; returns its norm before clipping, `[1]`.
    fn descend(&self, state: &mut S, gradient: Gradient, learning_rate: f64) -> Tensor<1>;
}

/// A step in two halves: the host sends inputs, and the device computes from them alone.
///
/// On a GPU that records its work, the second half is recorded once for each layout of inputs, and
/// replayed from then on.
pub trait Recorded<S> {
    /// Sends everything that differs from step to step. Returns `false` if this batch has no
    /// recorded step.
    fn send(
        &self,
        state: &S,
        batch: &Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
        to: &mut Sections,
    ) -> bool;

    /// One step on these inputs. The state's tensors keep their memory from the first such step on,
    /// and nothing else is sent to the device or read from it.
    fn compute(&self, state: &mut S, inputs: &Inputs, data: &TrainingData) -> StepFigures;

    /// Counts a step that was computed or replayed. What it changes keeps its memory.
    fn counted(&self, state: &mut S, at: &StepAt<'_>);

    /// The memory that a step changes.
    fn memory<'s>(&self, state: &'s mut S) -> Vec<&'s mut Tensor<1>>;
}

/// Result of one part of a batch: means over its labels.
#[derive(Clone, Debug)]
pub struct PartFigures {
    /// The minimised loss, `[1]`, without gradients.
    pub loss: Tensor<1>,
    /// The figures of [`Algorithm::figures`], also `[1]` and without gradients.
    pub others: Vec<Tensor<1>>,
    /// The gradient of the loss.
    pub gradient: Gradient,
}

/// Source of a checkpoint's two tensor files. They are written one after the other, so that only
/// one of them is on the host at a time.
pub trait Export {
    /// Copies the tensors for acting to the host: see [`Exported::model`].
    fn export_model(&self) -> NamedTensors;

    /// Copies the tensors that only training needs to the host: see [`Exported::training`].
    fn export_training(&self) -> NamedTensors;
}

/// A state that can be stored in a checkpoint, and resumes from it to the same bits.
pub trait Stored: Export + Sized {
    /// This state with the exported networks; its optimizers do not change.
    ///
    /// # Errors
    /// When a tensor is missing or has another shape.
    fn begin(self, exported: &Exported) -> Result<Self, ModelError>;

    /// This state replaced by the one that was exported after `n_steps` steps.
    ///
    /// # Errors
    /// When a tensor is missing or has another shape.
    fn import(self, exported: &Exported, n_steps: u64) -> Result<Self, ModelError>;

    /// Number of trainable parameters, without target networks.
    fn n_parameters(&self) -> usize;
}

/// A state on the host, by tensor name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exported {
    /// The tensors for acting: the weights of the acting network.
    pub model: NamedTensors,
    /// The tensors that only training needs: moments of optimizers, target networks, critics.
    pub training: NamedTensors,
}

impl Export for Exported {
    fn export_model(&self) -> NamedTensors {
        self.model.clone()
    }

    fn export_training(&self) -> NamedTensors {
        self.training.clone()
    }
}

/// Position of a step in its run, with the settings of the step.
#[derive(Clone, Copy, Debug)]
pub struct StepAt<'a> {
    /// Steps taken before this one.
    pub step: u64,
    /// Steps of the whole run.
    pub n_steps: u64,
    /// The learning rate of the run's schedule.
    pub learning_rate: f64,
    /// The run's schedule. An algorithm with its own decay omits that decay if this schedule
    /// decays.
    pub schedule: ScheduleKind,
    /// Seed of all random numbers of the step.
    pub seed: u64,
    /// Device of the computation; it tracks gradients.
    pub device: &'a Device,
}

/// Result of one step; each tensor is `[1]`, on the device, without gradients.
#[derive(Clone, Debug)]
pub struct StepFigures {
    /// The minimised loss.
    pub loss: Tensor<1>,
    /// The norm of its gradient before clipping.
    pub grad_norm: Tensor<1>,
    /// The figures of [`Algorithm::figures`], in that order; NaN if this step does not have the
    /// figure.
    pub others: Vec<Tensor<1>>,
}
