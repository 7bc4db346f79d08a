//! Training steps that are recorded once and replayed, on the device that wgpu finds: any device
//! with Vulkan, including software devices. They end with the same bits as ordinary steps.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod chain;
mod pong;

use std::{collections::BTreeMap, fs, path::Path, sync::Arc, sync::atomic::AtomicBool};

use burn::tensor::{Device, DeviceKind};
use overtone_agents::SequenceModel;
use overtone_core::ActionSpace;
use overtone_data::Dataset;
use overtone_model::{
    AttentionConfig, AverageReturn, ConditionerConfig, DecisionTransformerConfig, FourierKernel,
    HeadConfig, ModelConfig, PositionsConfig, head::LinearConfig,
};
use overtone_train::{
    Checkpoint, Job, Observer, RunDir, TrainConfig, Trainer, Training, TrainingData,
};

/// Steps of a run. With the first three, the sixth is recorded for two layouts of inputs.
const STEPS: u64 = 20;

/// What recording reported, by step.
#[derive(Default)]
struct News(Vec<(u64, Option<String>)>);

impl Observer for News {
    fn recorded(&mut self, step: u64, error: Option<&str>) {
        self.0.push((step, error.map(str::to_owned)));
    }
}

struct Run<'a> {
    folder: &'a Path,
    data: &'a Arc<Dataset>,
    algorithm: &'a SequenceModel,
    config: &'a TrainConfig,
}

impl Run<'_> {
    /// The last checkpoint, and what recording reported.
    fn train(&self, name: &str, records: bool, resume: Option<&Checkpoint>) -> (Checkpoint, News) {
        let job = Job {
            run: RunDir::create(&self.folder.join(name), "run").unwrap(),
            config: self.config.clone(),
            data: TrainingData::new(self.data.clone(), 1.0),
            agent: serde_json::json!("recorded"),
            seed: 1,
            device: Device::wgpu(DeviceKind::DefaultDevice),
            init: None,
        };
        let trainer = Trainer::new(self.algorithm.clone(), job, resume).unwrap();
        let (stop, mut news) = (AtomicBool::new(false), News::default());
        let trainer = Box::new(trainer.recording(records));
        (trainer.train(&stop, &mut news).unwrap().checkpoint, news)
    }
}

/// The tensors of a checkpoint, as files.
fn tensors(checkpoint: &Checkpoint) -> BTreeMap<String, Vec<u8>> {
    let paths = fs::read_dir(&checkpoint.path).unwrap().map(|entry| entry.unwrap().path());
    let files = paths.filter(|path| path.extension().is_some_and(|end| end == "safetensors"));
    files.map(|path| (path.display().to_string(), fs::read(path).unwrap())).collect()
}

#[track_caller]
fn check_equal(got: &Checkpoint, expected: &Checkpoint) {
    let [got, expected] = [got, expected].map(tensors);
    assert_eq!(got.len(), 2);
    assert!(got.into_values().eq(expected.into_values()), "other weights or moments");
}

/// Recorded and ordinary runs end equally, also if the recorded one is resumed. `recordings`: the
/// steps after which a layout is replayed for the first time.
#[track_caller]
fn check(data: &Arc<Dataset>, algorithm: &SequenceModel, config: &TrainConfig, recordings: usize) {
    let folder = tempfile::tempdir().unwrap();
    let run = Run { folder: folder.path(), data, algorithm, config };
    let (ordinary, none) = run.train("ordinary", false, None);
    assert_eq!(none.0, []);
    let (recorded, news) = run.train("recorded", true, None);
    println!("{:?}", news.0);
    assert_eq!(news.0.len(), recordings, "{:?}", news.0);
    assert!(news.0.iter().all(|(_, error)| error.is_none()), "{:?}", news.0);
    check_equal(&recorded, &ordinary);

    let half = TrainConfig { updates: STEPS / 2, ..config.clone() };
    let (half, _) = Run { config: &half, ..run }.train("half", true, None);
    let resumed = Run { config, ..run }.train("resumed", true, Some(&half));
    check_equal(&resumed.0, &ordinary);
}

fn config() -> TrainConfig {
    TrainConfig { batch_size: 4, checkpoint_every: 10, log_every: 6, ..chain::config(STEPS) }
}

fn chain_model(config: DecisionTransformerConfig) -> SequenceModel {
    let names = vec!["left".to_owned(), "right".to_owned()];
    let model = DecisionTransformerConfig {
        n_layers: 2,
        n_heads: 2,
        d_model: 16,
        context_length: 5,
        head: HeadConfig::Linear(LinearConfig {}),
        ..config
    };
    SequenceModel {
        model: ModelConfig::Transformer(model),
        observations: chain::observations(),
        actions: ActionSpace::Discrete { names },
    }
}

#[test]
fn contexts_with_timesteps() {
    let conditioning = ConditionerConfig {
        return_range: Some([0.0, 1.0]),
        average_return: Some(AverageReturn { horizon: 20 }),
        ..ConditionerConfig::default()
    };
    let model = DecisionTransformerConfig {
        attention: AttentionConfig::Fourier(FourierKernel::default()),
        conditioning: Some(conditioning),
        ..DecisionTransformerConfig::gym(20)
    };
    let config = TrainConfig { average_weights: true, held_out: 0.25, ..config() };
    check(&chain::listed(0.5, config.held_out), &chain_model(model), &config, 1);
}

/// Batches without padding have a layout of their own.
#[test]
fn contexts_with_places() {
    let model = DecisionTransformerConfig {
        positions: PositionsConfig::LocalAndGlobal { max_timestep: 20 },
        ..DecisionTransformerConfig::atari(20)
    };
    check(&chain::listed(0.5, 0.0), &chain_model(model), &config(), 2);
}

#[test]
fn frames_on_the_device() {
    let bench = pong::Bench::new();
    let config = TrainConfig { updates: STEPS, checkpoint_every: 10, ..pong::config(STEPS) };
    check(&bench.dataset, &bench.algorithm(), &config, 1);
}
