//! [`TrainingData`]: what an algorithm learns from, and how a batch of it comes to the device.

use std::sync::Arc;

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use overtone_core::{ActionScale, ActionSpace};
use overtone_data::{
    ActionColumn, Batch, BatchActions, BatchObservations, BatchOptions, DataError, Dataset,
    EpisodeReturns, Loader, LoaderConfig, Share, StoredObservations, Subset, WindowSampler,
};
use overtone_model::{
    contexts::{Acted, Contexts, FRAME, Frames, Observed, STACK},
    device::is_cpu,
};

use crate::{config::TrainConfig, error::TrainError, frame_bank::FrameBank};

/// A dataset, the scale of its returns, and its frames where they are on the device.
#[derive(Clone, Debug)]
pub struct TrainingData {
    dataset: Arc<Dataset>,
    return_scale: f32,
    /// Of real-valued actions that are recorded in other units than agents learn them in.
    action_scale: Option<ActionScale>,
    /// All frames, where they are on the device.
    frames: Option<FrameBank>,
    /// The most that they may take there, in GB (10⁹ bytes).
    frames_on_gpu_gb: f64,
}

impl TrainingData {
    /// `dataset`, with returns-to-go and rewards divided by `return_scale`.
    pub fn new(dataset: Arc<Dataset>, return_scale: f32) -> Self {
        Self { dataset, return_scale, action_scale: None, frames: None, frames_on_gpu_gb: 0.0 }
    }

    /// The same data, whose real-valued actions are scaled to [-1, 1] by the bounds of `actions`
    /// as they are drawn. The policy of what learned from it scales them back.
    #[must_use]
    pub fn with_actions_of(self, actions: &ActionSpace) -> Self {
        Self { action_scale: ActionScale::of(actions), ..self }
    }

    /// The dataset.
    pub fn dataset(&self) -> &Arc<Dataset> {
        &self.dataset
    }

    /// What returns-to-go and rewards are divided by.
    pub fn return_scale(&self) -> f32 {
        self.return_scale
    }

    /// What its whole episodes earned, held-out ones included.
    pub fn episode_returns(&self) -> EpisodeReturns {
        self.dataset.episode_returns()
    }

    /// Keeps all frames on the device from here on, whatever their size.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn keep_frames_on(&mut self, device: &Device) -> Result<(), TrainError> {
        if let Some(store) = self.dataset.frames() {
            self.frames = Some(FrameBank::upload(store, device)?);
        }
        Ok(())
    }

    /// Keeps all frames on a GPU if `config` lets them.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(crate) fn prepare(
        &mut self,
        config: &TrainConfig,
        device: &Device,
    ) -> Result<(), TrainError> {
        self.frames_on_gpu_gb = config.frames_on_gpu_gb;
        let Some(store) = self.dataset.frames() else { return Ok(()) };
        let fits = FrameBank::bytes(store) as f64 <= config.frames_on_gpu_gb * 1e9;
        if self.frames.is_none() && !is_cpu(device) && fits {
            self.keep_frames_on(device)?;
        }
        Ok(())
    }

    /// Which contexts of `subset` are drawn, and in which order, in the run with seed `run_seed`.
    ///
    /// # Errors
    /// When the data has no context of this kind, or no episode is left to train on or to hold
    /// out.
    pub fn sampler(
        &self,
        subset: Subset,
        context_length: usize,
        config: &TrainConfig,
        run_seed: u64,
    ) -> Result<WindowSampler, DataError> {
        self.dataset.sampler(subset, config.held_out, config.sampling, context_length, run_seed)
    }

    /// Starts assembling `share` of the batches, with what each step led to where `transitions` is set.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn load(
        &self,
        sampler: WindowSampler,
        batch_size: usize,
        transitions: bool,
        share: Share,
    ) -> Result<Loader, DataError> {
        let contents = BatchOptions {
            frames: self.frames.is_none(),
            return_scale: self.return_scale,
            action_scale: self.action_scale.clone(),
            transitions,
        };
        let config = LoaderConfig { contents, share, ..LoaderConfig::new(batch_size) };
        Loader::new(self.dataset.clone(), sampler, config)
    }

    /// Asserts that the data is still what was opened.
    ///
    /// # Errors
    /// When it was changed meanwhile.
    pub(crate) fn check(&self) -> Result<(), DataError> {
        self.dataset.check_unchanged()
    }

    /// A batch as contexts on the device; its frames are taken out of it. Frames are moved as
    /// bytes, every one once, or found among those that are there already.
    pub fn contexts(&self, batch: &mut Batch, device: &Device) -> Contexts {
        let (rows, time) = (batch.batch, batch.context_length);
        let observations = self.observed(&mut batch.observations, [rows, time], device);
        let actions = match &batch.actions {
            BatchActions::Discrete(ids) => Acted::Discrete(Tensor::from_data(
                TensorData::new(ids.clone(), [rows, time]),
                device,
            )),
            BatchActions::Continuous(numbers) => {
                let width = numbers.len() / (rows * time).max(1);
                let numbers = TensorData::new(numbers.clone(), [rows, time, width]);
                Acted::Continuous(Tensor::from_data(numbers, device))
            }
        };
        Contexts {
            observations,
            actions,
            returns_to_go: Tensor::from_data(
                TensorData::new(batch.returns_to_go.clone(), [rows, time]),
                device,
            ),
            timesteps: batch.timesteps.clone(),
            n_padding: batch.n_real.iter().map(|&n| time - n as usize).collect(),
            best: batch.best.clone(),
        }
    }

    /// Where the steps of a batch led, on the device; `None` where that was not asked for.
    pub fn transitions(&self, batch: &mut Batch, device: &Device) -> Option<TransitionTensors> {
        let shape = [batch.batch, batch.context_length];
        let transitions = batch.transitions.as_mut()?;
        let next = self.observed(&mut transitions.next_observations, shape, device);
        let column = |values: Vec<f32>| Tensor::from_data(TensorData::new(values, shape), device);
        let flags = |flags: &[bool]| column(flags.iter().map(|&flag| f32::from(flag)).collect());
        Some(TransitionTensors {
            rewards: column(transitions.rewards.clone()),
            terminated: flags(&transitions.terminated),
            next_is_known: flags(&transitions.next_is_known),
            next_observations: next,
        })
    }

    fn observed(
        &self,
        observations: &mut BatchObservations,
        [rows, time]: [usize; 2],
        device: &Device,
    ) -> Observed {
        match observations {
            BatchObservations::Frames { pixels, rows: frame_rows } => {
                Observed::Frames(match &self.frames {
                    Some(bank) => bank.stacks(frame_rows, [rows, time]),
                    None => {
                        let shape = [rows, time + STACK - 1, FRAME, FRAME];
                        let pixels = TensorData::new(std::mem::take(pixels), shape);
                        let pixels = Tensor::<4, Int>::from_data(pixels, (device, DType::U8));
                        Frames::Windows(pixels)
                    }
                })
            }
            BatchObservations::Vectors(numbers) => {
                let width = numbers.len() / (rows * time).max(1);
                let numbers = TensorData::new(numbers.clone(), [rows, time, width]);
                Observed::Vectors(Tensor::from_data(numbers, device))
            }
        }
    }

    /// Where the data is while training, for people.
    pub(crate) fn memory(&self, device: &Device) -> String {
        let StoredObservations::Vectors { width, .. } = self.dataset.observations() else {
            let gb = self.dataset.frames().map_or(0, FrameBank::bytes) as f64 / 1e9;
            return match &self.frames {
                Some(_) => format!("frames: {gb:.2} GB, all on the device"),
                None if is_cpu(device) => format!("frames: {gb:.2} GB, read where they lie"),
                None => format!(
                    "frames: {gb:.2} GB, sent to the device batch by batch: more than \
                     train.frames_on_gpu_gb={}",
                    self.frames_on_gpu_gb
                ),
            };
        };
        let acted = match self.dataset.actions() {
            ActionColumn::Continuous { width, .. } => *width,
            ActionColumn::Discrete { .. } => 1,
        };
        // Beside observations and actions, a reward and a return-to-go.
        let mb = (self.dataset.n_transitions() * (width + acted + 2) * 4) as f64 / 1e6;
        format!("data: {mb:.1} MB, in memory")
    }
}

/// Where the steps of a batch led, on the device.
#[derive(Clone, Debug)]
pub struct TransitionTensors {
    /// `[batch, time]`, divided by the return scale.
    pub rewards: Tensor<2>,
    /// `[batch, time]`: 1 where the task ended with this step.
    pub terminated: Tensor<2>,
    /// `[batch, time]`: 1 where the next observation is in the recording.
    pub next_is_known: Tensor<2>,
    /// What was seen one step later, laid out as the contexts' observations; it means nothing
    /// where it is not known.
    pub next_observations: Observed,
}
