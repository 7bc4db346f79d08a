//! Training on a game's frames: [`AtariLearner`].

use std::sync::Arc;

use burn::{
    module::Module,
    tensor::{DType, Device, Int, Tensor, TensorData},
};
use overtone_core::{ActionSpace, ObservationSpace, seed::Generator};
use overtone_data::{
    Batch, BatchActions, BatchObservations, BatchOptions, DataError, Dataset, FrameStore, Loader,
    LoaderConfig, Part, WindowSampler,
};
use overtone_model::{
    Acted, Contexts, Frames, Init, Model, ModelConfig, Observed,
    contexts::{FRAME, STACK},
    device::is_cpu,
    transformer::DropoutSeed,
};

use crate::{
    agent::{Agent, AtariAgent},
    algorithm::{Algorithm, BatchFacts, DataFacts, StepAt, StepFigures},
    config::TrainConfig,
    error::TrainError,
    frame_bank::FrameBank,
    optimizer::AdamW,
    supervised::{BatchLoss, Supervised},
};

/// A model that learns a game.
#[derive(Clone, Debug)]
pub struct AtariLearner {
    /// The model.
    pub model: ModelConfig,
    /// The data.
    pub dataset: Arc<Dataset>,
    /// The game, such as `Seaquest`.
    pub game: String,
    /// All frames, where they are on the device.
    frames: Option<FrameBank>,
    /// The most that they may take there, in GB (10⁹ bytes).
    frames_on_gpu_gb: f64,
}

impl AtariLearner {
    /// Learns `game` from `dataset`.
    pub fn new(model: ModelConfig, dataset: Arc<Dataset>, game: impl Into<String>) -> Self {
        Self { model, dataset, game: game.into(), frames: None, frames_on_gpu_gb: 0.0 }
    }

    /// The loss of one batch, whose memory may be taken; without a seed nothing is dropped.
    fn loss(
        &self,
        model: &Model,
        batch: &mut Batch,
        dropout: Option<DropoutSeed>,
        device: &Device,
    ) -> BatchLoss {
        let frames = match &self.frames {
            Some(bank) => bank.stacks(batch),
            None => windows(batch, device),
        };
        let loss = model.loss(&contexts(frames, batch, device), dropout);
        let figures = [loss.action].into_iter().chain(loss.accuracy).collect();
        BatchLoss { total: loss.total, figures }
    }

    /// Keeps all frames on the device from here on, whatever their size.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn keep_frames_on(&mut self, device: &Device) -> Result<(), TrainError> {
        self.frames = Some(FrameBank::upload(frames(&self.dataset), device)?);
        Ok(())
    }

    fn spaces(&self) -> (ObservationSpace, ActionSpace) {
        let observations = ObservationSpace::Pixels { shape: vec![STACK, FRAME, FRAME] };
        (observations, ActionSpace::numbered(self.dataset.actions().size()))
    }
}

impl Algorithm for AtariLearner {
    type State = Supervised<Model>;
    type Batch = Batch;

    /// In nats per action, and the share of logged actions that are the most probable one.
    const FIGURES: &'static [&'static str] = &["cross_entropy", "accuracy"];

    fn agent(&self) -> Agent {
        let (observations, actions) = self.spaces();
        Agent::Atari(AtariAgent {
            game: self.game.clone(),
            observations,
            actions,
            model: self.model.clone(),
            recording: self.dataset.origin().recording.clone(),
        })
    }

    fn context_length(&self) -> usize {
        self.model.context_length()
    }

    fn data(&self) -> DataFacts {
        let mut episode_returns = self.dataset.episode_returns();
        episode_returns.sort_by(f32::total_cmp);
        DataFacts {
            hash: self.dataset.content_hash().to_owned(),
            kind: self.dataset.origin().kind.to_string(),
            episode_returns,
        }
    }

    fn init(
        &self,
        config: &TrainConfig,
        device: &Device,
        generator: &mut Generator,
    ) -> Result<Self::State, TrainError> {
        let (observations, actions) = self.spaces();
        let init = &mut Init::drawn(device, generator);
        let model = Model::init(&self.model, &observations, &actions, init)?;
        let model = model.with_form(config.precision.form());
        Ok(Supervised { model, optimizer: AdamW::new(config.optimizer) })
    }

    fn prepare(&mut self, config: &TrainConfig, device: &Device) -> Result<(), TrainError> {
        self.frames_on_gpu_gb = config.frames_on_gpu_gb;
        let fits = FrameBank::bytes(frames(&self.dataset)) as f64 <= config.frames_on_gpu_gb * 1e9;
        if self.frames.is_none() && !is_cpu(device) && fits {
            self.keep_frames_on(device)?;
        }
        Ok(())
    }

    fn sampler(
        &self,
        part: Part,
        config: &TrainConfig,
        run_seed: u64,
    ) -> Result<WindowSampler, DataError> {
        let context_length = self.context_length();
        self.dataset.sampler(part, config.held_out, config.sampling, context_length, run_seed)
    }

    fn load(&self, sampler: WindowSampler, batch_size: usize) -> Result<Loader<Batch>, DataError> {
        let contents = BatchOptions { frames: self.frames.is_none(), ..Default::default() };
        let config = LoaderConfig { contents, ..LoaderConfig::new(batch_size) };
        Loader::new(self.dataset.clone(), sampler, config)
    }

    fn facts(&self, batch: &Batch) -> BatchFacts {
        BatchFacts {
            n_labels: batch.n_real.iter().map(|&n| n as u64).sum(),
            n_drawn: batch.drawn,
            indices: batch.last_indices.clone(),
        }
    }

    fn check_data(&self) -> Result<(), DataError> {
        self.dataset.check_unchanged()
    }

    fn step(&self, state: &mut Self::State, batch: &mut Batch, at: &StepAt<'_>) -> StepFigures {
        let loss = self.loss(&state.model, batch, Some(at.seed), at.device);
        state.descend(loss, at.learning_rate)
    }

    fn held_out_loss(&self, state: &Self::State, batch: &mut Batch, device: &Device) -> Tensor<1> {
        let mut loss = self.loss(&state.model.valid(), batch, None, device);
        loss.figures.swap_remove(0)
    }

    fn memory(&self, device: &Device) -> String {
        let gb = FrameBank::bytes(frames(&self.dataset)) as f64 / 1e9;
        match &self.frames {
            Some(_) => format!("frames: {gb:.2} GB, all on the device"),
            None if is_cpu(device) => format!("frames: {gb:.2} GB, read where they lie"),
            None => format!(
                "frames: {gb:.2} GB, sent to the device batch by batch: more than \
                 train.frames_on_gpu_gb={}",
                self.frames_on_gpu_gb
            ),
        }
    }
}

/// The frames of a game's dataset.
fn frames(dataset: &Dataset) -> &FrameStore {
    match dataset.frames() {
        Some(frames) => frames,
        None => panic!("a game's dataset is of frames"),
    }
}

/// Moves a batch to the device: frames as bytes, every frame once, taken out of the batch.
pub fn to_device(batch: &mut Batch, device: &Device) -> Contexts {
    let frames = windows(batch, device);
    contexts(frames, batch, device)
}

/// The frames of a batch, which are taken out of it, on the device.
fn windows(batch: &mut Batch, device: &Device) -> Frames {
    let pixels = match &mut batch.observations {
        BatchObservations::Frames { pixels, .. } => std::mem::take(pixels),
        BatchObservations::Vectors(_) => panic!("a game's batch is of frames"),
    };
    let shape = [batch.batch, batch.context_length + STACK - 1, FRAME, FRAME];
    let frames = Tensor::<4, Int>::from_data(TensorData::new(pixels, shape), (device, DType::U8));
    Frames::Windows(frames)
}

/// A batch on the device, with these frames.
fn contexts(frames: Frames, batch: &Batch, device: &Device) -> Contexts {
    let (rows, time) = (batch.batch, batch.context_length);
    let BatchActions::Discrete(actions) = &batch.actions else {
        panic!("a game's actions are chosen from a list");
    };
    let actions = Tensor::from_data(TensorData::new(actions.clone(), [rows, time]), device);
    Contexts {
        observations: Observed::Frames(frames),
        actions: Acted::Discrete(actions),
        returns_to_go: Tensor::from_data(
            TensorData::new(batch.returns_to_go.clone(), [rows, time]),
            device,
        ),
        timesteps: batch.timesteps.clone(),
        n_padding: batch.n_real.iter().map(|&n| time - n as usize).collect(),
    }
}
