//! [`Algorithm`]: how an agent learns, as the training loop sees it.

use burn::tensor::{Device, Tensor};
use overtone_core::seed::Generator;
use overtone_data::Batch;
use overtone_model::{DropoutSeed, ModelError, weights::NamedTensors};

use crate::{
    config::{ScheduleKind, TrainConfig},
    error::TrainError,
    gradient::Gradient,
    training_data::TrainingData,
};

/// How an agent learns from the data it is given.
///
/// An algorithm owns its step: which networks there are, how many optimizers, which backward
/// passes. The loop, its checkpoints, its metrics and bit-exact resumption know nothing of it.
/// All randomness of a step comes from [`StepAt`], so that a step depends on the state, the
/// batch and the step's number alone.
pub trait Algorithm {
    /// Everything that a step changes: networks, target networks, optimizers.
    type State: Stored;

    /// Names of what a step measures beside its loss, such as `accuracy`.
    fn figures(&self) -> &'static [&'static str];

    /// Timesteps of a context.
    fn context_length(&self) -> usize;

    /// Actions learned from a full context; those of its real timesteps unless said otherwise.
    fn labels_per_context(&self) -> usize {
        self.context_length()
    }

    /// Whether a step asks for [`TrainingData::transitions`].
    fn reads_transitions(&self) -> bool {
        false
    }

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

    /// One step of learning from one batch of `data`, whose memory may be taken. From a GPU
    /// nothing is read.
    fn step(
        &self,
        state: &mut Self::State,
        batch: &mut Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
    ) -> StepFigures;

    /// How a step is taken whose batch is cut into parts; `None` where a step is more than the
    /// descent of one gradient.
    fn parts(&self) -> Option<&dyn Parts<Self::State>> {
        None
    }

    /// Top percents of episodes: half of the contexts are drawn from these, and say so.
    fn top_percents(&self) -> &[f32] {
        &[]
    }

    /// What is measured on held-out episodes, `[1]`: a mean loss without dropout and without
    /// regularisers; `None` where the batch has nothing to measure it on. `device` tracks no
    /// gradients.
    fn held_out_loss(
        &self,
        state: &Self::State,
        batch: &mut Batch,
        data: &TrainingData,
        device: &Device,
    ) -> Option<Tensor<1>>;

    /// Whether the checkpoint where it is lowest is the best: whether every checkpoint is measured
    /// against the same. The error of a value against one that the networks give themselves is not:
    /// it grows while they learn what returns are.
    fn held_out_selects(&self) -> bool {
        true
    }
}

/// Actions learned from a batch, of contexts with padding those of real timesteps.
pub(crate) fn n_labels(algorithm: &impl Algorithm, batch: &Batch) -> u64 {
    let most = algorithm.labels_per_context() as u64;
    batch.n_real.iter().map(|&n_real| (n_real as u64).min(most)).sum()
}

/// A step in two halves: the gradients of the parts of a batch, whose sum somebody else forms, and
/// the descent of that.
pub trait Parts<S> {
    /// What one part of a batch gives. From a GPU nothing is read.
    fn part(
        &self,
        state: &S,
        batch: &mut Batch,
        data: &TrainingData,
        at: &StepAt<'_>,
    ) -> PartFigures;

    /// One step down the whole batch's gradient; gives its norm before clipping, `[1]`.
    fn descend(&self, state: &mut S, gradient: Gradient, learning_rate: f64) -> Tensor<1>;
}

/// What one part of a batch gave: means over its labels.
#[derive(Clone, Debug)]
pub struct PartFigures {
    /// What is minimised, `[1]`, without gradients.
    pub loss: Tensor<1>,
    /// What [`Algorithm::figures`] names, likewise.
    pub others: Vec<Tensor<1>>,
    /// The gradient of the loss.
    pub gradient: Gradient,
}

/// What a checkpoint's two files of tensors are written from, one after the other, so that only
/// one of them is on the host at a time.
pub trait Export {
    /// Copies what playing needs to the host: see [`Exported::model`].
    fn export_model(&self) -> NamedTensors;

    /// Copies what only training needs to the host: see [`Exported::training`].
    fn export_training(&self) -> NamedTensors;
}

/// A state that can be written to a checkpoint, and goes on from one to the same bits.
pub trait Stored: Export + Sized {
    /// The networks that were exported in the place of this state's; its optimizers stay as they
    /// are.
    ///
    /// # Errors
    /// When a tensor is missing or has another shape.
    fn begin(self, exported: &Exported) -> Result<Self, ModelError>;

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

impl Export for Exported {
    fn export_model(&self) -> NamedTensors {
        self.model.clone()
    }

    fn export_training(&self) -> NamedTensors {
        self.training.clone()
    }
}

/// Where in a run a step is taken.
#[derive(Clone, Copy, Debug)]
pub struct StepAt<'a> {
    /// Steps taken before this one.
    pub step: u64,
    /// Steps of the whole run.
    pub n_steps: u64,
    /// By the run's schedule.
    pub learning_rate: f64,
    /// The run's schedule. An algorithm with a decay of its own leaves it out where this one falls.
    pub schedule: ScheduleKind,
    /// Everything that the step draws derives from it.
    pub seed: DropoutSeed,
    /// Where to compute; it tracks gradients.
    pub device: &'a Device,
}

/// What one step gave; each tensor `[1]`, on the device, without gradients.
#[derive(Clone, Debug)]
pub struct StepFigures {
    /// What was minimised.
    pub loss: Tensor<1>,
    /// The norm of its gradient before clipping.
    pub grad_norm: Tensor<1>,
    /// What [`Algorithm::figures`] names, in that order; NaN where this step has no such figure.
    pub others: Vec<Tensor<1>>,
}
