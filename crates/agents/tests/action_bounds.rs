//! Actions with bounds of ±2 are learned and taken like actions with bounds of ±1, twice as large.
//! Actions from 0 to 2 are learned like actions within ±1, with the same padding.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::{collections::BTreeMap, fs, path::Path, sync::Arc, sync::atomic::AtomicBool};

use burn::tensor::Device;
use overtone_agents::{Agent, AlgorithmConfig, DecisionTransformerOptions, policy};
use overtone_core::{
    ActionSpace, Actions, Episode, ObservationSpace, Observations, Outcome, Policy, Task, Turn,
    policy::EpisodeStart,
};
use overtone_data::{ActionColumn, Columns, Dataset, DatasetOptions, ObservationColumn};
use overtone_model::{DecisionTransformerConfig, HeadConfig, head::TanhConfig};
use overtone_train::{Checkpoint, Job, RunDir, StepReport, TrainConfig, TrainingData};

/// Ten episodes of five steps; actions of two numbers between `low` and `high`.
fn columns([low, high]: [f32; 2]) -> Columns {
    let rows = 0..50;
    let seen = rows.clone().flat_map(|row| [row as f32, (row % 7) as f32, 1.5]).collect();
    let acted = rows.clone().flat_map(|row| {
        [((row * 37) % 64) as f32 / 32.0 - 1.0, ((row * 11) % 16) as f32 / 16.0 - 0.5]
    });
    // All are multiples of 1/4: nothing is rounded.
    let scaled = |number: f32| low + 0.5 * (number + 1.0) * (high - low);
    let episode =
        |number: usize| Episode { start: number * 5, length: 5, outcome: Outcome::Terminated };
    Columns::new(
        ObservationColumn::Vectors { width: 3, values: seen },
        ActionColumn::Continuous { width: 2, values: acted.map(scaled).collect() },
        rows.map(|row| (row % 3) as f32).collect(),
        (0..10usize).map(episode).collect(),
    )
}

fn trained(folder: &Path, bounds: [f32; 2]) -> Checkpoint {
    let data = TrainingData::new(
        Arc::new(Dataset::of(columns(bounds), &DatasetOptions::default()).unwrap()),
        1.0,
    );
    let [low, high] = bounds.map(|bound| vec![bound; 2]);
    let actions = ActionSpace::Continuous { low, high };
    let task = Task::own("bounded", ObservationSpace::Vectors { width: 3 }, actions);
    let head = HeadConfig::Tanh(TanhConfig {});
    let gym = DecisionTransformerConfig::gym(5);
    let model =
        DecisionTransformerConfig { n_layers: 1, d_model: 16, context_length: 3, head, ..gym };
    let algorithm = AlgorithmConfig::DecisionTransformer(DecisionTransformerOptions(model));
    let agent = Agent::new(task.clone(), algorithm.clone(), &data, 5).to_value();
    let config = TrainConfig { updates: 5, batch_size: 4, ..TrainConfig::default() };
    let run = RunDir::create(folder, &format!("between-{}-and-{}", bounds[0], bounds[1])).unwrap();
    let device = Device::flex();
    let job = Job { run, config, data, agent, seed: 1, device, init: None, resume: None };
    let trainer = algorithm.trainer(&task, job).unwrap();
    trainer.train(&AtomicBool::new(false), &mut |_: &StepReport| {}).unwrap().checkpoint
}

fn weights(checkpoint: &Checkpoint) -> BTreeMap<&str, Vec<u8>> {
    ["model.safetensors", "optimizer.safetensors"]
        .map(|file| (file, fs::read(checkpoint.path.join(file)).unwrap()))
        .into()
}

/// Three steps of an agent.
fn played(checkpoint: &Checkpoint) -> Vec<f32> {
    let agent = Agent::of(checkpoint).unwrap();
    let mut policy: Box<dyn Policy> =
        policy(checkpoint, &agent.matched(), &Device::flex()).unwrap();
    let mut all = Vec::new();
    for time in 0..3 {
        let start = (time == 0).then_some(EpisodeStart { seed: 1, target_return: 5.0 });
        let turn = Turn { agent: 0, reward: 0.5, start };
        let seen = [time as f32, 2.0, 1.5];
        match policy.act(&[turn], Observations::Vectors(&seen)).unwrap() {
            Actions::Continuous { values, .. } => all.extend(values),
            Actions::Discrete(_) => panic!("numbers"),
        }
    }
    all
}

#[test]
fn twice_the_bounds_is_the_same_agent_twice_as_strong() {
    let folder = tempfile::tempdir().unwrap();
    let bounds = [[-1.0, 1.0], [-2.0, 2.0], [0.0, 2.0]];
    let [one, two, above] = bounds.map(|bounds| trained(folder.path(), bounds));
    assert!(weights(&one) == weights(&two), "the same numbers are learned, to the bit");
    assert!(weights(&one) == weights(&above), "padding is not an action: it is not scaled");
    assert_ne!(one.state.dataset_hash, two.state.dataset_hash, "the stored data is not scaled");
    let (weak, strong) = (played(&one), played(&two));
    assert_eq!(strong, weak.iter().map(|number| 2.0 * number).collect::<Vec<f32>>());
    let shifted: Vec<f32> =
        weak.iter().map(|number| (0.5 * (f64::from(*number) + 1.0) * 2.0) as f32).collect();
    assert_eq!(played(&above), shifted);
    assert!(weak.iter().any(|number| number.abs() > 1e-4), "{weak:?}");
    // The three steps differ, because the history contains the scaled actions of training.
    assert_ne!(weak[..2], weak[2..4]);
}
