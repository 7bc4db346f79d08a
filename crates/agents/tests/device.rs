//! Differences of training on a GPU, tested on the CPU: figures read for several steps at a time,
//! frames on the device, and mixed precision.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod pong;

use std::{fs, sync::atomic::AtomicBool};

use burn::tensor::{Device, Int, Tensor};
use overtone_data::{Batch, BatchObservations, BatchOptions, Sampling, WindowSampler};
use overtone_model::{
    Observed,
    contexts::{FRAME, STACK},
};
use overtone_train::{
    Checkpoint, FrameBank, Observer, Precision, StepReport, TrainConfig, TrainError, Trainer,
    Training, TrainingData,
};
use pong::{Bench, config, files};

/// Every step's loss, and the columns of the metrics except times.
#[derive(Default, Debug, PartialEq)]
struct Recorder {
    losses: Vec<(u64, f64)>,
    rows: Vec<[f64; 5]>,
}

impl Observer for Recorder {
    fn stepped(&mut self, step: u64, loss: f64) {
        self.losses.push((step, loss));
    }
    fn logged(&mut self, report: &StepReport) {
        let StepReport { step, loss, grad_norm, .. } = *report;
        let figures: Vec<f64> = report.figures.iter().map(|&(_, figure)| figure).collect();
        let [cross_entropy, accuracy] = figures[..] else { panic!("{report:?}") };
        self.rows.push([step as f64, loss, cross_entropy, accuracy, grad_norm]);
    }
    fn saved(&mut self, _checkpoint: &Checkpoint) {}
}

fn record(config: TrainConfig, on_device: bool) -> (Bench, Recorder) {
    let bench = Bench::new();
    let mut job = bench.job(config);
    if on_device {
        job.data.keep_frames_on(&job.device).unwrap();
    }
    let trainer = Box::new(Trainer::new(bench.algorithm(), job).unwrap());
    let mut recorder = Recorder::default();
    trainer.train(&AtomicBool::new(false), &mut recorder).unwrap();
    (bench, recorder)
}

fn eleven_steps() -> TrainConfig {
    TrainConfig { log_every: 4, checkpoint_every: 7, ..config(11) }
}

#[test]
fn reading_late_changes_neither_weights_nor_metrics() {
    let (bench, once) = record(eleven_steps(), false);
    assert_eq!(once.losses.len(), 11);
    assert_eq!(once.rows.iter().map(|row| row[0]).collect::<Vec<_>>(), [4.0, 8.0, 11.0]);
    for read_every in [3, 100] {
        let (other, late) = record(TrainConfig { read_every, ..eleven_steps() }, false);
        assert_eq!(late, once, "{read_every}");
        for step in [7, 11] {
            assert!(files(&bench.step(step)) == files(&other.step(step)), "{read_every}: {step}");
        }
    }
}

#[test]
fn a_non_finite_loss_is_found_when_it_is_read() {
    let fails = |read_every| {
        let bench = Bench::new();
        let config = TrainConfig {
            learning_rate: 1e30,
            log_every: 100,
            checkpoint_every: 100,
            read_every,
            ..config(50)
        };
        let error = bench.train(config).0.unwrap_err();
        assert!(error.to_string().contains("; no checkpoint exists yet. Try"), "{error}");
        let TrainError::NonFinite { step, what, value, indices, .. } = error else {
            panic!("{error}")
        };
        assert!(Checkpoint::newest(&bench.run.checkpoints()).is_err(), "nothing was saved");
        (step, what, value.to_string(), fs::read(indices).unwrap())
    };
    let at_once = fails(1);
    assert_eq!(fails(9), at_once);
    assert_eq!(fails(100), at_once);
}

fn stacks(windows: Tensor<4, Int>) -> Vec<u8> {
    let [rows, length, ..] = windows.dims();
    let steps = length + 1 - STACK;
    let stack = |row: usize, step: usize| windows.clone().slice([row..row + 1, step..step + STACK]);
    let all = (0..rows).flat_map(|row| (0..steps).map(move |step| (row, step)));
    let stacks = Tensor::cat(all.map(|(row, step)| stack(row, step)).collect(), 0);
    assert_eq!(stacks.dims()[1..], [STACK, FRAME, FRAME]);
    stacks.into_data().iter::<u8>().collect()
}

#[test]
fn rows_of_the_bank_are_the_frames_of_the_batch() {
    let bench = Bench::new();
    let device = Device::flex();
    let bank = FrameBank::upload(bench.dataset.frames().unwrap(), &device).unwrap();
    let mut sampler =
        WindowSampler::new(bench.dataset.index().clone(), Sampling::Uniform, 4, 5).unwrap();
    let mut n_padded = 0;
    for _ in 0..5 {
        let mut batch = Batch::default();
        batch.fill(&bench.dataset, &mut sampler, 6, &BatchOptions::default()).unwrap();
        n_padded += batch.n_real.iter().filter(|&&n| n < 4).count();
        let BatchObservations::Frames { rows, .. } = &batch.observations else { panic!("frames") };
        let from_bank = stacks(bank.stacks(rows, [6, 4]));
        let data = TrainingData::new(bench.dataset.clone(), 1.0);
        let Observed::Frames(sent) = data.contexts(&mut batch, &device).observations else {
            panic!("frames");
        };
        assert!(from_bank == stacks(sent));
    }
    assert!(n_padded > 0, "no window with padding was drawn");
}

#[test]
fn training_is_the_same_from_frames_on_the_device() {
    let (_, sent) = record(eleven_steps(), false);
    let (_, kept) = record(eleven_steps(), true);
    for ((_, sent), (_, kept)) in sent.losses.iter().zip(&kept.losses) {
        assert!((sent - kept).abs() < 1e-4, "{sent} {kept}"); // seen: 1e-6
    }
}

#[test]
fn mixed_precision_trains_as_well() {
    let (_, exact) = record(eleven_steps(), false);
    let (_, mixed) = record(TrainConfig { precision: Precision::Bf16, ..eleven_steps() }, false);
    for ((_, exact), (_, mixed)) in exact.losses.iter().zip(&mixed.losses) {
        assert!((exact - mixed).abs() < 0.02 * exact, "{exact} {mixed}");
    }
    assert_ne!(exact, mixed);
}
