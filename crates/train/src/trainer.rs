//! The training loop.

mod figures;
mod in_parts;
pub(crate) mod recorder;
mod team;
mod tree;

use std::sync::atomic::{AtomicBool, Ordering};

use burn::tensor::{Device, Tensor};
use overtone_core::seed;
use overtone_data::{Batch, DataError, Loader, Share, Subset, WindowSampler};
use overtone_model::device::is_cpu;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use self::{
    figures::{Accumulator, Clock, Figures, Step, read},
    recorder::{Recorder, joined},
    team::Team,
};
use crate::{
    algorithm::{Algorithm, Export, StepAt, Stored, n_labels},
    checkpoint::{Checkpoint, FORMAT, TrainState},
    config::TrainConfig,
    error::TrainError,
    held_out,
    initial::Initial,
    metrics::Metrics,
    observer::{Observer, StepReport},
    processes::{Processes, SingleProcess},
    run_dir::RunDir,
    schedule::Schedule,
    shortened::Shortened,
    training_data::TrainingData,
};

/// Result of training.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The last checkpoint.
    pub checkpoint: Checkpoint,
    /// Whether it was stopped before its last step, or during the measurement of its last
    /// checkpoint.
    pub interrupted: bool,
    /// Seconds of training in this process.
    pub seconds: f64,
    /// Seconds of these spent waiting for data.
    pub waited: f64,
}

/// Input of a training run.
#[derive(Clone, Debug)]
pub struct Job {
    /// Directory of metrics and checkpoints.
    pub run: RunDir,
    /// Length and settings of training.
    pub config: TrainConfig,
    /// The training data.
    pub data: TrainingData,
    /// The description of the agent that checkpoints store next to its weights: everything else
    /// that acting needs. Training only compares it: a run resumes only from a checkpoint with the
    /// same description.
    pub agent: Value,
    /// Seed of initial weights, data order and dropout.
    pub seed: u64,
    /// Device of the computation.
    pub device: Device,
    /// Initial weights; `None`: random.
    pub init: Option<Initial>,
    /// The checkpoint that the run resumes from; `None`: a new run.
    pub resume: Option<Checkpoint>,
}

/// An agent in training.
pub struct Trainer<A: Algorithm> {
    config: TrainConfig,
    algorithm: A,
    data: TrainingData,
    run: RunDir,
    device: Device,
    /// The state of the algorithm.
    learned: A::State,
    schedule: Schedule,
    shortened: Vec<Shortened>,
    n_updates: u64,
    state: TrainState,
    /// The newest checkpoint on disk.
    saved: Option<Checkpoint>,
    /// Number of steps whose figures are read together.
    read_every: usize,
    recorder: Recorder,
}

/// Training that is ready to start, with any algorithm.
pub trait Training {
    /// Total number of optimizer steps.
    fn n_updates(&self) -> u64;

    /// The counts of updates that are longer in the settings than a tenth of the run.
    fn shortened(&self) -> &[Shortened];

    /// Position of training in its run.
    fn state(&self) -> &TrainState;

    /// Number of trainable parameters.
    fn n_parameters(&self) -> usize;

    /// Location of the data during training, for messages.
    fn memory(&self) -> String;

    /// Trains until the last step, or until `stop` is set. Then it finishes the current step and
    /// writes a checkpoint.
    ///
    /// # Errors
    /// When a file cannot be written, data cannot be read, or the loss becomes non-finite.
    fn train(
        self: Box<Self>,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<Finished, TrainError> {
        self.train_among(&SingleProcess, stop, observer)
    }

    /// Trains together with other processes that have created the same trainer. Each computes an
    /// equal number of every batch's parts ([`TrainConfig::micro_batches`]); the weights do not
    /// depend on the number of processes.
    ///
    /// Only process 0 writes files, measures the held-out loss and passes checkpoints to the
    /// observer. That includes the checkpoint that a run resumes from, if it was not measured. The
    /// other processes return a description of the last checkpoint. When `stop` is set on one
    /// process, all end after the same step.
    ///
    /// # Errors
    /// As [`Training::train`]; also when a process failed, cannot be reached, or has different
    /// weights.
    fn train_among(
        self: Box<Self>,
        processes: &dyn Processes,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<Finished, TrainError>;
}

impl<A: Algorithm> Training for Trainer<A> {
    fn n_updates(&self) -> u64 {
        self.n_updates
    }

    fn shortened(&self) -> &[Shortened] {
        &self.shortened
    }

    fn state(&self) -> &TrainState {
        &self.state
    }

    fn n_parameters(&self) -> usize {
        self.learned.n_parameters()
    }

    fn memory(&self) -> String {
        self.data.memory(&self.device)
    }

    fn train_among(
        mut self: Box<Self>,
        processes: &dyn Processes,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<Finished, TrainError> {
        let team = Team::new(processes);
        let share = team.share(self.config.micro_batches)?;
        let ended = self.run(&team, share, stop, observer);
        team.close(ended).map_err(|error| match error {
            TrainError::Lost { what, .. } => {
                let last = self.saved.map(|checkpoint| checkpoint.state.step);
                TrainError::Lost { what, last }
            }
            error => error,
        })
    }
}

impl<A: Algorithm> Trainer<A> {
    /// A new agent, or the agent of the checkpoint, ready to train.
    ///
    /// # Errors
    /// When a configuration is invalid, or the checkpoint belongs to another agent or dataset.
    pub fn new(mut algorithm: A, job: Job) -> Result<Self, TrainError> {
        let Job { run, config, mut data, agent, seed: run_seed, device, init, resume } = job;
        config.validate()?;
        if config.micro_batches > 1 && algorithm.parts().is_none() {
            return Err(not_in_parts(config.micro_batches));
        }
        let device = device.autodiff();
        let context_length = algorithm.context_length();
        if algorithm.lookahead().is_some() {
            data.dataset().check_targets()?;
        }
        let sampler = data.sampler(Subset::Training, context_length, &config, run_seed)?;
        let n_updates = config.n_updates(sampler.epoch_len());
        if config.held_out > 0.0 {
            // Found now, not at the first checkpoint.
            data.sampler(Subset::HeldOut, context_length, &config, run_seed)?;
        }
        let labels = config.batch_size * algorithm.labels_per_context();
        let schedule = config.schedule(n_updates, labels);
        let mut shortened = algorithm.shorten(n_updates);
        shortened.extend(config.shortened_warmup(n_updates, labels));
        let fresh = TrainState {
            format: FORMAT,
            step: 0,
            n_drawn: 0,
            tokens: 0,
            seed: run_seed,
            agent,
            dataset_hash: data.dataset().content_hash().to_owned(),
            dataset_kind: data.dataset().origin().kind.to_string(),
            episode_returns: data.episode_returns(),
            first_observations: data.dataset().first_observations(),
            held_out_share: config.held_out,
            held_out: None,
            init_source: init.as_ref().map(Initial::source).transpose()?,
            best: None,
            unreported: None,
        };
        let mut generator = seed::generator(run_seed, "init");
        let learned = algorithm.init(&config, &device, &mut generator)?;
        let (learned, state) = match &resume {
            None => match &init {
                None => (learned, fresh),
                Some(init) => (init.checkpoint.begin(learned)?, fresh),
            },
            Some(checkpoint) => {
                if let Some(reason) = checkpoint.state.differs(&fresh) {
                    return Err(TrainError::Checkpoint { path: checkpoint.path.clone(), reason });
                }
                (checkpoint.restore(learned)?, checkpoint.state.clone())
            }
        };
        let read_every = match config.read_every {
            0 if is_cpu(&device) => 1,
            0 => config.log_every,
            steps => steps,
        };
        data.prepare(&config, &device)?;
        let recorder = Recorder::new(&device);
        Ok(Self {
            recorder,
            config,
            algorithm,
            data,
            run,
            device,
            learned,
            schedule,
            shortened,
            n_updates,
            state,
            saved: resume,
            read_every: read_every as usize,
        })
    }

    /// The same trainer, with steps recorded and replayed or not, if the algorithm and the device
    /// support it. By default they are on CUDA devices.
    #[must_use]
    pub fn recording(mut self, is_on: bool) -> Self {
        self.recorder.switch(is_on);
        self
    }

    fn run(
        &mut self,
        team: &Team,
        share: Share,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<Finished, TrainError> {
        team.compare(self.state.step, || self.hash())?;
        let holds_out = self.config.held_out > 0.0;
        let (run, step, names) = (self.run.path(), self.state.step, self.algorithm.figures());
        let mut metrics =
            if team.leads() { Some(Metrics::open(run, step, names, holds_out)?) } else { None };
        // It stopped during the measurement of this checkpoint, which contains the weights of this
        // step.
        let mut interrupted = false;
        let earlier = metrics.as_ref().map_or(0.0, Metrics::seconds);
        let is_measured = self.is_planned() || observer.wants(step);
        if let Some(checkpoint) = self.saved.as_ref().filter(|_| is_measured) {
            let unmeasured = metrics.as_mut().filter(|metrics| !metrics.has_measured(step));
            interrupted = measure(checkpoint, earlier, unmeasured, observer, team)?;
        }
        let mut sampler = self.sampler()?;
        sampler.seek(self.state.n_drawn);
        let mut loader = self.load(sampler, share.clone())?;

        let mut clock = Clock::start(earlier);
        let mut since_report =
            Accumulator::new(self.algorithm.figures(), self.state.unreported.take());
        let mut unread: Vec<Step> = Vec::new();
        while self.state.step < self.n_updates && !interrupted {
            let is_to_stop = match self.config.micro_batches {
                1 => {
                    let batch = loader.next()?;
                    unread.push(self.step(batch, &loader));
                    if let Some(news) = self.recorder.news() {
                        observer
                            .recorded(self.state.step, news.as_ref().err().map(|error| &error[..]));
                    }
                    stop.load(Ordering::Relaxed)
                }
                _ => {
                    let (step, is_to_stop) =
                        self.step_in_parts(&mut loader, share.own.clone(), team, stop)?;
                    unread.push(step);
                    is_to_stop
                }
            };
            let last = self.state.step == self.n_updates;
            let logs = last || self.state.step.is_multiple_of(self.config.log_every);
            interrupted = is_to_stop && !last;
            let planned = self.is_planned();
            let is_measured = planned || observer.wants(self.state.step);
            let saves = is_measured || interrupted;
            // Figures are checked to be finite before they are reported or stored.
            if logs || saves || unread.len() >= self.read_every {
                for step in read(&mut unread) {
                    self.check_finite(&step, team)?;
                    observer.stepped(step.number, step.figures.loss);
                    since_report.add(&step);
                }
            }
            if logs {
                let report =
                    since_report.report(&self.state, self.n_updates, loader.waited(), &mut clock);
                if let Some(metrics) = &mut metrics {
                    metrics.log(&report)?;
                }
                observer.logged(&report);
                since_report = Accumulator::new(self.algorithm.figures(), None);
            }
            if saves {
                self.state.held_out = None;
                if let (true, true, Some(metrics)) = (holds_out, planned, &mut metrics) {
                    clock.paused(|| self.measure_held_out(metrics))?;
                }
                self.state.unreported = since_report.unreported();
                if let Some(metrics) = &metrics {
                    metrics.sync()?;
                }
                let checkpoint = self.save(team)?;
                observer.saved(&checkpoint);
                if is_measured {
                    let (seconds, metrics) = (clock.seconds(), metrics.as_mut());
                    interrupted |=
                        clock.paused(|| measure(&checkpoint, seconds, metrics, observer, team))?;
                }
                self.saved = Some(checkpoint);
            }
        }
        let checkpoint = match self.saved.clone() {
            Some(checkpoint) => checkpoint,
            None => self.save(team)?,
        };
        Ok(Finished {
            checkpoint,
            interrupted,
            seconds: clock.own_seconds(),
            waited: loader.waited(),
        })
    }

    /// Whether a checkpoint is written at this step in any case.
    fn is_planned(&self) -> bool {
        let step = self.state.step;
        step == self.n_updates || step.is_multiple_of(self.config.checkpoint_every)
    }

    /// Measured before the checkpoint is written, so that every checkpoint has its row.
    fn measure_held_out(&mut self, metrics: &mut Metrics) -> Result<(), TrainError> {
        let Self { algorithm, learned, data, config, state, device, .. } = self;
        let loss = held_out::loss(algorithm, learned, data, config, state.seed, device)?;
        state.measured(loss, algorithm.lookahead().is_none());
        metrics.log_held_out(state.step, loss)
    }

    fn sampler(&self) -> Result<WindowSampler, DataError> {
        let (context_length, seed) = (self.algorithm.context_length(), self.state.seed);
        let sampler = self.data.sampler(Subset::Training, context_length, &self.config, seed)?;
        Ok(self.data.dataset().with_top_percents(sampler, self.algorithm.top_percents(), seed))
    }

    fn load(&self, sampler: WindowSampler, share: Share) -> Result<Loader, DataError> {
        let rows = self.config.batch_size / share.of;
        self.data.load(sampler, rows, self.algorithm.lookahead(), share)
    }

    fn save(&self, team: &Team) -> Result<Checkpoint, TrainError> {
        self.data.check()?;
        if !team.leads() {
            return Ok(Checkpoint::named(&self.run.checkpoints(), &self.state));
        }
        let saved = Checkpoint::save(
            &self.run.checkpoints(),
            &self.state,
            &self.learned,
            self.config.keep_checkpoints,
            self.config.checkpoint_every,
        );
        saved.map_err(|error| TrainError::Save {
            step: self.state.step,
            last: self.saved.as_ref().map(|checkpoint| checkpoint.state.step),
            source: Box::new(error),
        })
    }

    /// One step on one batch. It does not read from a GPU: the figures stay there.
    fn step(&mut self, mut batch: Batch, loader: &Loader) -> Step {
        let n_labels = n_labels(&self.algorithm, &batch);
        let n_drawn = batch.drawn;
        let device = self.device.clone();
        let at = self.at(&device);
        let learning_rate = at.learning_rate;
        let Self { algorithm, recorder, learned, data, .. } = self;
        let recorded = algorithm
            .recorded()
            .and_then(|algorithm| recorder.step(algorithm, learned, &batch, data, &at));
        let figures =
            recorded.unwrap_or_else(|| joined(algorithm.step(learned, &mut batch, data, &at)));
        loader.recycle(batch);
        self.stepped(learning_rate, n_labels, n_drawn, figures)
    }

    /// Position of the next step in its run.
    fn at<'a>(&self, device: &'a Device) -> StepAt<'a> {
        let seed = seed::derive_nth(seed::derive(self.state.seed, "dropout"), self.state.step);
        StepAt {
            step: self.state.step,
            n_steps: self.n_updates,
            learning_rate: self.schedule.at(self.state.step, self.state.tokens),
            schedule: self.config.schedule,
            seed,
            device,
        }
    }

    /// Counts a completed step.
    fn stepped(
        &mut self,
        learning_rate: f64,
        n_labels: u64,
        n_drawn: u64,
        figures: Tensor<1>,
    ) -> Step {
        self.state.step += 1;
        self.state.tokens += n_labels;
        self.state.n_drawn = n_drawn;
        Step { number: self.state.step, n_drawn, learning_rate, n_labels, figures }
    }

    /// Hash that must be equal on all processes: of everything that a step changes, and of the
    /// data.
    fn hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new_with_prefix(&self.state.dataset_hash);
        for tensors in [self.learned.export_model(), self.learned.export_training()] {
            for (name, tensor) in tensors {
                hash.update(name);
                hash.update(tensor.as_bytes());
            }
        }
        hash.finalize().into()
    }

    /// Dataset rows of the last timesteps of a batch after which `n_drawn` contexts had been drawn.
    fn last_indices(&self, n_drawn: u64) -> Result<Vec<u64>, DataError> {
        let (mut sampler, rows) = (self.sampler()?, self.config.batch_size as u64);
        sampler.seek(n_drawn - rows);
        Ok((0..rows).map(|_| sampler.draw().range().end as u64 - 1).collect())
    }

    fn check_finite(&self, step: &Step<Figures>, team: &Team) -> Result<(), TrainError> {
        let figures = [("loss", step.figures.loss), ("gradient norm", step.figures.grad_norm)];
        let Some((what, value)) = figures.into_iter().find(|(_, value)| !value.is_finite()) else {
            return Ok(());
        };
        // Every process has the same figures.
        let number = step.number;
        let last = self.saved.as_ref().map(|checkpoint| checkpoint.state.step);
        let name = format!("not-finite-step-{number:08}.json");
        if !team.leads() {
            let indices = self.run.path().join(name);
            return team.end(TrainError::NonFinite { step: number, what, value, indices, last });
        }
        let record =
            self.last_indices(step.n_drawn).map_err(TrainError::from).and_then(|indices| {
                let record =
                    json!({ "step": number, what: value.to_string(), "last_indices": indices });
                self.run.write(&name, record.to_string().as_bytes())
            });
        team.end(match record {
            Ok(indices) => TrainError::NonFinite { step: number, what, value, indices, last },
            Err(error) => error,
        })
    }
}

/// Passes a checkpoint to the observer for measurement, on the process that holds `metrics`.
/// `seconds`: its training time. Returns whether training must stop, to measure it after a resume.
fn measure(
    checkpoint: &Checkpoint,
    seconds: f64,
    metrics: Option<&mut Metrics>,
    observer: &mut dyn Observer,
    team: &Team,
) -> Result<bool, TrainError> {
    let mut stops = false;
    if let Some(metrics) = metrics {
        match observer.measured(checkpoint) {
            Some(figures) => metrics.log_measured(checkpoint.state.step, seconds, &figures)?,
            None => stops = true,
        }
    }
    Ok(team.meet(0, stops)?.stops)
}

/// The error for an algorithm without steps in parts.
fn not_in_parts(micro_batches: usize) -> TrainError {
    TrainError::Config {
        key: "micro_batches",
        got: micro_batches.to_string(),
        expected: "must be 1: this algorithm's step descends several gradients in turn",
    }
}
