//! Held-out episodes: their loss and the checkpoint that it selects. A run that was stopped or
//! killed measures the same as an uninterrupted one.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod pong;

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
};

use burn::tensor::Device;
use overtone_data::{Split, Subset};
use overtone_testkit::check_error;
use overtone_train::{
    Algorithm, Best, Checkpoint, Job, Observer, StepReport, TrainConfig, TrainError, Trainer,
    TrainingData, held_out,
};
use pong::{Bench, Witness, config, files};

/// Two of the dataset's four episodes are held out.
fn holding(updates: u64) -> TrainConfig {
    TrainConfig { held_out: 0.5, ..config(updates) }
}

/// `step,loss` of every row of the run's `held_out.csv`.
fn rows(bench: &Bench) -> Vec<(u64, f64)> {
    let text = fs::read_to_string(bench.run.path().join("held_out.csv")).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("step,loss"));
    let row = |line: &str| {
        let (step, loss) = line.split_once(',').unwrap();
        (step.parse().unwrap(), loss.parse().unwrap())
    };
    lines.map(row).collect()
}

/// Stops the run after a step.
struct StopAfter<'a>(u64, &'a AtomicBool);

impl Observer for StopAfter<'_> {
    fn stepped(&mut self, step: u64, _loss: f64) {
        // Set before the step's own checkpoint, so that it takes effect in the next step.
        self.1.fetch_or(step == self.0, Ordering::Relaxed);
    }
    fn logged(&mut self, _report: &StepReport) {}
    fn saved(&mut self, _checkpoint: &Checkpoint) {}
}

#[test]
fn the_loss_is_measured_with_every_checkpoint_and_selects_one() {
    let bench = Bench::new();
    let config = TrainConfig { checkpoint_every: 2, keep_checkpoints: 1, ..holding(9) };
    let (finished, witness) = bench.train(config);
    let state = finished.unwrap().checkpoint.state;
    let rows = rows(&bench);
    assert_eq!(rows.iter().map(|(step, _)| *step).collect::<Vec<_>>(), [2, 4, 6, 8, 9]);
    let mut best = rows[0];
    for &(step, loss) in &rows {
        if loss < best.1 {
            best = (step, loss);
        }
        let state: serde_json::Value =
            serde_json::from_slice(&witness.0[&step]["state.json"]).unwrap();
        assert_eq!(state["held_out"].as_f64(), Some(loss));
        assert_eq!(state["best"]["step"].as_u64(), Some(best.0), "after {step}");
    }
    assert_eq!(state.best, Some(Best { step: best.0, loss: best.1 }));
    assert_eq!(Checkpoint::best(&bench.run.checkpoints()).unwrap().0.state.step, best.0);
    // Only the newest and the best checkpoints remain.
    let mut kept = vec![format!("step-{:08}", best.0), "step-00000009".to_owned()];
    kept.dedup();
    assert_eq!(bench.steps(), kept);
}

/// Each loss is lower than the previous one, until the learning rate makes the last ones rise.
#[test]
fn the_best_checkpoint_outlives_newer_ones() {
    let bench = Bench::new();
    let falls =
        TrainConfig { learning_rate: 1e-3, checkpoint_every: 3, keep_checkpoints: 2, ..holding(6) };
    let best = bench.train(falls.clone()).0.unwrap().checkpoint;
    let rises = TrainConfig { learning_rate: 0.1, updates: 18, ..falls };
    let finished = bench
        .trainer(rises, Some(&best))
        .train(&AtomicBool::new(false), &mut Witness::default())
        .unwrap();
    let rows = rows(&bench);
    let lowest = rows.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    assert!(lowest.0 < 15, "nothing rose: {rows:?}");
    assert_eq!(finished.checkpoint.state.best.unwrap().step, lowest.0);
    let kept = [lowest.0, 15, 18].map(|step| format!("step-{step:08}"));
    assert_eq!(bench.steps(), kept);
    let (best, skipped) = Checkpoint::best(&bench.run.checkpoints()).unwrap();
    assert_eq!((best.state.step, skipped.len()), (lowest.0, 0));
    assert_eq!(best.state.held_out, Some(lowest.1));
    // Without it, the best of the existing ones.
    fs::remove_dir_all(bench.step(lowest.0)).unwrap();
    let next = rows.iter().filter(|row| row.0 >= 15).min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    let (best, skipped) = Checkpoint::best(&bench.run.checkpoints()).unwrap();
    assert_eq!((best.state.step, skipped.len()), (next.0, 1));
    assert!(skipped[0].to_string().contains(&format!("step-{:08}", lowest.0)), "{}", skipped[0]);
}

#[test]
fn the_measured_loss_is_of_held_out_contexts_without_dropout() {
    let bench = Bench::new();
    let checkpoint = bench.train(holding(3)).0.unwrap().checkpoint;
    let job = bench.job(holding(3));
    let device = Device::flex().autodiff();
    let mut generator = overtone_core::seed::generator(1, "any");
    let state = bench.algorithm().init(&job.config, &device, &mut generator).unwrap();
    let state = checkpoint.restore(state).unwrap();
    let algorithm = bench.algorithm();
    let loss = |data: &TrainingData, seed: u64| {
        held_out::loss(&algorithm, &state, data, &job.config, seed, &device).unwrap()
    };
    let again = loss(&job.data, job.seed);
    assert_eq!(Some(again), checkpoint.state.held_out);
    // The same with frames that are kept on the device.
    let mut kept = job.data.clone();
    kept.keep_frames_on(&device).unwrap();
    let other = loss(&kept, job.seed);
    assert!((other - again).abs() < 1e-4, "{other} {again}");
    // Cut into parts with more and less padding, it is the mean over all labels.
    let [whole, in_parts] = [1, 4].map(|micro_batches| {
        let config = TrainConfig { batch_size: 4, micro_batches, ..job.config.clone() };
        held_out::loss(&algorithm, &state, &job.data, &config, job.seed, &device).unwrap()
    });
    assert!((whole - in_parts).abs() < 1e-5, "{whole} {in_parts}");
    // Other contexts have another loss.
    let seed = (0..).find(|seed| *seed != job.seed && split(*seed) != split(job.seed)).unwrap();
    let other = loss(&job.data, seed);
    assert_ne!(other, again);
    assert_eq!(bench.dataset.episodes().as_slice().len(), 4);
}

fn split(seed: u64) -> Split {
    Split::draw(4, 0.5, seed).unwrap()
}

#[test]
fn no_context_is_on_both_sides() {
    let bench = Bench::new();
    let job = bench.job(holding(1));
    let split = split(job.seed);
    let episodes = bench.dataset.episodes().as_slice();
    let mut seen = 0;
    for part in [Subset::Training, Subset::HeldOut] {
        let mut sampler = job.data.sampler(part, 4, &job.config, job.seed).unwrap();
        seen += sampler.epoch_len();
        for _ in 0..200 {
            let window = sampler.draw();
            let inside = |episode: &usize| {
                let range = episodes[*episode].range();
                range.contains(&window.first) && range.contains(&(window.range().end - 1))
            };
            assert!(split.episodes(part).iter().any(inside), "{part:?} {window:?}");
        }
    }
    assert_eq!(seen, bench.dataset.n_transitions());
}

#[test]
fn a_stopped_run_measures_the_same_as_an_uninterrupted_one() {
    let whole = Bench::new();
    let config = TrainConfig { checkpoint_every: 3, ..holding(10) };
    whole.train(config.clone()).0.unwrap();
    // Stopped after update 5, between two checkpoints; then after update 6, which has one.
    let stopped = Bench::new();
    let stop = AtomicBool::new(false);
    let trainer = stopped.trainer(config.clone(), None);
    let first = trainer.train(&stop, &mut StopAfter(4, &stop)).unwrap();
    assert_eq!((first.interrupted, first.checkpoint.state.step), (true, 5));
    assert_eq!(first.checkpoint.state.held_out, None, "an uninterrupted run does not measure here");
    assert_eq!(first.checkpoint.state.best.unwrap().step, 3);
    let stop = AtomicBool::new(true);
    let trainer = stopped.trainer(config.clone(), Some(&first.checkpoint));
    let second = trainer.train(&stop, &mut Witness::default()).unwrap();
    assert_eq!(second.checkpoint.state.step, 6);
    // As if the run had been killed after its seventh update: a row that will be measured again.
    let csv = stopped.run.path().join("held_out.csv");
    fs::write(&csv, fs::read_to_string(&csv).unwrap() + "9,0.25\n10,0.").unwrap();
    let trainer = stopped.trainer(config, Some(&second.checkpoint));
    trainer.train(&AtomicBool::new(false), &mut Witness::default()).unwrap();
    assert_eq!(rows(&stopped), rows(&whole));
    assert_eq!(rows(&whole).iter().map(|(step, _)| *step).collect::<Vec<_>>(), [3, 6, 9, 10]);
    assert!(files(&stopped.step(10)) == files(&whole.step(10)), "the checkpoints differ");
}

/// Stopped between two rows of the metrics, at steps without planned checkpoints.
#[test]
fn a_stopped_run_reports_the_same_as_an_uninterrupted_one() {
    let metrics = |bench: &Bench| -> Vec<String> {
        let text = fs::read_to_string(bench.run.path().join("metrics.csv")).unwrap();
        let names: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        let timed = |name: &str| ["timesteps_per_s", "waited_share", "seconds"].contains(&name);
        assert_eq!(names.iter().filter(|name| timed(name)).count(), 3, "{names:?}");
        let row = |row: &str| {
            let numbers = row.split(',').zip(&names).filter(|(_, name)| !timed(name));
            numbers.map(|(number, _)| number).collect::<Vec<_>>().join(",")
        };
        text.lines().map(row).collect()
    };
    let config = TrainConfig { checkpoint_every: 4, log_every: 3, ..config(10) };
    let whole = Bench::new();
    whole.train(config.clone()).0.unwrap();
    let stopped = Bench::new();
    let stop = AtomicBool::new(false);
    let trainer = stopped.trainer(config.clone(), None);
    let first = trainer.train(&stop, &mut StopAfter(4, &stop)).unwrap().checkpoint;
    assert_eq!(first.state.unreported.as_ref().unwrap().steps, 2, "steps 4 and 5");
    let trainer = stopped.trainer(config, Some(&first));
    trainer.train(&AtomicBool::new(false), &mut Witness::default()).unwrap();
    assert_eq!(metrics(&stopped), metrics(&whole));
    assert_eq!(metrics(&whole).len(), 1 + 4);
    assert!(files(&stopped.step(10)) == files(&whole.step(10)), "the checkpoints differ");
}

#[test]
fn what_holds_nothing_out_is_as_it_was() {
    let bench = Bench::new();
    let checkpoint = bench.train(config(2)).0.unwrap().checkpoint;
    assert!(!bench.run.path().join("held_out.csv").exists());
    let state = fs::read_to_string(checkpoint.path.join("state.json")).unwrap();
    assert!(!state.contains("\"held_out\"") && !state.contains("best"), "{state}");
    let error = Checkpoint::best(&bench.run.checkpoints()).unwrap_err();
    assert!(matches!(error, TrainError::NoBest { .. }), "{error}");
    // Held-out episodes are not trained on after a resume.
    let held = Bench::new();
    let checkpoint = held.train(holding(2)).0.unwrap().checkpoint;
    let refused = |bench: &Bench, config, checkpoint: &Checkpoint| {
        let resume = Some(checkpoint.clone());
        let trainer = Trainer::new(bench.algorithm(), Job { resume, ..bench.job(config) });
        trainer.err().unwrap()
    };
    let error = refused(&held, config(4), &checkpoint);
    check_error!(error, TrainError::Checkpoint { reason, .. } if reason.contains("held_out"));
    // Training episodes are not measured after a resume.
    let checkpoint = bench.train(config(2)).0.unwrap().checkpoint;
    let error = refused(&bench, holding(4), &checkpoint);
    check_error!(error, TrainError::Checkpoint { reason, .. } if reason.contains("held_out"));
    for (held_out, message) in [(0.01, "holds out none of 4"), (0.95, "leaves none of 4")] {
        let config = TrainConfig { held_out, ..config(2) };
        let error = Trainer::new(held.algorithm(), held.job(config)).err().unwrap().to_string();
        assert!(error.contains("train.held_out") && error.contains(message), "{error}");
    }
}
