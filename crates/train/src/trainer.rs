//! The training loop.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use overtone_core::seed;
use overtone_data::{AtariBatch, AtariDataset, Loader, LoaderConfig, WindowSampler};
use overtone_model::{
    DecisionTransformer, Inputs, ModelConfig,
    decision_transformer::{DropoutSeed, FRAME, Form, Frames, Half, STACK},
    device::is_cpu,
};
use serde_json::json;

use crate::{
    checkpoint::{Checkpoint, FORMAT, TrainState},
    config::{Precision, TrainConfig},
    error::TrainError,
    frame_bank::FrameBank,
    metrics::Metrics,
    optimizer::AdamW,
    run_dir::RunDir,
    schedule::Schedule,
};

/// What happened in the steps since the last report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// Steps taken.
    pub step: u64,
    /// Steps in all.
    pub n_updates: u64,
    /// Action labels seen.
    pub tokens: u64,
    /// Cross-entropy plus regulariser, averaged over the steps reported.
    pub loss: f64,
    /// In nats per action, averaged likewise.
    pub cross_entropy: f64,
    /// Share of logged actions that are the most probable one, averaged likewise.
    pub accuracy: f64,
    /// The last step's learning rate.
    pub learning_rate: f64,
    /// The last step's gradient norm before clipping.
    pub grad_norm: f64,
    /// Real timesteps trained on per second, since the last report.
    pub timesteps_per_s: f64,
    /// Share of the time so far that was spent waiting for data.
    pub waited_share: f64,
    /// Seconds since training started or was resumed.
    pub seconds: f64,
}

/// Told of progress; does the printing.
pub trait Observer {
    /// After every step, of which several may be told at once.
    fn stepped(&mut self, step: u64, loss: f64);
    /// After every `log_every` steps.
    fn logged(&mut self, report: &StepReport);
    /// After a checkpoint was written.
    fn saved(&mut self, checkpoint: &Checkpoint);
}

/// How training ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The last checkpoint.
    pub checkpoint: Checkpoint,
    /// Whether it was stopped before its last step.
    pub interrupted: bool,
    /// Seconds of training in this process.
    pub seconds: f64,
    /// Seconds of these spent waiting for data.
    pub waited: f64,
}

/// What to train, on what, and where.
#[derive(Clone, Debug)]
pub struct Job {
    /// Where metrics and checkpoints go.
    pub run: RunDir,
    /// How long and how.
    pub config: TrainConfig,
    /// The model.
    pub model: ModelConfig,
    /// The data.
    pub dataset: Arc<AtariDataset>,
    /// The environment the data is of, such as `Seaquest`.
    pub game: String,
    /// Initial weights, data order and dropout derive from it.
    pub seed: u64,
    /// Where to compute.
    pub device: Device,
}

/// A model being trained on a dataset.
pub struct Trainer {
    config: TrainConfig,
    dataset: Arc<AtariDataset>,
    run: RunDir,
    device: Device,
    model: DecisionTransformer,
    optimizer: AdamW,
    schedule: Schedule,
    n_updates: u64,
    state: TrainState,
    /// The newest checkpoint on disk.
    saved: Option<Checkpoint>,
    /// All frames, where they are on the device.
    frames: Option<FrameBank>,
    /// Steps whose figures are read together.
    read_every: usize,
}

impl Trainer {
    /// A new model, or the one of `resume`, ready to train.
    ///
    /// # Errors
    /// When a configuration is wrong, or the checkpoint belongs to another model or dataset.
    pub fn new(job: Job, resume: Option<&Checkpoint>) -> Result<Self, TrainError> {
        let Job { run, config, model, dataset, game, seed: run_seed, device } = job;
        config.validate()?;
        let device = device.autodiff();
        let sampler =
            WindowSampler::new(dataset.clone(), config.sampling, model.context_length, run_seed)?;
        let n_updates = config.n_updates(sampler.epoch_len());
        let labels = n_updates as f64 * (config.batch_size * model.context_length) as f64;
        let schedule = Schedule::Cosine {
            learning_rate: config.learning_rate,
            warmup_tokens: config.warmup_tokens,
            final_tokens: config.decay_horizon * labels,
        };
        let manifest = dataset.manifest();
        let mut episode_returns = dataset.episode_returns();
        episode_returns.sort_by(f32::total_cmp);
        let fresh = TrainState {
            format: FORMAT,
            step: 0,
            n_drawn: 0,
            tokens: 0,
            seed: run_seed,
            model: model.clone(),
            game,
            dataset_hash: manifest.content_hash.clone(),
            dataset_kind: manifest.origin.kind.to_string(),
            recording: manifest.origin.recording.clone(),
            episode_returns,
        };
        let (model, optimizer, state) = match resume {
            None => {
                let mut generator = seed::generator(run_seed, "init");
                let model = DecisionTransformer::init(&model, &device, &mut generator)?;
                (model, AdamW::new(config.optimizer), fresh)
            }
            Some(checkpoint) => {
                let wrong = |reason: &str| TrainError::Checkpoint {
                    path: checkpoint.path.clone(),
                    reason: reason.into(),
                };
                if checkpoint.state.model != fresh.model {
                    return Err(wrong("belongs to another model configuration"));
                }
                if checkpoint.state.dataset_hash != fresh.dataset_hash {
                    return Err(wrong("was trained on other data than is there now"));
                }
                let model = checkpoint.model(&device)?;
                let optimizer = checkpoint.optimizer(config.optimizer, &model)?;
                (model, optimizer, checkpoint.state.clone())
            }
        };
        let form = match config.precision {
            Precision::F32 => Form::Auto,
            Precision::Bf16 => Form::Mixed(Half::Bf16),
        };
        let read_every = match config.read_every {
            0 if is_cpu(&device) => 1,
            0 => config.log_every,
            steps => steps,
        };
        let fits = FrameBank::bytes(&dataset) as f64 <= config.frames_on_gpu_gb * 1e9;
        let frames = (!is_cpu(&device) && fits).then(|| FrameBank::upload(&dataset, &device));
        Ok(Self {
            config,
            dataset,
            run,
            device,
            model: DecisionTransformer { form, ..model },
            optimizer,
            schedule,
            n_updates,
            state,
            saved: resume.cloned(),
            frames: frames.transpose()?,
            read_every: read_every as usize,
        })
    }

    /// Keeps all frames on the device from here on, whatever their size.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn with_frames_on_device(mut self) -> Result<Self, TrainError> {
        self.frames = Some(FrameBank::upload(&self.dataset, &self.device)?);
        Ok(self)
    }

    /// Where frames are while training, for people.
    pub fn frames_described(&self) -> String {
        let gb = FrameBank::bytes(&self.dataset) as f64 / 1e9;
        match &self.frames {
            Some(_) => format!("{gb:.2} GB, all on the device"),
            None if is_cpu(&self.device) => format!("{gb:.2} GB, read where they lie"),
            None => format!(
                "{gb:.2} GB, sent to the device batch by batch: more than \
                 train.frames_on_gpu_gb={}",
                self.config.frames_on_gpu_gb
            ),
        }
    }

    /// Optimizer steps in all.
    pub fn n_updates(&self) -> u64 {
        self.n_updates
    }

    /// Where training stands.
    pub fn state(&self) -> &TrainState {
        &self.state
    }

    /// The model.
    pub fn model(&self) -> &DecisionTransformer {
        &self.model
    }

    /// Trains until the last step, or until `stop` is set: then the step under way is
    /// finished and a checkpoint written.
    ///
    /// # Errors
    /// When a file cannot be written, data cannot be read, or the loss stops being a number.
    pub fn train(
        mut self,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<Finished, TrainError> {
        let mut metrics = Metrics::open(self.run.path(), self.state.step)?;
        let mut sampler = WindowSampler::new(
            self.dataset.clone(),
            self.config.sampling,
            self.state.model.context_length,
            self.state.seed,
        )?;
        sampler.seek(self.state.n_drawn);
        let mut loader = Loader::start(
            sampler,
            LoaderConfig {
                with_frames: self.frames.is_none(),
                ..LoaderConfig::new(self.config.batch_size)
            },
        )?;

        let started = Instant::now();
        let mut since_report = Accumulator::new();
        let mut unread: Vec<Step> = Vec::new();
        let mut interrupted = false;
        while self.state.step < self.n_updates {
            let batch = loader.next()?;
            unread.push(self.step(batch, &loader));
            let last = self.state.step == self.n_updates;
            let logs = last || self.state.step.is_multiple_of(self.config.log_every);
            interrupted = stop.load(Ordering::Relaxed) && !last;
            let saves =
                last || interrupted || self.state.step.is_multiple_of(self.config.checkpoint_every);
            // Nothing is reported or stored before it is known to be finite.
            if logs || saves || unread.len() >= self.read_every {
                for step in read(&mut unread) {
                    self.check_finite(&step)?;
                    observer.stepped(step.number, step.figures.loss);
                    since_report.add(&step);
                }
            }
            if logs {
                let report = since_report.report(&self.state, self.n_updates, &loader, started);
                metrics.log(&report)?;
                observer.logged(&report);
                since_report = Accumulator::new();
            }
            if saves {
                let checkpoint = self.save()?;
                observer.saved(&checkpoint);
                self.saved = Some(checkpoint);
            }
            if interrupted {
                break;
            }
        }
        let checkpoint = match self.saved.take() {
            Some(checkpoint) => checkpoint,
            None => self.save()?,
        };
        Ok(Finished {
            checkpoint,
            interrupted,
            seconds: started.elapsed().as_secs_f64(),
            waited: loader.waited(),
        })
    }

    fn save(&self) -> Result<Checkpoint, TrainError> {
        Checkpoint::save(
            &self.run.checkpoints(),
            &self.state,
            &self.model,
            &self.optimizer,
            self.config.keep_checkpoints,
        )
    }

    /// One optimizer step on one batch. From a GPU nothing is read: its figures stay there.
    fn step(&mut self, mut batch: AtariBatch, loader: &Loader) -> Step {
        let n_labels: u64 = batch.n_real.iter().map(|&n| n as u64).sum();
        let n_drawn = batch.drawn;
        let indices = batch.last_indices.clone();
        let frames = match &self.frames {
            Some(bank) => bank.stacks(&batch),
            None => windows(&mut batch, &self.device),
        };
        let inputs = inputs(&batch, &self.device);
        loader.recycle(batch);

        let learning_rate = self.schedule.at(self.state.step, self.state.tokens);
        let dropout = seed::derive_nth(seed::derive(self.state.seed, "dropout"), self.state.step);
        let loss = self.model.loss(frames, &inputs, Some(DropoutSeed(dropout)));
        let gradients = loss.total.backward();
        let (model, norm) = self.optimizer.step(self.model.clone(), gradients, learning_rate);
        self.model = model;
        self.state.step += 1;
        self.state.tokens += n_labels;
        self.state.n_drawn = n_drawn;
        let figures = [loss.total.inner(), norm, loss.cross_entropy.inner(), loss.accuracy.inner()];
        Step {
            number: self.state.step,
            learning_rate,
            n_labels,
            indices,
            figures: Tensor::cat(figures.to_vec(), 0),
        }
    }

    fn check_finite(&self, step: &Step<Figures>) -> Result<(), TrainError> {
        let figures = [("loss", step.figures.loss), ("gradient norm", step.figures.grad_norm)];
        let Some((what, value)) = figures.into_iter().find(|(_, value)| !value.is_finite()) else {
            return Ok(());
        };
        let number = step.number;
        let record =
            json!({ "step": number, what: value.to_string(), "last_indices": step.indices });
        let name = format!("not-finite-step-{number:08}.json");
        let path: PathBuf = self.run.write(&name, record.to_string().as_bytes())?;
        Err(TrainError::NonFinite { step: number, what, value, indices: path })
    }
}

/// Moves a batch to the device: frames as bytes, every frame once. What is left of the
/// batch is given back for its memory.
pub fn to_device(mut batch: AtariBatch, device: &Device) -> (Frames, Inputs, AtariBatch) {
    let frames = windows(&mut batch, device);
    (frames, inputs(&batch, device), batch)
}

/// The frames of a batch, which are taken out of it, on the device.
fn windows(batch: &mut AtariBatch, device: &Device) -> Frames {
    let pixels = std::mem::take(&mut batch.frames);
    let shape = [batch.batch, batch.context_length + STACK - 1, FRAME, FRAME];
    let frames = Tensor::<4, Int>::from_data(TensorData::new(pixels, shape), (device, DType::U8));
    Frames::Windows(frames)
}

/// The rest of a batch on the device.
fn inputs(batch: &AtariBatch, device: &Device) -> Inputs {
    let (rows, time) = (batch.batch, batch.context_length);
    let ints = |values: &[i32]| TensorData::new(values.to_vec(), [rows, time]);
    Inputs {
        actions: Tensor::from_data(ints(&batch.actions), device),
        returns_to_go: Tensor::from_data(
            TensorData::new(batch.returns_to_go.clone(), [rows, time]),
            device,
        ),
        global_timesteps: Tensor::from_data(
            TensorData::new(batch.first_timesteps.clone(), [rows]),
            device,
        ),
        n_padding: batch.n_real.iter().map(|&n| time - n as usize).collect(),
    }
}

/// One step; its figures are on the device until they are read.
struct Step<F = Tensor<1>> {
    /// From 1.
    number: u64,
    learning_rate: f64,
    n_labels: u64,
    /// Dataset rows of the batch's last timesteps.
    indices: Vec<u64>,
    figures: F,
}

/// What a step has computed, in this order in its tensor.
struct Figures {
    loss: f64,
    /// Before clipping.
    grad_norm: f64,
    cross_entropy: f64,
    accuracy: f64,
}

/// Takes all steps out of `unread`; their figures come from the device in one go.
fn read(unread: &mut Vec<Step>) -> Vec<Step<Figures>> {
    let figures = unread.iter().map(|step| step.figures.clone()).collect();
    let numbers: Vec<f64> = Tensor::cat(figures, 0).into_data().iter().collect();
    let (figures, _) = numbers.as_chunks();
    let steps = unread.drain(..).zip(figures);
    steps
        .map(|(step, &[loss, grad_norm, cross_entropy, accuracy])| {
            let figures = Figures { loss, grad_norm, cross_entropy, accuracy };
            let Step { number, learning_rate, n_labels, indices, .. } = step;
            Step { number, learning_rate, n_labels, indices, figures }
        })
        .collect()
}

/// Sums of the steps since the last report.
struct Accumulator {
    since: Instant,
    n_steps: u64,
    n_labels: u64,
    loss: f64,
    cross_entropy: f64,
    accuracy: f64,
    learning_rate: f64,
    grad_norm: f64,
}

impl Accumulator {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            n_steps: 0,
            n_labels: 0,
            loss: 0.0,
            cross_entropy: 0.0,
            accuracy: 0.0,
            learning_rate: 0.0,
            grad_norm: 0.0,
        }
    }

    fn add(&mut self, step: &Step<Figures>) {
        self.n_steps += 1;
        self.n_labels += step.n_labels;
        self.loss += step.figures.loss;
        self.cross_entropy += step.figures.cross_entropy;
        self.accuracy += step.figures.accuracy;
        self.learning_rate = step.learning_rate;
        self.grad_norm = step.figures.grad_norm;
    }

    fn report(
        &self,
        state: &TrainState,
        n_updates: u64,
        loader: &Loader,
        started: Instant,
    ) -> StepReport {
        let mean = |sum: f64| sum / self.n_steps.max(1) as f64;
        let seconds = |duration: Duration| duration.as_secs_f64().max(1e-9);
        let total = seconds(started.elapsed());
        StepReport {
            step: state.step,
            n_updates,
            tokens: state.tokens,
            loss: mean(self.loss),
            cross_entropy: mean(self.cross_entropy),
            accuracy: mean(self.accuracy),
            learning_rate: self.learning_rate,
            grad_norm: self.grad_norm,
            timesteps_per_s: self.n_labels as f64 / seconds(self.since.elapsed()),
            waited_share: loader.waited() / total,
            seconds: total,
        }
    }
}
