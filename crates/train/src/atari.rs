//! Training on a game's frames: [`AtariLearner`].

use std::sync::Arc;

use burn::{
    module::Module,
    tensor::{DType, Device, Int, Tensor, TensorData},
};
use overtone_core::seed::Generator;
use overtone_data::{
    Batch, BatchActions, BatchObservations, BatchOptions, DataError, Dataset, FrameStore, Loader,
    LoaderConfig, Part, WindowSampler,
};
use overtone_model::{
    DecisionTransformer, Inputs, ModelConfig,
    decision_transformer::{DropoutSeed, FRAME, Frames, STACK},
    device::is_cpu,
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

/// A Decision Transformer that learns a game.
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
        model: &DecisionTransformer,
        batch: &mut Batch,
        dropout: Option<DropoutSeed>,
        device: &Device,
    ) -> BatchLoss {
        let frames = match &self.frames {
            Some(bank) => bank.stacks(batch),
            None => windows(batch, device),
        };
        let loss = model.loss(frames, &inputs(batch, device), dropout);
        BatchLoss { total: loss.total, figures: vec![loss.cross_entropy, loss.accuracy] }
    }

    /// Keeps all frames on the device from here on, whatever their size.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn keep_frames_on(&mut self, device: &Device) -> Result<(), TrainError> {
        self.frames = Some(FrameBank::upload(frames(&self.dataset), device)?);
        Ok(())
    }
}

impl Algorithm for AtariLearner {
    type State = Supervised<DecisionTransformer>;
    type Batch = Batch;

    /// In nats per action, and the share of logged actions that are the most probable one.
    const FIGURES: &'static [&'static str] = &["cross_entropy", "accuracy"];

    fn agent(&self) -> Agent {
        Agent::Atari(AtariAgent {
            game: self.game.clone(),
            model: self.model.clone(),
            recording: self.dataset.origin().recording.clone(),
        })
    }

    fn context_length(&self) -> usize {
        self.model.context_length
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
        let model = DecisionTransformer::init(&self.model, device, generator)?;
        let model = DecisionTransformer { form: config.precision.form(), ..model };
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

/// Moves a batch to the device: frames as bytes, every frame once. What is left of the
/// batch is given back for its memory.
pub fn to_device(mut batch: Batch, device: &Device) -> (Frames, Inputs, Batch) {
    let frames = windows(&mut batch, device);
    (frames, inputs(&batch, device), batch)
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

/// The rest of a batch on the device.
fn inputs(batch: &Batch, device: &Device) -> Inputs {
    let (rows, time) = (batch.batch, batch.context_length);
    let BatchActions::Discrete(actions) = &batch.actions else {
        panic!("a game's actions are chosen from a list");
    };
    Inputs {
        actions: Tensor::from_data(TensorData::new(actions.clone(), [rows, time]), device),
        returns_to_go: Tensor::from_data(
            TensorData::new(batch.returns_to_go.clone(), [rows, time]),
            device,
        ),
        global_timesteps: Tensor::from_data(
            TensorData::new(batch.first_timesteps(), [rows]),
            device,
        ),
        n_padding: batch.n_real.iter().map(|&n| time - n as usize).collect(),
    }
}
