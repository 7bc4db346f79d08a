//! Training as in a run, on random data: a batch is drawn and sent to the device, and the algorithm
//! steps.

use std::{sync::Arc, time::Instant};

use anyhow::Result;
use overtone_agents::SequenceModel;
use overtone_core::{ActionSpace, Episode, ObservationSpace, Outcome, seed};
use overtone_data::{
    ActionColumn, Batch, BatchOptions, Columns, Dataset, DatasetOptions, ObservationColumn, Subset,
    WindowSampler,
};
use overtone_model::{
    DecisionTransformerConfig, ModelConfig,
    burn::tensor::{Device, Tensor},
    contexts::FRAME,
    weights::NamedTensors,
};
use overtone_train::{
    AdamWConfig, Algorithm, Export, Precision, Recorder, ScheduleKind, StepAt, TrainConfig,
    TrainingData, optimizer::scalar,
};

const EPISODES: usize = 8;
const EPISODE_STEPS: usize = 100;

/// A training with random data.
pub struct Run {
    training: Box<dyn Training>,
    dataset: Arc<Dataset>,
    sampler: WindowSampler,
    options: BatchOptions,
    batch: usize,
}

/// Size and precision of a run, and its device.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// Contexts of a step.
    pub batch: usize,
    /// Precision of the products.
    pub precision: Precision,
    /// The device.
    pub device: &'a Device,
}

impl Run {
    /// A run of a Decision Transformer before its first step.
    ///
    /// # Errors
    /// When the model is invalid.
    pub fn new(
        model: DecisionTransformerConfig,
        observations: ObservationSpace,
        setting: Setting<'_>,
    ) -> Result<Self> {
        let is_pixels = matches!(observations, ObservationSpace::Pixels { .. });
        let actions = if is_pixels { ActionSpace::numbered(18) } else { ActionSpace::unit(3) };
        let model = ModelConfig::Transformer(model);
        let algorithm = SequenceModel { model, observations, actions };
        let spaces = (algorithm.observations.clone(), algorithm.actions.clone());
        Self::of(algorithm, (&spaces.0, &spaces.1), setting)
    }

    /// A run of any algorithm for these spaces.
    ///
    /// # Errors
    /// When the algorithm is invalid.
    pub fn of<A: Algorithm + 'static>(
        algorithm: A,
        (observations, actions): (&ObservationSpace, &ActionSpace),
        Setting { batch, precision, device }: Setting<'_>,
    ) -> Result<Self> {
        let device = device.clone().autodiff();
        let is_pixels = matches!(observations, ObservationSpace::Pixels { .. });
        let optimizer = if is_pixels { AdamWConfig::ATARI } else { AdamWConfig::default() };
        let config =
            TrainConfig { precision, optimizer, average_weights: false, ..TrainConfig::default() };
        let columns = columns(observations, actions);
        let dataset = Arc::new(Dataset::of(columns, &DatasetOptions::default())?);
        let mut data = TrainingData::new(dataset.clone(), 1.0);
        data.keep_frames_on(&device)?;
        let sampler = data.sampler(Subset::Training, algorithm.context_length(), &config, 1)?;
        let sampler = match algorithm.top_percents() {
            [] => sampler,
            percents => dataset.with_top_percents(sampler, percents, 1),
        };
        let state = algorithm.init(&config, &device, &mut seed::generator(1, "init"))?;
        let transitions = algorithm.lookahead();
        let options = BatchOptions { frames: false, transitions, ..BatchOptions::default() };
        let recorder = Recorder::new(&device);
        let training = Box::new(Learning { algorithm, state, data, recorder, device, n_steps: 0 });
        Ok(Self { training, dataset, sampler, options, batch })
    }

    /// Records steps from now on if the device can, or does not.
    pub fn record(&mut self, is_on: bool) {
        self.training.record(is_on);
    }

    /// The weights.
    pub fn weights(&self) -> NamedTensors {
        self.training.weights()
    }

    /// One step; returns the seconds until its last launch was issued, and until the loss was read.
    ///
    /// # Errors
    /// When a batch cannot be drawn.
    pub fn step(&mut self) -> Result<[f64; 2]> {
        let batch = self.draw()?;
        let started = Instant::now();
        let loss = self.training.learn(batch);
        let issued = started.elapsed().as_secs_f64();
        scalar(loss);
        Ok([issued, started.elapsed().as_secs_f64()])
    }

    /// `n` steps, at least 1, of which only the last loss is read; returns the seconds per step.
    ///
    /// # Errors
    /// When a batch cannot be drawn.
    pub fn round(&mut self, n: usize) -> Result<f64> {
        let started = Instant::now();
        for _ in 1..n {
            let batch = self.draw()?;
            self.training.learn(batch);
        }
        let batch = self.draw()?;
        scalar(self.training.learn(batch));
        Ok(started.elapsed().as_secs_f64() / n as f64)
    }

    fn draw(&mut self) -> Result<Batch> {
        let mut batch = Batch::default();
        batch.fill(&self.dataset, &mut self.sampler, self.batch, &self.options)?;
        Ok(batch)
    }
}

/// The steps of an algorithm.
trait Training {
    /// As [`Run::record`].
    fn record(&mut self, is_on: bool);

    /// As [`Run::weights`].
    fn weights(&self) -> NamedTensors;

    /// Issues a step and returns its loss, `[1]`.
    fn learn(&mut self, batch: Batch) -> Tensor<1>;
}

struct Learning<A: Algorithm> {
    algorithm: A,
    state: A::State,
    data: TrainingData,
    recorder: Recorder,
    device: Device,
    n_steps: u64,
}

impl<A: Algorithm> Training for Learning<A> {
    fn record(&mut self, is_on: bool) {
        self.recorder.switch(is_on);
    }

    fn weights(&self) -> NamedTensors {
        self.state.export_model()
    }

    fn learn(&mut self, mut batch: Batch) -> Tensor<1> {
        let at = StepAt {
            step: self.n_steps,
            n_steps: 1000,
            learning_rate: 1e-4,
            schedule: ScheduleKind::default(),
            seed: self.n_steps,
            device: &self.device,
        };
        self.n_steps += 1;
        let Self { algorithm, state, data, recorder, .. } = self;
        let recorded = algorithm
            .recorded()
            .and_then(|recorded| recorder.step(recorded, state, &batch, data, &at));
        if let Some(Err(error)) = recorder.news() {
            warn!("warning: steps are not recorded: {error}");
        }
        let figures = recorded.unwrap_or_else(|| {
            let figures = algorithm.step(state, &mut batch, data, &at);
            figures.loss + figures.grad_norm
        });
        figures.slice(0..1)
    }
}

/// Random episodes.
fn columns(observations: &ObservationSpace, actions: &ActionSpace) -> Columns {
    let n = EPISODES * EPISODE_STEPS;
    let numbers = |of: &str, n: usize| {
        let of = seed::derive(1, of);
        (0..n as u64).map(move |i| seed::derive_nth(of, i))
    };
    let real = |of: &str, n: usize| -> Vec<f32> {
        numbers(of, n).map(|x| (x >> 40) as f32 / (1 << 23) as f32 - 1.0).collect()
    };
    let observed = match observations {
        ObservationSpace::Pixels { .. } => {
            let pixels =
                numbers("pixels", n * FRAME * FRAME / 8).flat_map(u64::to_le_bytes).collect();
            ObservationColumn::Frames { pixels }
        }
        ObservationSpace::Vectors { width } => {
            ObservationColumn::Vectors { width: *width, values: real("vectors", n * width) }
        }
    };
    let size = actions.size();
    let acted = match actions {
        ActionSpace::Discrete { .. } => {
            let values = numbers("actions", n).map(|x| (x % size as u64) as u16).collect();
            ActionColumn::Discrete { n_actions: size, values }
        }
        ActionSpace::Continuous { .. } => {
            ActionColumn::Continuous { width: size, values: real("actions", n * size) }
        }
    };
    let episode = |i| Episode {
        start: i * EPISODE_STEPS,
        length: EPISODE_STEPS,
        outcome: Outcome::Truncated,
    };
    Columns::new(observed, acted, real("rewards", n), (0..EPISODES).map(episode).collect())
}
