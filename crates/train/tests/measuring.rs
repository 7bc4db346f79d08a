//! Checkpoints that are measured while training waits. Each planned one is measured once, however
//! often the run was stopped. The measuring time does not count as training.
//!
//! The model is a number that each step increments.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::{
    fs,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
    thread,
    time::{Duration, Instant},
};

use burn::tensor::{Device, Tensor, TensorData};
use overtone_core::{Episode, Outcome, seed::Generator};
use overtone_data::{ActionColumn, Batch, Columns, Dataset, DatasetOptions, ObservationColumn};
use overtone_model::{ModelError, weights::NamedTensors};
use overtone_train::{
    Algorithm, Checkpoint, Export, Exported, Finished, Job, Observer, RunDir, StepAt, StepFigures,
    Stored, TrainConfig, TrainError, Trainer, Training, TrainingData, held_out,
};

struct Counts;

/// Time to measure a batch of held-out episodes.
const A_WHILE: Duration = Duration::from_millis(10);

struct Count(f32);

fn tensors(number: f32) -> NamedTensors {
    [("count".to_owned(), TensorData::new(vec![number], [1]))].into()
}

impl Export for Count {
    fn export_model(&self) -> NamedTensors {
        tensors(self.0)
    }

    fn export_training(&self) -> NamedTensors {
        tensors(0.0)
    }
}

impl Stored for Count {
    fn begin(self, exported: &Exported) -> Result<Self, ModelError> {
        Ok(Self(exported.model["count"].iter().next().unwrap()))
    }

    fn import(self, exported: &Exported, _n_steps: u64) -> Result<Self, ModelError> {
        self.begin(exported)
    }

    fn n_parameters(&self) -> usize {
        1
    }
}

impl Algorithm for Counts {
    type State = Count;

    fn figures(&self) -> &'static [&'static str] {
        &[]
    }

    fn context_length(&self) -> usize {
        1
    }

    fn init(
        &self,
        _config: &TrainConfig,
        _device: &Device,
        _generator: &mut Generator,
    ) -> Result<Count, TrainError> {
        Ok(Count(0.0))
    }

    fn step(
        &self,
        state: &mut Count,
        _batch: &mut Batch,
        _data: &TrainingData,
        at: &StepAt<'_>,
    ) -> StepFigures {
        state.0 += 1.0;
        let number = || Tensor::from_data(TensorData::new(vec![1.0f32], [1]), at.device).inner();
        StepFigures { loss: number(), grad_norm: number(), others: Vec::new() }
    }

    fn held_out_loss(
        &self,
        _state: &Count,
        batch: &mut Batch,
        _data: &TrainingData,
        device: &Device,
    ) -> Option<Tensor<1>> {
        thread::sleep(A_WHILE);
        Some(Tensor::from_data(TensorData::new(vec![batch.batch as f32], [1]), device))
    }
}

/// Measures the number in a checkpoint, and its double. At the checkpoints in `stops_at`, it
/// simulates a user who stops the program.
#[derive(Default)]
struct Measures {
    stops_at: Option<u64>,
    requested: Vec<u64>,
    stepped: Vec<u64>,
}

impl Observer for Measures {
    fn stepped(&mut self, step: u64, _loss: f64) {
        self.stepped.push(step);
    }

    fn measured(&mut self, checkpoint: &Checkpoint) -> Option<Vec<(String, f64)>> {
        let step = checkpoint.state.step;
        self.requested.push(step);
        if self.stops_at == Some(step) {
            return None;
        }
        let count: f32 = checkpoint.weights().unwrap()["count"].iter().next().unwrap();
        Some(vec![("count".into(), count.into()), ("twice".into(), (2.0 * count).into())])
    }
}

/// 6 steps in `run`; `held_out` is the fraction of the two episodes that is held out.
fn job(run: &RunDir, held_out: f64) -> Job {
    let episode = |start| Episode { start, length: 2, outcome: Outcome::Terminated };
    let columns = Columns::new(
        ObservationColumn::Vectors { width: 1, values: vec![0.0, 1.0, 2.0, 3.0] },
        ActionColumn::Discrete { n_actions: 2, values: vec![0, 1, 0, 1] },
        vec![1.0; 4],
        vec![episode(0), episode(2)],
    );
    let options = DatasetOptions { held_out, seed: 1, ..DatasetOptions::default() };
    let data = Dataset::of(columns, &options).unwrap();
    Job {
        run: run.clone(),
        config: TrainConfig {
            updates: 6,
            batch_size: 2,
            log_every: 1,
            checkpoint_every: 2,
            held_out,
            ..TrainConfig::default()
        },
        data: TrainingData::new(Arc::new(data), 1.0),
        agent: serde_json::json!("counts"),
        seed: 1,
        device: Device::flex(),
        init: None,
        resume: None,
    }
}

/// Trains in `run`, from its newest checkpoint if there is one.
fn train(run: &RunDir, stops_at: Option<u64>) -> (Finished, Measures) {
    let resume = Checkpoint::newest(&run.checkpoints()).ok().map(|(newest, _)| newest);
    let trainer = Box::new(Trainer::new(Counts, Job { resume, ..job(run, 0.0) }).unwrap());
    let mut observer = Measures { stops_at, ..Measures::default() };
    let finished = trainer.train(&AtomicBool::new(false), &mut observer).unwrap();
    (finished, observer)
}

/// Steps, names and values of the measurements.
fn rows(run: &Path) -> Vec<String> {
    let text = fs::read_to_string(run.join("checkpoints.csv")).unwrap_or_default();
    let without_seconds = |row: &str| {
        let cells: Vec<&str> = row.split(',').collect();
        format!("{} {} {}", cells[0], cells[2], cells[3])
    };
    text.lines().skip(1).map(without_seconds).collect()
}

const ALL: [&str; 6] =
    ["2 count 2", "2 twice 4", "4 count 4", "4 twice 8", "6 count 6", "6 twice 12"];

#[test]
fn a_stopped_measurement_is_repeated_when_the_run_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let run = RunDir::create(folder.path(), "run").unwrap();
    // Stopped twice during the measurement of the same checkpoint: no step is taken in between.
    for requested in [vec![2, 4], vec![4]] {
        let (finished, observer) = train(&run, Some(4));
        assert_eq!((finished.interrupted, finished.checkpoint.state.step), (true, 4));
        assert_eq!(observer.requested, requested);
        assert_eq!(rows(run.path()), ALL[..2]);
    }
    let (finished, observer) = train(&run, None);
    assert_eq!((finished.interrupted, observer.requested), (false, vec![4, 6]));
    assert_eq!(observer.stepped, [5, 6]);
    assert_eq!(rows(run.path()), ALL);
    // Measured checkpoints are not measured again.
    let (finished, observer) = train(&run, None);
    assert_eq!((finished.interrupted, observer.requested), (false, vec![]));
    assert_eq!(rows(run.path()), ALL);
}

#[test]
fn a_stopped_measurement_of_the_last_checkpoint_is_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let run = RunDir::create(folder.path(), "run").unwrap();
    let (finished, _) = train(&run, Some(6));
    assert_eq!((finished.interrupted, finished.checkpoint.state.step), (true, 6));
    assert_eq!(rows(run.path()), ALL[..4]);
    let (finished, observer) = train(&run, None);
    assert_eq!((finished.interrupted, observer.requested), (false, vec![6]));
    assert_eq!(rows(run.path()), ALL);
}

/// A killed run has the files of a stopped one, and possibly an incomplete row.
#[test]
fn an_incomplete_row_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let run = RunDir::create(folder.path(), "run").unwrap();
    train(&run, Some(4));
    let path = run.path().join("checkpoints.csv");
    let text = fs::read_to_string(&path).unwrap() + "4,0.01,cou";
    fs::write(&path, text).unwrap();
    let (_, observer) = train(&run, None);
    assert_eq!(observer.requested, [4, 6]);
    assert_eq!(rows(run.path()), ALL);
}

/// As if 4 steps had taken 100 seconds.
#[test]
fn seconds_are_those_of_all_processes() {
    let folder = tempfile::tempdir().unwrap();
    let run = RunDir::create(folder.path(), "run").unwrap();
    train(&run, Some(4));
    let path = run.path().join("metrics.csv");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.rsplit_once(',').unwrap().0.to_owned() + ",100.00\n").unwrap();
    let (finished, _) = train(&run, None);
    assert!(finished.seconds < 100.0, "its own: {}", finished.seconds);
    let seconds = |file: &str| -> Vec<(u64, f64)> {
        let text = fs::read_to_string(run.path().join(file)).unwrap();
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let column = lines.next().unwrap().iter().position(|name| *name == "seconds").unwrap();
        lines.map(|cells| (cells[0].parse().unwrap(), cells[column].parse().unwrap())).collect()
    };
    for (step, seconds) in [seconds("metrics.csv"), seconds("checkpoints.csv")].concat() {
        assert_eq!(seconds >= 100.0, step >= 4, "step {step}: {seconds}");
    }
}

#[test]
fn measuring_takes_no_seconds_of_training() {
    let folder = tempfile::tempdir().unwrap();
    let run = RunDir::create(folder.path(), "run").unwrap();
    let began = Instant::now();
    let trainer = Box::new(Trainer::new(Counts, job(&run, 0.5)).unwrap());
    let finished = trainer.train(&AtomicBool::new(false), &mut Measures::default()).unwrap();
    // After the steps 2, 4 and 6.
    let measured = 3.0 * held_out::BATCHES as f64 * A_WHILE.as_secs_f64();
    let others = began.elapsed().as_secs_f64() - finished.seconds;
    assert!(others >= measured, "{others}");
}

/// The loss is the number of contexts that exist at the same time.
#[test]
fn held_out_batches_need_no_more_memory_than_training_batches() {
    let folder = tempfile::tempdir().unwrap();
    let job = job(&RunDir::create(folder.path(), "run").unwrap(), 0.5);
    for (micro_batches, expected) in [(1, 8.0), (4, 2.0)] {
        let config = TrainConfig { batch_size: 8, micro_batches, ..job.config.clone() };
        let loss = held_out::loss(&Counts, &Count(0.0), &job.data, &config, 1, &Device::flex());
        assert_eq!(loss.unwrap(), expected);
    }
}
