//! Kernel launches and copies of a training step, and the time that the host needs for it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use anyhow::Result;
use cubecl::{
    config::{TypeNameFormatLevel, type_name_format},
    future::block_on,
    logging::{LaunchObservation, LaunchObserver, ProfileDuration, TimingRequest},
};
use overtone_core::ObservationSpace;
use overtone_model::{
    DecisionTransformerConfig, PositionsConfig, ReturnModelConfig,
    burn::tensor::Device,
    conditioning::{AverageReturn, ConditionerConfig},
    device::is_cpu,
};
use overtone_train::Precision;

use super::{
    Scale,
    random_run::{Run, Setting},
    row::Row,
    speed::BATCH_OF_VALUES,
    synthetic,
};

/// Untimed steps, in which kernels are compiled.
const WARM_UP: usize = 12;
const TIMED: usize = 20;
/// Steps in which launches are counted, and steps in which they are timed on the device.
const COUNTED: usize = 4;
/// Kernels in the table, and characters of their names.
const MOST_KERNELS: usize = 15;
const MOST_CHARACTERS: usize = 60;

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
        let setting = Setting { batch: scale.batch, precision, device };
        let run = Run::new(model, synthetic::frames(), setting)?;
        rows.extend(rows_of(run, &format!("frames, {name}, batch {}", scale.batch))?);
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
        for precision in [Precision::F32, Precision::Bf16] {
            let kind = format!("{precision:?}").to_lowercase();
            let name = format!("vectors, {kind}, K {}, batch {batch}", model.context_length);
            let run =
                Run::new(model.clone(), vectors.clone(), Setting { batch, precision, device })?;
            rows.extend(rows_of(run, &name)?);
        }
    }
    let batch = if scale.is_full { BATCH_OF_VALUES } else { scale.batch };
    for (name, run) in synthetic::values(Setting { batch, precision: Precision::F32, device })? {
        rows.extend(rows_of(run, &format!("{name}, f32, batch {batch}"))?);
    }
    Ok(rows)
}

/// The launches and times of a run's steps.
fn rows_of(mut run: Run, name: &str) -> Result<Vec<Row>> {
    for _ in 0..WARM_UP {
        run.step()?;
    }
    let times = (0..TIMED).map(|_| run.step()).collect::<Result<Vec<_>>>()?;
    let before = driver_counts();
    for _ in 0..COUNTED {
        run.step()?;
    }
    let after = driver_counts();
    // The kernels of a recorded step are launched as one graph, which nothing observes.
    run.record(false);
    run.step()?;
    let kernels = Launches::of(&mut run, false)?;
    let timed = Launches::of(&mut run, true)?;
    let per_step = |n: usize| n as f64 / COUNTED as f64;
    let mut rows = vec![Row {
        what: format!("{name}: launches per step"),
        value: Some(per_step(kernels.values().map(|kernel| kernel.n).sum())),
        note: before.zip(after).map(|(before, after)| counted(&before, &after)).unwrap_or_default(),
        ..Row::default()
    }];
    for (i, until) in ["issued", "loss is read"].into_iter().enumerate() {
        let ms: Vec<f64> = times.iter().map(|both| 1e3 * both[i]).collect();
        rows.push(Row::measured(format!("{name}: until {until}"), "ms", &ms, String::new()));
    }
    // Longest first; without times, most frequent first.
    let ms = |name| timed.get(name).map_or(0.0, |kernel| 1e3 * kernel.seconds / COUNTED as f64);
    let mut kernels: Vec<_> =
        kernels.iter().map(|(&name, kernel)| (ms(name), kernel.n, name)).collect();
    kernels.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    for (ms, n, name) in kernels.into_iter().take(MOST_KERNELS) {
        let name = type_name_format(name, TypeNameFormatLevel::Balanced).replace(" |", ",");
        rows.push(Row {
            what: name.chars().take(MOST_CHARACTERS).collect(),
            value: Some(per_step(n)),
            note: format!("{ms:.3} ms on the device"),
            ..Row::default()
        });
    }
    Ok(rows)
}

/// Launches of one kernel.
#[derive(Default)]
struct Kernel {
    n: usize,
    /// Measurements that are not read yet.
    profiles: Vec<ProfileDuration>,
    /// Their sum.
    seconds: f64,
}

/// Counts launches by the kernels' names, and times them if asked.
struct Launches {
    kernels: Mutex<BTreeMap<&'static str, Kernel>>,
    timed: bool,
}

impl Launches {
    /// The launches of some steps.
    fn of(run: &mut Run, timed: bool) -> Result<BTreeMap<&'static str, Kernel>> {
        let observer = Arc::new(Self { kernels: Mutex::default(), timed });
        let observation = LaunchObservation::new(observer.clone());
        for _ in 0..COUNTED {
            run.step()?;
        }
        drop(observation);
        let mut kernels = BTreeMap::new();
        observer.change(|observed| kernels = std::mem::take(observed));
        for kernel in kernels.values_mut() {
            let ticks = kernel.profiles.drain(..).filter_map(|profile| block_on(profile.resolve()));
            kernel.seconds = ticks.map(|ticks| ticks.duration().as_secs_f64()).sum();
        }
        Ok(kernels)
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<&'static str, Kernel>)) {
        change(&mut self.kernels.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    }
}

impl LaunchObserver for Launches {
    fn launched(&self, kernel: &'static str) {
        self.change(|kernels| kernels.entry(kernel).or_default().n += 1);
    }

    fn timing(&self) -> TimingRequest {
        if self.timed { TimingRequest::Deferred } else { TimingRequest::None }
    }

    fn profiled(&self, kernel: &'static str, profile: ProfileDuration) {
        self.change(|kernels| kernels.entry(kernel).or_default().profiles.push(profile));
    }
}

/// The counters of the driver in `tests/counting`; `None` with any other driver.
fn driver_counts() -> Option<Vec<u64>> {
    let bytes = std::fs::read(std::env::var_os("CUDA_COUNTS")?).ok()?;
    let words = bytes.chunks_exact(8).map(|word| word.try_into().map(u64::from_le_bytes));
    words.collect::<Result<_, _>>().ok()
}

/// The driver's counts of a step.
fn counted(before: &[u64], after: &[u64]) -> String {
    let counts = before.iter().zip(after).map(|(before, after)| after - before);
    let mut counts = counts.map(|n| n as f64 / COUNTED as f64);
    let mut next = || counts.next().unwrap_or_default();
    let (launches, copies, kib, to_host) = (next(), next(), next() / 1024.0, next());
    let (replays, replayed) = (next(), next());
    format!(
        "driver: {launches} launches, {copies} copies to the device ({kib:.0} KiB), {to_host} to the \
         host, {replays} graphs of {replayed} nodes"
    )
}
