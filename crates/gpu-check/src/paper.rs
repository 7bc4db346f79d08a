//! Time of some updates of the paper's profile, and the estimated time of all of them.

use std::{path::Path, sync::atomic::AtomicBool, time::Instant};

use anyhow::{Context, Result};
use overtone::Prepared;
use overtone_agents::AlgorithmConfig;
use overtone_console::errors;
use overtone_model::device;
use overtone_settings::{Profile, RunConfig};
use overtone_train::{Checkpoint, Job, Observer, Precision, RunDir, StepReport, TrainConfig};

use crate::{Scale, report::Row};

/// Number of updates in the paper: 5 epochs of 500,000 transitions in batches of 128.
const UPDATES: f64 = 5.0 * 500_000.0 / 128.0;
/// Number of loss readings before the clock starts. Kernels are compiled and tuned, and the queue
/// fills.
pub const WARM_UP: usize = 2;

/// Trains in each precision, with the runs in `folder`. Also returns the first run's last
/// checkpoint, for the rollouts.
///
/// # Errors
/// When the data exists but training fails.
pub fn train(
    scale: &Scale,
    game: &str,
    device: &str,
    folder: &Path,
) -> Result<(Vec<Row>, Option<Checkpoint>)> {
    // The name of a CPU contains more than `device::choose` accepts.
    let device = if device.starts_with("cpu") { "cpu" } else { device };
    let (updates, batch_size) = scale.paper;
    let words = [format!("game={game}"), "profile=paper".into(), format!("device={device}")];
    let settings = RunConfig::resolve(&words, |_| Profile::Paper)?;
    if let Err(error) = overtone::find(&settings) {
        return Ok((Row::skipped(errors::sentence(&error)), None));
    }
    let prepared = overtone::prepare(&settings, None)?;
    let mut rows = Vec::new();
    let mut first = None;
    for precision in [Precision::F32, Precision::Bf16] {
        let config = TrainConfig {
            updates,
            batch_size,
            precision,
            // Several readings are needed to measure the time between them.
            log_every: (updates / 6).max(1),
            checkpoint_every: updates,
            ..settings.train.clone()
        };
        let (row, checkpoint) = timed(scale, &settings, config, prepared.clone(), folder, device)?;
        rows.push(row);
        first.get_or_insert(checkpoint);
    }
    Ok((rows, first))
}

fn timed(
    scale: &Scale,
    settings: &RunConfig,
    config: TrainConfig,
    mut prepared: Prepared,
    folder: &Path,
    device: &str,
) -> Result<(Row, Checkpoint)> {
    if let AlgorithmConfig::DecisionTransformer(model) = &mut prepared.agent.algorithm {
        model.0.n_layers = scale.layers;
    }
    let name = format!("{:?}", config.precision).to_lowercase();
    let run = RunDir::create(folder, &name).context("cannot make a folder for the run")?;
    let job = Job {
        run,
        config: config.clone(),
        data: prepared.data,
        agent: prepared.agent.to_value(),
        seed: settings.seed,
        device: device::choose(device)?.device,
        init: None,
        resume: None,
    };
    let trainer = prepared.agent.algorithm.trainer(&prepared.agent.task, job)?;
    let memory = trainer.memory();
    let mut clock = Clock::default();
    let finished = trainer.train(&AtomicBool::new(false), &mut clock)?;
    let per_update = clock.seconds_per_update().context("too few updates to time")?;
    let hours = per_update * UPDATES / 3600.0;
    let waited = 100.0 * finished.waited / finished.seconds.max(1e-9);
    let note = match scale.is_full {
        true => format!(
            "all {UPDATES:.0} updates: {hours:.2} h; {waited:.1} % of the time waiting for data; \
             {memory}"
        ),
        false => format!("a small model; {memory}"),
    };
    let what = format!("{name}, {} updates of {}", config.updates, config.batch_size);
    let row = Row { what, value: Some(1e3 * per_update), unit: "ms", note, ..Row::default() };
    Ok((row, finished.checkpoint))
}

/// Times of the loss readings by step.
#[derive(Default)]
struct Clock(Vec<(u64, Instant)>);

impl Clock {
    /// Seconds per update, from the end of the warm-up to the last reading.
    fn seconds_per_update(&self) -> Option<f64> {
        let (&(first, started), &(last, ended)) = (self.0.get(WARM_UP - 1)?, self.0.last()?);
        (last > first).then(|| (ended - started).as_secs_f64() / (last - first) as f64)
    }
}

impl Observer for Clock {
    fn stepped(&mut self, _step: u64, _loss: f64) {}
    fn logged(&mut self, report: &StepReport) {
        self.0.push((report.step, Instant::now()));
    }
    fn saved(&mut self, _checkpoint: &Checkpoint) {}
}
