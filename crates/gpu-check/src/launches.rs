//! Kernel launches and copies of a training step, and the time that the host needs for it.
//!
//! A step is that of a run: the batch is sent to the device, and the algorithm steps.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Instant,
};

use anyhow::Result;
use cubecl::{
    config::{TypeNameFormatLevel, type_name_format},
    logging::{LaunchObservation, LaunchObserver, ProfileDuration, TimingRequest},
};
use overtone_agents::{SequenceLearner, SequenceModel};
use overtone_core::{ActionSpace, Episode, ObservationSpace, Outcome, seed};
use overtone_data::{
    ActionColumn, Batch, BatchOptions, Columns, Dataset, DatasetOptions, ObservationColumn, Subset,
    WindowSampler,
};
use overtone_model::{
    DecisionTransformerConfig, ModelConfig, PositionsConfig, ReturnModelConfig,
    burn::tensor::Device,
    conditioning::{AverageReturn, ConditionerConfig},
    contexts::{FRAME, STACK},
    decision_transformer::DropoutSeed,
    device::is_cpu,
};
use overtone_train::{
    AdamWConfig, Algorithm, Precision, ScheduleKind, StepAt, TrainConfig, TrainingData,
    optimizer::scalar,
};

use super::{Scale, report::Row, synthetic};

/// Untimed steps, in which kernels are compiled.
const WARM_UP: u64 = 3;
const TIMED: usize = 20;
/// Steps in which launches are counted, and steps in which they are timed on the device.
const COUNTED: usize = 4;
/// Kernels in the table, and characters of their names.
const MOST_KERNELS: usize = 15;
const MOST_CHARACTERS: usize = 60;
const EPISODES: usize = 8;
const EPISODE_STEPS: usize = 100;

/// Counts the launches of a step of each model.
///
/// # Errors
/// When a model or its data cannot be made.
pub fn measure(scale: &Scale, device: &Device) -> Result<Vec<Row>> {
    if is_cpu(device) {
        return Ok(Row::skipped("a CPU launches no kernels"));
    }
    let mut rows = Vec::new();
    for precision in [Precision::F32, Precision::Bf16] {
        let name = format!("{precision:?}").to_lowercase();
        let model = synthetic::config(scale.layers, 30, false, false);
        let run = Run::new(model, synthetic::frames(), scale.batch, precision, device)?;
        rows.extend(run.rows(&format!("Atari, {name}, batch {}", scale.batch))?);
    }
    let vectors = ObservationSpace::Vectors { width: 11 };
    // As `env=hopper profile=paper` and `env=hopper`.
    let paper = DecisionTransformerConfig::gym(1000);
    let default = DecisionTransformerConfig {
        context_length: 5,
        dropout: 0.0,
        positions: PositionsConfig::Order,
        conditioning: Some(ConditionerConfig {
            return_range: Some([0.0, 1.0]),
            average_return: Some(AverageReturn { horizon: 1000 }),
            return_model: Some(ReturnModelConfig::hl_gauss()),
            top_percents: vec![10.0, 50.0, 100.0],
        }),
        ..paper.clone()
    };
    for (model, batch) in [(paper, 64), (default, 128)] {
        let batch = if scale.is_full { batch } else { scale.batch };
        let name = format!("robot, f32, K {}, batch {batch}", model.context_length);
        let run = Run::new(model, vectors.clone(), batch, Precision::F32, device)?;
        rows.extend(run.rows(&name)?);
    }
    Ok(rows)
}

/// A training with random data.
struct Run {
    algorithm: SequenceModel,
    state: SequenceLearner,
    data: TrainingData,
    sampler: WindowSampler,
    batch: usize,
    device: Device,
    n_steps: u64,
}

impl Run {
    fn new(
        model: DecisionTransformerConfig,
        observations: ObservationSpace,
        batch: usize,
        precision: Precision,
        device: &Device,
    ) -> Result<Self> {
        let device = device.clone().autodiff();
        let is_pixels = matches!(observations, ObservationSpace::Pixels { .. });
        let actions = if is_pixels { ActionSpace::numbered(18) } else { ActionSpace::unit(3) };
        let optimizer = if is_pixels { AdamWConfig::ATARI } else { AdamWConfig::default() };
        let config =
            TrainConfig { precision, optimizer, average_weights: false, ..TrainConfig::default() };
        let dataset = Arc::new(Dataset::of(columns(&observations), &DatasetOptions::default())?);
        let mut data = TrainingData::new(dataset.clone(), 1.0);
        data.keep_frames_on(&device)?;
        let sampler = data.sampler(Subset::Training, model.context_length, &config, 1)?;
        let algorithm =
            SequenceModel { model: ModelConfig::Transformer(model), observations, actions };
        let sampler = match algorithm.top_percents() {
            [] => sampler,
            percents => dataset.with_top_percents(sampler, percents, 1),
        };
        let state = algorithm.init(&config, &device, &mut seed::generator(1, "init"))?;
        Ok(Self { algorithm, state, data, sampler, batch, device, n_steps: 0 })
    }

    /// One step; returns the seconds until its last launch was issued, and until the loss was read.
    fn step(&mut self) -> Result<[f64; 2]> {
        let mut batch = Batch::default();
        let options = BatchOptions { frames: false, ..BatchOptions::default() };
        batch.fill(&self.data.dataset().clone(), &mut self.sampler, self.batch, &options)?;
        let at = StepAt {
            step: self.n_steps,
            n_steps: 1000,
            learning_rate: 1e-4,
            schedule: ScheduleKind::default(),
            seed: DropoutSeed(self.n_steps),
            device: &self.device,
        };
        self.n_steps += 1;
        let started = Instant::now();
        let figures = self.algorithm.step(&mut self.state, &mut batch, &self.data, &at);
        let issued = started.elapsed().as_secs_f64();
        scalar(figures.loss + figures.grad_norm);
        Ok([issued, started.elapsed().as_secs_f64()])
    }

    /// The launches of some steps, timed on the device or only counted.
    fn observe(&mut self, timed: bool) -> Result<BTreeMap<&'static str, Launched>> {
        let observer = Arc::new(Observer { launched: Mutex::default(), timed });
        let observation = LaunchObservation::new(observer.clone());
        for _ in 0..COUNTED {
            self.step()?;
        }
        drop(observation);
        let launched =
            std::mem::take(&mut *observer.launched.lock().unwrap_or_else(|e| e.into_inner()));
        Ok(launched)
    }

    fn rows(mut self, name: &str) -> Result<Vec<Row>> {
        for _ in 0..WARM_UP {
            self.step()?;
        }
        let times = (0..TIMED).map(|_| self.step()).collect::<Result<Vec<_>>>()?;
        let before = Copies::so_far();
        let mut launched = self.observe(false)?;
        let copies = before.zip(Copies::so_far()).map(|(before, after)| after.since(before));
        // Kernels that were timed get their times; the counts stay those of undisturbed steps.
        for (kernel, timed) in self.observe(true)? {
            if let Some(own) = launched.get_mut(kernel) {
                own.profiles = timed.profiles;
            }
        }
        let per_step = |n: usize| n as f64 / COUNTED as f64;
        let all = launched.values().map(|kernel| kernel.n).sum();
        let mut rows = vec![Row {
            what: format!("{name}: launches per step"),
            value: Some(per_step(all)),
            note: copies.unwrap_or_else(|| "copies are not counted on a real device".into()),
            ..Row::default()
        }];
        for (i, until) in ["issued", "loss is read"].into_iter().enumerate() {
            let ms: Vec<f64> = times.iter().map(|both| 1e3 * both[i]).collect();
            rows.push(Row::measured(
                format!("{name}: until the {until}"),
                "ms",
                &ms,
                String::new(),
            ));
        }
        let mut kernels: Vec<_> = launched.into_iter().collect();
        kernels.sort_by_key(|(_, kernel)| std::cmp::Reverse(kernel.n));
        for (kernel, launches) in kernels.into_iter().take(MOST_KERNELS) {
            let what = type_name_format(kernel, TypeNameFormatLevel::Balanced);
            let what = what.replace(" |", ",").chars().take(MOST_CHARACTERS).collect();
            let n = launches.n;
            rows.push(Row {
                what,
                value: Some(per_step(n)),
                note: launches.time(),
                ..Row::default()
            });
        }
        Ok(rows)
    }
}

/// Launches of one kernel.
#[derive(Default)]
struct Launched {
    n: usize,
    profiles: Vec<ProfileDuration>,
}

impl Launched {
    /// Its time on the device in a step.
    fn time(self) -> String {
        let resolved = self.profiles.into_iter().filter_map(|profile| {
            cubecl::future::block_on(profile.resolve()).map(|ticks| ticks.duration().as_secs_f64())
        });
        let seconds: f64 = resolved.sum();
        format!("{:.3} ms per step", 1e3 * seconds / COUNTED as f64)
    }
}

/// Counts launches by the kernels' names.
struct Observer {
    launched: Mutex<BTreeMap<&'static str, Launched>>,
    timed: bool,
}

impl Observer {
    fn change(&self, kernel: &'static str, change: impl FnOnce(&mut Launched)) {
        if let Ok(mut launched) = self.launched.lock() {
            change(launched.entry(kernel).or_default());
        }
    }
}

impl LaunchObserver for Observer {
    fn launched(&self, kernel: &'static str) {
        self.change(kernel, |launched| launched.n += 1);
    }

    fn timing(&self) -> TimingRequest {
        if self.timed { TimingRequest::Deferred } else { TimingRequest::None }
    }

    fn profiled(&self, kernel: &'static str, profile: ProfileDuration) {
        self.change(kernel, |launched| launched.profiles.push(profile));
    }
}

/// What the driver of the tests counted: launches, copies to the device, their bytes, copies to
/// the host, and so on.
struct Copies(Vec<u64>);

impl Copies {
    /// The counts; `None` with any other driver.
    fn so_far() -> Option<Self> {
        let bytes = std::fs::read(std::env::var_os("CUDA_COUNTS")?).ok()?;
        let words = bytes
            .chunks_exact(8)
            .filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)));
        Some(Self(words.collect()))
    }

    fn since(&self, before: Self) -> String {
        let since = |i: usize| (self.0[i] - before.0[i]) as f64 / COUNTED as f64;
        let (launches, copies, bytes) = (since(0), since(1), since(2) / 1024.0);
        format!("{launches:.1} reach the driver; {copies:.1} copies to the device, {bytes:.0} KiB")
    }
}

/// Random episodes.
fn columns(observations: &ObservationSpace) -> Columns {
    let n = EPISODES * EPISODE_STEPS;
    let numbers = |of: &str, n: usize| {
        let of = seed::derive(1, of);
        (0..n as u64).map(move |i| seed::derive_nth(of, i))
    };
    let real = |of: &str, n: usize| -> Vec<f32> {
        numbers(of, n).map(|x| (x >> 40) as f32 / (1 << 23) as f32 - 1.0).collect()
    };
    let (observed, acted) = match observations {
        ObservationSpace::Pixels { .. } => {
            let pixels =
                numbers("pixels", n * FRAME * FRAME / 8).flat_map(u64::to_le_bytes).collect();
            let frames = ObservationColumn::Frames { pixels, shape: [FRAME; 2], stack: STACK };
            let values = numbers("actions", n).map(|x| (x % 18) as u16).collect();
            (frames, ActionColumn::Discrete { n_actions: 18, values })
        }
        ObservationSpace::Vectors { width } => {
            let vectors =
                ObservationColumn::Vectors { width: *width, values: real("vectors", n * width) };
            (vectors, ActionColumn::Continuous { width: 3, values: real("actions", n * 3) })
        }
    };
    let episode = |i| Episode {
        start: i * EPISODE_STEPS,
        length: EPISODE_STEPS,
        outcome: Outcome::Truncated,
    };
    Columns::new(observed, acted, real("rewards", n), (0..EPISODES).map(episode).collect())
}
