//! The training loop.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use burn::tensor::{Device, Tensor};
use overtone_core::seed;
use overtone_data::{Batch, DataError, Loader, Part, WindowSampler};
use overtone_model::{device::is_cpu, transformer::DropoutSeed};
use serde_json::{Value, json};

use crate::{
    algorithm::{Algorithm, StepAt, StepFigures, Stored},
    checkpoint::{Checkpoint, FORMAT, TrainState, Unreported},
    config::TrainConfig,
    error::TrainError,
    held_out,
    metrics::Metrics,
    run_dir::RunDir,
    schedule::Schedule,
    training_data::TrainingData,
};

/// What happened in the steps since the last report.
#[derive(Clone, Debug, PartialEq)]
pub struct StepReport {
    /// Steps taken.
    pub step: u64,
    /// Steps in all.
    pub n_updates: u64,
    /// Action labels seen.
    pub tokens: u64,
    /// What is minimised, the head's regulariser included, averaged over the steps reported.
    pub loss: f64,
    /// What else was measured ([`Algorithm::figures`]), by name, averaged likewise.
    pub figures: Vec<(&'static str, f64)>,
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

/// Told of progress; does the printing. What it does not care for, it leaves as it is here.
pub trait Observer {
    /// After every step, of which several may be told at once.
    fn stepped(&mut self, step: u64, loss: f64) {
        let _ = (step, loss);
    }
    /// After every `log_every` steps.
    fn logged(&mut self, report: &StepReport) {
        let _ = report;
    }
    /// After a checkpoint was written.
    fn saved(&mut self, checkpoint: &Checkpoint) {
        let _ = checkpoint;
    }
    /// After a planned checkpoint was written: figures of it, by name, to be drawn beside the
    /// training curves. Training waits meanwhile, and that time is not counted as training.
    fn measured(&mut self, checkpoint: &Checkpoint) -> Vec<(String, f64)> {
        let _ = checkpoint;
        Vec::new()
    }
}

/// A closure is told of each report.
impl<F: FnMut(&StepReport)> Observer for F {
    fn logged(&mut self, report: &StepReport) {
        self(report);
    }
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
    /// What to learn from.
    pub data: TrainingData,
    /// What checkpoints say of the agent beside its weights: all that playing needs. Only who
    /// plays reads it; a run goes on only from a checkpoint that says the same.
    pub agent: Value,
    /// Initial weights, data order and dropout derive from it.
    pub seed: u64,
    /// Where to compute.
    pub device: Device,
}

/// An agent that learns.
pub struct Trainer<A: Algorithm> {
    config: TrainConfig,
    algorithm: A,
    data: TrainingData,
    run: RunDir,
    device: Device,
    /// What is learned.
    learned: A::State,
    schedule: Schedule,
    n_updates: u64,
    state: TrainState,
    /// The newest checkpoint on disk.
    saved: Option<Checkpoint>,
    /// Steps whose figures are read together.
    read_every: usize,
}

/// Training that is ready to start, whatever the algorithm.
pub trait Training {
    /// Optimizer steps in all.
    fn n_updates(&self) -> u64;

    /// Where training stands.
    fn state(&self) -> &TrainState;

    /// Trainable numbers.
    fn n_parameters(&self) -> usize;

    /// Where the data is while training, for people.
    fn memory(&self) -> String;

    /// As [`Trainer::train`].
    ///
    /// # Errors
    /// As there.
    fn train(
        self: Box<Self>,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<Finished, TrainError>;
}

impl<A: Algorithm> Training for Trainer<A> {
    fn n_updates(&self) -> u64 {
        self.n_updates
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

    fn train(
        self: Box<Self>,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<Finished, TrainError> {
        Trainer::train(*self, stop, observer)
    }
}

impl<A: Algorithm> Trainer<A> {
    /// A new agent, or the one of `resume`, ready to learn.
    ///
    /// # Errors
    /// When a configuration is wrong, or the checkpoint belongs to another agent or dataset.
    pub fn new(algorithm: A, job: Job, resume: Option<&Checkpoint>) -> Result<Self, TrainError> {
        let Job { run, config, mut data, agent, seed: run_seed, device } = job;
        config.validate()?;
        let device = device.autodiff();
        let context_length = algorithm.context_length();
        let sampler = data.sampler(Part::Training, context_length, &config, run_seed)?;
        let n_updates = config.n_updates(sampler.epoch_len());
        if config.held_out > 0.0 {
            // Found now, not at the first checkpoint.
            data.sampler(Part::HeldOut, context_length, &config, run_seed)?;
        }
        let labels = n_updates as f64 * (config.batch_size * algorithm.labels_per_context()) as f64;
        let schedule = config.schedule(labels);
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
            held_out: None,
            best: None,
            unreported: None,
        };
        let mut generator = seed::generator(run_seed, "init");
        let learned = algorithm.init(&config, &device, &mut generator)?;
        let (learned, state) = match resume {
            None => (learned, fresh),
            Some(checkpoint) => {
                let wrong = |reason: &str| TrainError::Checkpoint {
                    path: checkpoint.path.clone(),
                    reason: reason.into(),
                };
                if checkpoint.state.dataset_hash != fresh.dataset_hash {
                    return Err(wrong("was trained on other data than is there now"));
                }
                if checkpoint.state.seed != run_seed {
                    return Err(wrong("belongs to a run of another seed"));
                }
                if checkpoint.state.best.is_some() && config.held_out == 0.0 {
                    return Err(wrong("was trained with episodes held out, and none are now"));
                }
                if checkpoint.state.agent != fresh.agent {
                    return Err(wrong("belongs to another model configuration"));
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
        Ok(Self {
            config,
            algorithm,
            data,
            run,
            device,
            learned,
            schedule,
            n_updates,
            state,
            saved: resume.cloned(),
            read_every: read_every as usize,
        })
    }

    /// What is learned.
    pub fn learned(&self) -> &A::State {
        &self.learned
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
        let holds_out = self.config.held_out > 0.0;
        let mut metrics =
            Metrics::open(self.run.path(), self.state.step, self.algorithm.figures(), holds_out)?;
        let mut sampler = self.sampler()?;
        sampler.seek(self.state.n_drawn);
        let mut loader = self.load(sampler)?;

        let mut started = Instant::now();
        let mut since_report =
            Accumulator::new(self.algorithm.figures(), self.state.unreported.take());
        let mut unread: Vec<Step> = Vec::new();
        let mut interrupted = false;
        while self.state.step < self.n_updates {
            let batch = loader.next()?;
            unread.push(self.step(batch, &loader));
            let last = self.state.step == self.n_updates;
            let logs = last || self.state.step.is_multiple_of(self.config.log_every);
            interrupted = stop.load(Ordering::Relaxed) && !last;
            let planned = last || self.state.step.is_multiple_of(self.config.checkpoint_every);
            let saves = planned || interrupted;
            // Nothing is reported or stored before it is known to be finite.
            if logs || saves || unread.len() >= self.read_every {
                for step in read(&mut unread) {
                    self.check_finite(&step)?;
                    observer.stepped(step.number, step.figures.loss);
                    since_report.add(&step);
                }
            }
            if logs {
                let report =
                    since_report.report(&self.state, self.n_updates, loader.waited(), started);
                metrics.log(&report)?;
                observer.logged(&report);
                since_report = Accumulator::new(self.algorithm.figures(), None);
            }
            if saves {
                self.state.held_out = None;
                if holds_out && planned {
                    self.measure_held_out(&mut metrics)?;
                }
                self.state.unreported = since_report.unreported();
                let checkpoint = self.save()?;
                observer.saved(&checkpoint);
                if planned {
                    let (paused, seconds) = (Instant::now(), started.elapsed().as_secs_f64());
                    let figures = observer.measured(&checkpoint);
                    metrics.log_measured(self.state.step, seconds, &figures)?;
                    started += paused.elapsed();
                    since_report.since += paused.elapsed();
                }
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

    /// Measured before the checkpoint is written, so that no checkpoint lacks its row.
    fn measure_held_out(&mut self, metrics: &mut Metrics) -> Result<(), TrainError> {
        let Self { algorithm, learned, data, config, state, device, .. } = self;
        let loss = held_out::loss(algorithm, learned, data, config, state.seed, device)?;
        state.measured(loss);
        metrics.log_held_out(state.step, loss)
    }

    fn sampler(&self) -> Result<WindowSampler, DataError> {
        let context_length = self.algorithm.context_length();
        self.data.sampler(Part::Training, context_length, &self.config, self.state.seed)
    }

    fn load(&self, sampler: WindowSampler) -> Result<Loader, DataError> {
        self.data.load(sampler, self.config.batch_size, self.algorithm.reads_transitions())
    }

    fn save(&self) -> Result<Checkpoint, TrainError> {
        self.data.check()?;
        let saved = Checkpoint::save(
            &self.run.checkpoints(),
            &self.state,
            &self.learned,
            self.config.keep_checkpoints,
        );
        saved.map_err(|error| TrainError::Save {
            step: self.state.step,
            last: self.saved.as_ref().map(|checkpoint| checkpoint.state.step),
            source: Box::new(error),
        })
    }

    /// One step on one batch. From a GPU nothing is read: its figures stay there.
    fn step(&mut self, mut batch: Batch, loader: &Loader) -> Step {
        let most = self.algorithm.labels_per_context() as u64;
        let n_labels = batch.n_real.iter().map(|&n_real| (n_real as u64).min(most)).sum();
        let (n_drawn, indices) = (batch.drawn, batch.last_indices.clone());
        let learning_rate = self.schedule.at(self.state.step, self.state.tokens);
        let seed = seed::derive_nth(seed::derive(self.state.seed, "dropout"), self.state.step);
        let at = StepAt {
            step: self.state.step,
            n_steps: self.n_updates,
            learning_rate,
            seed: DropoutSeed(seed),
            device: &self.device,
        };
        let StepFigures { loss, grad_norm, others } =
            self.algorithm.step(&mut self.learned, &mut batch, &self.data, &at);
        loader.recycle(batch);
        self.state.step += 1;
        self.state.tokens += n_labels;
        self.state.n_drawn = n_drawn;
        let mut figures = vec![loss, grad_norm];
        figures.extend(others);
        Step {
            number: self.state.step,
            learning_rate,
            n_labels,
            indices,
            figures: Tensor::cat(figures, 0),
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
    /// What [`Algorithm::figures`] names.
    others: Vec<f64>,
}

/// Takes all steps out of `unread`; their figures come from the device in one go.
fn read(unread: &mut Vec<Step>) -> Vec<Step<Figures>> {
    let figures = unread.iter().map(|step| step.figures.clone()).collect();
    let numbers: Vec<f64> = Tensor::cat(figures, 0).into_data().iter().collect();
    let each = numbers.len() / unread.len().max(1);
    let steps = unread.drain(..).zip(numbers.chunks_exact(each.max(1)));
    steps
        .map(|(step, numbers)| {
            let figures =
                Figures { loss: numbers[0], grad_norm: numbers[1], others: numbers[2..].to_vec() };
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
    figures: Vec<(&'static str, f64)>,
    learning_rate: f64,
    grad_norm: f64,
}

impl Accumulator {
    /// Begins with what an earlier process has summed up.
    fn new(names: &[&'static str], earlier: Option<Unreported>) -> Self {
        let Unreported { steps, loss, figures } = earlier.unwrap_or_default();
        let figures = figures.into_iter().chain(std::iter::repeat(0.0));
        Self {
            since: Instant::now(),
            n_steps: steps,
            n_labels: 0,
            loss,
            figures: names.iter().copied().zip(figures).collect(),
            learning_rate: 0.0,
            grad_norm: 0.0,
        }
    }

    fn add(&mut self, step: &Step<Figures>) {
        self.n_steps += 1;
        self.n_labels += step.n_labels;
        self.loss += step.figures.loss;
        let sums = self.figures.iter_mut().zip(&step.figures.others);
        sums.for_each(|((_, sum), figure)| *sum += figure);
        self.learning_rate = step.learning_rate;
        self.grad_norm = step.figures.grad_norm;
    }

    fn unreported(&self) -> Option<Unreported> {
        let Self { n_steps: steps, loss, .. } = *self;
        let figures = self.figures.iter().map(|(_, sum)| *sum).collect();
        (steps > 0).then_some(Unreported { steps, loss, figures })
    }

    fn report(
        &self,
        state: &TrainState,
        n_updates: u64,
        waited: f64,
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
            figures: self.figures.iter().map(|&(name, sum)| (name, mean(sum))).collect(),
            learning_rate: self.learning_rate,
            grad_norm: self.grad_norm,
            timesteps_per_s: self.n_labels as f64 / seconds(self.since.elapsed()),
            waited_share: waited / total,
            seconds: total,
        }
    }
}
