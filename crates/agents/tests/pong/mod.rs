//! A small recording of Pong and runs that train on it.
#![allow(dead_code)] // each test binary uses its part

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use burn::tensor::Device;
use overtone_agents::{Agent, AlgorithmConfig, DecisionTransformerOptions, SequenceModel};
use overtone_core::{
    ActionSpace, ObservationSpace, Simulation, Task, protocol::ReturnUnits, task::Targets,
};
use overtone_data::{Dataset, Origin, Preparation, ReplayLog, Selection};
use overtone_model::{DecisionTransformerConfig, ModelConfig};
use overtone_testkit::dopamine::Recorder;
use overtone_train::{
    AdamWConfig, Checkpoint, Finished, Job, Observer, RunDir, ScheduleKind, StepReport,
    TrainConfig, TrainError, Trainer, Training, TrainingData,
};
use tempfile::TempDir;

pub const BATCH: usize = 3;

pub fn config(updates: u64) -> TrainConfig {
    TrainConfig {
        updates,
        batch_size: BATCH,
        schedule: ScheduleKind::Cosine,
        decay_horizon: 1.2,
        optimizer: AdamWConfig::ATARI,
        log_every: 1,
        checkpoint_every: 1,
        keep_checkpoints: 2,
        ..TrainConfig::default()
    }
}

/// Stores the files of every checkpoint when it is written.
#[derive(Default)]
pub struct Witness(pub BTreeMap<u64, BTreeMap<String, Vec<u8>>>);

impl Observer for Witness {
    fn stepped(&mut self, _step: u64, _loss: f64) {}
    fn logged(&mut self, _report: &StepReport) {}
    fn saved(&mut self, checkpoint: &Checkpoint) {
        self.0.insert(checkpoint.state.step, files(&checkpoint.path));
    }
}

pub fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| (name(&path), fs::read(&path).unwrap())).collect()
}

/// A recording, its dataset, and a run.
pub struct Bench {
    pub dir: TempDir,
    pub dataset: Arc<Dataset>,
    pub run: RunDir,
}

impl Bench {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut recorder = Recorder::new(dir.path(), "Pong", 64);
        for length in [9, 14, 20, 7] {
            recorder.episode(length);
        }
        recorder.save();
        let log = ReplayLog::open(recorder.game()).unwrap();
        let selection = Selection::uniform(1000);
        let plan = Preparation::new(log, Origin::other(), selection, 1, dir.path()).unwrap();
        let dataset = Arc::new(plan.ensure(&mut |_, _| {}).unwrap());
        let run = RunDir::create(&dir.path().join("runs"), "run").unwrap();
        Self { dir, dataset, run }
    }

    pub fn model(&self) -> DecisionTransformerConfig {
        DecisionTransformerConfig {
            n_layers: 1,
            n_heads: 2,
            d_model: 16,
            context_length: 4,
            ..DecisionTransformerConfig::atari(20)
        }
    }

    /// A game outside of every suite: six actions on frames.
    pub fn task(&self) -> Task {
        let names = (0..self.dataset.actions().size()).map(|action| action.to_string()).collect();
        Task {
            suite: "none".into(),
            name: "pong".into(),
            title: "Pong".into(),
            observations: ObservationSpace::Pixels { shape: vec![4, 84, 84] },
            actions: ActionSpace::Discrete { names },
            horizon: None,
            return_units: ReturnUnits::Clipped,
            reference: None,
            targets: Targets::default(),
            simulation: Simulation::default(),
        }
    }

    pub fn agent(&self) -> Agent {
        Agent {
            task: self.task(),
            dataset: String::new(),
            algorithm: AlgorithmConfig::DecisionTransformer(DecisionTransformerOptions(
                self.model(),
            )),
            normalization: None,
            return_scale: 1.0,
            delayed_reward: false,
            recording: None,
            needs_action_mask: false,
        }
    }

    pub fn algorithm(&self) -> SequenceModel {
        let Task { observations, actions, .. } = self.task();
        SequenceModel { model: ModelConfig::Transformer(self.model()), observations, actions }
    }

    pub fn job(&self, config: TrainConfig) -> Job {
        Job {
            run: self.run.clone(),
            config,
            data: TrainingData::new(self.dataset.clone(), 1.0),
            agent: self.agent().to_value(),
            seed: 5,
            device: Device::flex(),
            init: None,
            resume: None,
        }
    }

    pub fn trainer(&self, config: TrainConfig, resume: Option<&Checkpoint>) -> Box<dyn Training> {
        Box::new(
            Trainer::new(self.algorithm(), Job { resume: resume.cloned(), ..self.job(config) })
                .unwrap(),
        )
    }

    pub fn train(&self, config: TrainConfig) -> (Result<Finished, TrainError>, Witness) {
        let mut witness = Witness::default();
        let trainer = self.trainer(config, None);
        (trainer.train(&AtomicBool::new(false), &mut witness), witness)
    }

    pub fn step(&self, step: u64) -> PathBuf {
        self.run.checkpoints().join(format!("step-{step:08}"))
    }

    pub fn steps(&self) -> Vec<String> {
        files_and_folders(&self.run.checkpoints())
    }
}

pub fn files_and_folders(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
