//! [`TrainingData`]: the data of an algorithm, and the transfer of its batches to the device.

use std::sync::Arc;

use burn::tensor::{DType, Device, Tensor, TensorData};
use overtone_core::{ActionScale, ActionSpace};
use overtone_data::{
    ActionColumn, Batch, BatchActions, BatchObservations, BatchOptions, DataError, Dataset,
    EpisodeReturns, Loader, LoaderConfig, Lookahead, Share, StoredObservations, Subset,
    Transitions, WindowSampler,
};
use overtone_model::{
    Inputs, Sections, Stored,
    contexts::{Acted, Contexts, FRAME, Observed, STACK},
    device::is_cpu,
    head::penalty,
};

use crate::{config::TrainConfig, error::TrainError, frame_bank::FrameBank};

/// A dataset, the scale of its returns, and its frames if they are on the device.
#[derive(Clone, Debug)]
pub struct TrainingData {
    dataset: Arc<Dataset>,
    return_scale: f32,
    /// Present if the units of the recorded continuous actions differ from those of learning.
    action_scale: Option<ActionScale>,
    /// All frames, if they are on the device.
    frames: Option<FrameBank>,
    /// Maximum size of the frames there, in GB (10⁹ bytes).
    frames_on_gpu_gb: f64,
}

impl TrainingData {
    /// `dataset`, with returns-to-go and rewards divided by `return_scale`.
    pub fn new(dataset: Arc<Dataset>, return_scale: f32) -> Self {
        Self { dataset, return_scale, action_scale: None, frames: None, frames_on_gpu_gb: 0.0 }
    }

    /// The same data with continuous actions scaled to [-1, 1] by the bounds of `actions` when they
    /// are drawn. The policy of the trained agent scales them back.
    #[must_use]
    pub fn with_actions_of(self, actions: &ActionSpace) -> Self {
        Self { action_scale: ActionScale::of(actions), ..self }
    }

    /// The dataset.
    pub fn dataset(&self) -> &Arc<Dataset> {
        &self.dataset
    }

    /// Divisor of returns-to-go and rewards.
    pub fn return_scale(&self) -> f32 {
        self.return_scale
    }

    /// Returns of its whole episodes, including held-out ones.
    pub fn episode_returns(&self) -> EpisodeReturns {
        self.dataset.episode_returns()
    }

    /// Keeps all frames on the device from now on, regardless of their size.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn keep_frames_on(&mut self, device: &Device) -> Result<(), TrainError> {
        if let Some(store) = self.dataset.frames() {
            self.frames = Some(FrameBank::upload(store, device)?);
        }
        Ok(())
    }

    /// Keeps all frames on a GPU if `config` allows it.
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

    /// The contexts of `subset` in the order in which the run with seed `run_seed` draws them.
    ///
    /// # Errors
    /// When the data has no context of this kind, or no episode is left for training or for holding
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

    /// Starts assembling `share` of the batches, with transitions that look as far as
    /// `transitions`.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn load(
        &self,
        sampler: WindowSampler,
        batch_size: usize,
        transitions: Option<Lookahead>,
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

    /// Asserts that the data has not changed since it was opened.
    ///
    /// # Errors
    /// When it has changed.
    pub(crate) fn check(&self) -> Result<(), DataError> {
        self.dataset.check_unchanged()
    }

    /// A batch as contexts on the device; its frames are taken out of it. Frames are moved as
    /// bytes, each only once, or taken from the frames on the device.
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
            step_weights: batch.step_weights.clone(),
            penalties: penalties_of(&batch.allowed_actions, [rows, time], device),
            top_percent_idx: batch.top_percent_idx.clone(),
            stored: None,
        }
    }

    /// Sends a batch for [`received`](Self::received), and its transitions for
    /// [`received_transitions`](Self::received_transitions) if it has any. Returns `false` if a step on this data has
    /// no recorded form, because its frames are not on the device.
    pub fn send(&self, batch: &Batch, to: &mut Sections) -> bool {
        let shape @ [rows, time] = [batch.batch, batch.context_length];
        let with_width = |n: usize| [rows, time, n / (rows * time).max(1)];
        match &batch.observations {
            BatchObservations::Frames { .. } if self.frames.is_none() => return false,
            BatchObservations::Frames { rows: frame_rows, .. } => {
                let places = FrameBank::places(frame_rows, time);
                to.ints("frames", &[rows * time * STACK], places);
            }
            BatchObservations::Vectors(numbers) => {
                to.floats("observations", &with_width(numbers.len()), numbers.iter().copied());
            }
        }
        match &batch.actions {
            BatchActions::Discrete(ids) => {
                to.ints("action_ids", &shape, ids.iter().copied());
            }
            BatchActions::Continuous(numbers) => {
                to.floats("actions", &with_width(numbers.len()), numbers.iter().copied());
            }
        }
        to.floats("returns_to_go", &shape, batch.returns_to_go.iter().copied());
        let allowed = &batch.allowed_actions;
        if !allowed.is_empty() {
            to.floats(
                "penalties",
                &with_width(allowed.len()),
                allowed.iter().copied().map(penalty),
            );
        }
        if let Some(transitions) = &batch.transitions {
            self.send_transitions(transitions, batch, to);
        }
        true
    }

    fn send_transitions(&self, transitions: &Transitions, batch: &Batch, to: &mut Sections) {
        let shape @ [rows, time] = [batch.batch, batch.context_length];
        let with_width = |n: usize| [rows, time, n / (rows * time).max(1)];
        match &transitions.next_observations {
            BatchObservations::Frames { rows: frame_rows, .. } => {
                let places = FrameBank::places(frame_rows, time);
                to.ints("next_frames", &[rows * time * STACK], places);
            }
            BatchObservations::Vectors(numbers) => {
                let shape = with_width(numbers.len());
                to.floats("next_observations", &shape, numbers.iter().copied());
            }
        }
        to.floats("rewards", &shape, transitions.rewards.iter().copied());
        to.floats("continues", &shape, transitions.continues());
        let flags = |flags: &[bool]| flags.iter().copied().map(f32::from).collect::<Vec<_>>();
        to.floats("terminated", &shape, flags(&transitions.terminated));
        to.floats("next_is_known", &shape, flags(&transitions.next_is_known));
        if !batch.step_weights.is_empty() {
            to.floats("step_weights", &shape, batch.step_weights.iter().copied());
        }
        let allowed = &transitions.next_allowed_actions;
        if !allowed.is_empty() {
            let penalties = allowed.iter().copied().map(penalty);
            to.floats("next_penalties", &with_width(allowed.len()), penalties);
        }
    }

    /// Contexts that were [sent](Self::send), with what a model made of their places.
    ///
    /// # Panics
    /// When they were not sent.
    pub fn received(&self, inputs: &Inputs) -> Contexts {
        let Some(returns_to_go) = inputs.floats("returns_to_go") else { panic!("not sent") };
        let observations = match (inputs.ints("frames"), &self.frames) {
            (Some(places), Some(bank)) => Observed::Frames(bank.gather(places)),
            _ => Observed::Vectors(inputs.floats("observations").unwrap_or_else(|| panic!("sent"))),
        };
        let actions = match inputs.ints("action_ids") {
            Some(ids) => Acted::Discrete(ids),
            None => Acted::Continuous(inputs.floats("actions").unwrap_or_else(|| panic!("sent"))),
        };
        Contexts {
            observations,
            actions,
            returns_to_go,
            timesteps: Vec::new(),
            n_padding: Vec::new(),
            step_weights: Vec::new(),
            penalties: inputs.floats("penalties"),
            top_percent_idx: Vec::new(),
            stored: Stored::of(inputs),
        }
    }

    /// Transitions that were [sent](Self::send), without gradients.
    ///
    /// # Panics
    /// When they were not sent.
    pub fn received_transitions(&self, inputs: &Inputs) -> TransitionTensors {
        let column = |name| inputs.plain_floats(name);
        let sent = |name| column(name).unwrap_or_else(|| panic!("{name} were not sent"));
        let next_observations = match (inputs.ints("next_frames"), &self.frames) {
            (Some(places), Some(bank)) => Observed::Frames(bank.gather(places)),
            _ => match inputs.plain_floats("next_observations") {
                Some(vectors) => Observed::Vectors(vectors),
                None => panic!("next observations were not sent"),
            },
        };
        TransitionTensors {
            rewards: sent("rewards"),
            continues: sent("continues"),
            terminated: sent("terminated"),
            next_is_known: sent("next_is_known"),
            step_weights: column("step_weights"),
            next_observations,
            next_penalties: inputs.plain_floats("next_penalties"),
        }
    }

    /// The transitions of a batch on the device; `None` if the batch has none.
    pub fn transitions(&self, batch: &mut Batch, device: &Device) -> Option<TransitionTensors> {
        let shape = [batch.batch, batch.context_length];
        let transitions = batch.transitions.as_mut()?;
        let next = self.observed(&mut transitions.next_observations, shape, device);
        let next_penalties = penalties_of(&transitions.next_allowed_actions, shape, device);
        let column = |values: Vec<f32>| Tensor::from_data(TensorData::new(values, shape), device);
        let flags = |flags: &[bool]| column(flags.iter().map(|&flag| f32::from(flag)).collect());
        Some(TransitionTensors {
            rewards: column(transitions.rewards.clone()),
            continues: column(transitions.continues()),
            terminated: flags(&transitions.terminated),
            next_is_known: flags(&transitions.next_is_known),
            step_weights: (!batch.step_weights.is_empty())
                .then(|| column(batch.step_weights.clone())),
            next_observations: next,
            next_penalties,
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
                        Tensor::from_data(pixels, (device, DType::U8))
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

    /// Location of the data during training, for messages.
    pub(crate) fn memory(&self, device: &Device) -> String {
        let StoredObservations::Vectors { width, .. } = self.dataset.observations() else {
            let gb = self.dataset.frames().map_or(0, FrameBank::bytes) as f64 / 1e9;
            return match &self.frames {
                Some(_) => format!("frames: {gb:.2} GB, all on the device"),
                None if is_cpu(device) => format!("frames: {gb:.2} GB, read from the dataset"),
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
        // In addition to observations and actions, a reward and a return-to-go.
        let mb = (self.dataset.n_transitions() * (width + acted + 2) * 4) as f64 / 1e6;
        format!("data: {mb:.1} MB, in memory")
    }
}

/// The transitions of a batch, on the device.
#[derive(Clone, Debug)]
pub struct TransitionTensors {
    /// `[batch, time]`, the rewards of the [`m`](Lookahead) steps, divided by the return scale.
    pub rewards: Tensor<2>,
    /// `[batch, time]`: 0 if the task ended with the last of them, else `γ^(m − 1)`.
    pub continues: Tensor<2>,
    /// `[batch, time]`: 1 if the task ended with the last of them.
    pub terminated: Tensor<2>,
    /// `[batch, time]`: 1 if the dataset contains the next observation.
    pub next_is_known: Tensor<2>,
    /// `[batch, time]`: the factor of each step's loss; `None`: all are 1.
    pub step_weights: Option<Tensor<2>>,
    /// The observation `m` steps later, laid out like the contexts' observations; undefined where it
    /// is not known.
    pub next_observations: Observed,
    /// As [`Contexts::penalties`], `m` steps later.
    pub next_penalties: Option<Tensor<3>>,
}

/// The penalties of actions, `[rows, time, actions]`; `None` without masks.
fn penalties_of(allowed: &[bool], [rows, time]: [usize; 2], device: &Device) -> Option<Tensor<3>> {
    let n_actions = allowed.len().checked_div(rows * time).filter(|&n| n > 0)?;
    let penalties: Vec<f32> = allowed.iter().copied().map(penalty).collect();
    Some(Tensor::from_data(TensorData::new(penalties, [rows, time, n_actions]), device))
}
