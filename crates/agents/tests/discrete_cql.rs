//! Conservative Q-learning on a chain of five states whose values are known.
//!
//! From state 0 to 4, `left` goes one state down (and stays in 0), `right` one up; `right` in
//! state 4 pays 1 and ends the task. With discount γ the best is to walk right:
//! `Q*(s, right) = γ^(4 − s)`, and a step to the left costs two: `Q*(s, left) = γ^(6 − s)`, but
//! in state 0 one, `γ^5`.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::{fs, path::Path, sync::Arc, sync::atomic::AtomicBool};

use burn::tensor::{Device, Tensor, TensorData};
use overtone_agents::{DiscreteCql, DiscreteCqlConfig, discrete_cql::DiscreteCqlState};
use overtone_core::{ActionSpace, Episode, ObservationSpace, Outcome, seed};
use overtone_data::{Acted, Columns, Dataset, DatasetOptions, Fragment, Sampling, Seen};
use overtone_model::contexts::Observed;
use overtone_train::{
    AdamWConfig, Algorithm, Checkpoint, Decayed, Job, Observer, Precision, RunDir, ScheduleKind,
    StepReport, TrainConfig, Trainer, TrainingData,
};
use rand::RngExt;

const STATES: usize = 5;
const LEFT: u16 = 0;
const RIGHT: u16 = 1;
const GAMMA: f64 = 0.9;

/// Episodes of at most 20 steps, which go left with this probability.
fn chain(n_episodes: usize, left: f64) -> Columns {
    let mut generator = seed::generator(3, "chain");
    let (mut states, mut actions, mut rewards) = (Vec::new(), Vec::new(), Vec::new());
    let (mut episodes, mut finished) = (Vec::new(), Vec::new());
    for _ in 0..n_episodes {
        let start = actions.len();
        let mut state = generator.random_range(0..STATES);
        let mut outcome = Outcome::Truncated;
        while actions.len() < start + 20 && outcome == Outcome::Truncated {
            states.extend((0..STATES).map(|s| f32::from(u8::from(s == state))));
            let action = if generator.random::<f64>() < left { LEFT } else { RIGHT };
            let pays = action == RIGHT && state == STATES - 1;
            actions.push(action);
            rewards.push(f32::from(u8::from(pays)));
            match action {
                _ if pays => outcome = Outcome::Terminated,
                LEFT => state = state.saturating_sub(1),
                _ => state += 1,
            }
        }
        episodes.push(Episode { start, length: actions.len() - start, outcome });
        finished.push(true);
    }
    Columns {
        path: "chain".into(),
        format: "chain",
        observations: Seen::Vectors { width: STATES, values: states },
        actions: Acted::Discrete { n_actions: 2, values: actions },
        rewards,
        episodes,
        finished,
        odd: Vec::new(),
    }
}

fn algorithm(config: DiscreteCqlConfig) -> DiscreteCql {
    DiscreteCql {
        config,
        observations: ObservationSpace::Vectors { width: STATES },
        actions: ActionSpace::Discrete { names: vec!["left".into(), "right".into()] },
    }
}

fn small(alpha: f64) -> DiscreteCqlConfig {
    let sizes = DiscreteCqlConfig { quantiles: 8, hidden: 32, ..DiscreteCqlConfig::default() };
    DiscreteCqlConfig { alpha, gamma: GAMMA, target_every: 50, ..sizes }
}

fn config(updates: u64) -> TrainConfig {
    TrainConfig {
        updates,
        epochs: 0,
        batch_size: 64,
        learning_rate: 2e-3,
        schedule: ScheduleKind::Constant,
        warmup_tokens: 0.0,
        decay_horizon: 1.0,
        warmup_updates: 0,
        optimizer: AdamWConfig {
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.0,
            decayed: Decayed::Matrices,
            clip_norm: 10.0,
        },
        sampling: Sampling::Uniform,
        log_every: 10,
        checkpoint_every: 7,
        keep_checkpoints: 10,
        held_out: 0.0,
        precision: Precision::F32,
        read_every: 0,
        frames_on_gpu_gb: 0.0,
    }
}

struct Quiet;

impl Observer for Quiet {
    fn stepped(&mut self, _step: u64, _loss: f64) {}
    fn logged(&mut self, _report: &StepReport) {}
    fn saved(&mut self, _checkpoint: &Checkpoint) {}
}

/// The last checkpoint of a run in `folder`, which goes on from `resume`.
fn train(
    folder: &Path,
    data: &Arc<Dataset>,
    (algorithm, config): (&DiscreteCql, TrainConfig),
    resume: Option<&Checkpoint>,
) -> Checkpoint {
    let job = Job {
        run: RunDir::create(folder, "run").unwrap(),
        config,
        data: TrainingData::new(data.clone(), 1.0),
        agent: serde_json::json!("walks a chain"),
        seed: 1,
        device: Device::flex(),
    };
    let trainer = Trainer::new(algorithm.clone(), job, resume).unwrap();
    trainer.train(&AtomicBool::new(false), &mut Quiet).unwrap().checkpoint
}

fn dataset(left: f64) -> Arc<Dataset> {
    let options = DatasetOptions { fragment: Fragment::Keep, ..DatasetOptions::default() };
    Arc::new(Dataset::of(chain(200, left), &options).unwrap())
}

/// `Q(s, ·)` of every state.
fn values(algorithm: &DiscreteCql, checkpoint: &Checkpoint, data: &Dataset) -> Vec<[f64; 2]> {
    let device = Device::flex();
    let mut generator = seed::generator(9, "any");
    let state = algorithm.init(&config(1), &device.clone().autodiff(), &mut generator).unwrap();
    let state: DiscreteCqlState = checkpoint.restore(state).unwrap();
    let mut states: Vec<f32> =
        (0..STATES * STATES).map(|at| f32::from(u8::from(at % (STATES + 1) == 0))).collect();
    data.normalization().unwrap().apply(&mut states);
    let states = TensorData::new(states, [STATES, 1, STATES]);
    let observed = Observed::Vectors(Tensor::from_data(states, &device));
    let values: Vec<f64> = state.online.values(&observed).into_data().iter().collect();
    values.as_chunks::<2>().0.to_vec()
}

#[test]
fn without_conservatism_the_values_are_the_optimum() {
    let folder = tempfile::tempdir().unwrap();
    let data = dataset(0.5);
    let algorithm = algorithm(small(0.0));
    let checkpoint = train(folder.path(), &data, (&algorithm, config(3000)), None);
    for (s, [left, right]) in values(&algorithm, &checkpoint, &data).into_iter().enumerate() {
        let power = |n: usize| GAMMA.powi(n as i32);
        let expected = [power(if s == 0 { 5 } else { 6 - s }), power(4 - s)];
        assert!((left - expected[0]).abs() < 0.03, "Q({s}, left) = {left}, not {}", expected[0]);
        assert!((right - expected[1]).abs() < 0.03, "Q({s}, right) = {right}, not {}", expected[1]);
    }
}

#[test]
fn with_much_of_it_the_agent_does_what_was_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let data = dataset(0.8);
    let algorithm = algorithm(small(100.0));
    let checkpoint = train(folder.path(), &data, (&algorithm, config(300)), None);
    for [left, right] in values(&algorithm, &checkpoint, &data) {
        assert!(left > right, "{left} {right}");
    }
}

/// Networks, target and moments: every file of the last checkpoint has the same bytes.
#[test]
fn resuming_is_never_having_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let data = dataset(0.5);
    let algorithm = algorithm(DiscreteCqlConfig { target_every: 5, ..small(1.0) });
    let config = config(21);
    let whole = train(&folder.path().join("a"), &data, (&algorithm, config.clone()), None);
    for step in [7, 14] {
        let stopped = Checkpoint::at_step(whole.path.parent().unwrap(), step).unwrap();
        let resumed = train(
            &folder.path().join(format!("from-{step}")),
            &data,
            (&algorithm, config.clone()),
            Some(&stopped),
        );
        for file in ["model.safetensors", "optimizer.safetensors", "state.json"] {
            let bytes = |checkpoint: &Checkpoint| fs::read(checkpoint.path.join(file)).unwrap();
            assert!(bytes(&whole) == bytes(&resumed), "{file} differs from step {step} on");
        }
    }
}

#[test]
fn real_valued_actions_are_refused() {
    let error = small(0.0).check(&ActionSpace::unit(3)).unwrap_err().to_string();
    assert!(error.contains("real-valued"), "{error}");
}
