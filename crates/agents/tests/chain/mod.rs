//! A chain of five states with known values, and training on it.
//!
//! Left goes one state down from state 0 to 4 (and stays in 0), right one up. Right in state 4 has
//! the reward 1 and ends the task.

#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::{collections::BTreeMap, fs, path::Path, sync::Arc, sync::atomic::AtomicBool};

use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};
use overtone_agents::value::{ActorCritic, Rescaling, Steps, twin::concat};
use overtone_core::{ActionSpace, Episode, ObservationSpace, Outcome, seed};
use overtone_data::{
    ActionColumn, Batch, BatchOptions, Columns, Dataset, DatasetOptions, Fragment, Lookahead,
    ObservationColumn, Sampling, Stored, StoredObservations, Subset,
};
use overtone_model::weights::{self, NamedTensors};
use overtone_testkit::check_error;
use overtone_train::{
    AdamWConfig, Algorithm, Checkpoint, Job, Observer, RunDir, StepReport, TrainConfig, TrainError,
    Trainer, Training, TrainingData,
};
use rand::RngExt;

pub const STATES: usize = 5;
pub const LEFT: u16 = 0;
pub const RIGHT: u16 = 1;
pub const GAMMA: f64 = 0.9;

/// The chain's observations: its state, one-hot.
pub fn observations() -> ObservationSpace {
    ObservationSpace::Vectors { width: STATES }
}

/// Continuous actions of the chain: above zero is right.
pub fn numbers() -> ActionSpace {
    ActionSpace::unit(1)
}

/// Episodes of at most 20 steps with these actions; `goes_right` decides their direction.
fn walk(
    n_episodes: usize,
    mut draw: impl FnMut(&mut seed::Generator) -> (f32, bool),
) -> (Columns, Vec<f32>) {
    let mut generator = seed::generator(3, "chain");
    let (mut states, mut actions, mut rewards) = (Vec::new(), Vec::new(), Vec::new());
    let (mut episodes, mut finished) = (Vec::new(), Vec::new());
    for _ in 0..n_episodes {
        let start = actions.len();
        let mut state = generator.random_range(0..STATES);
        let mut outcome = Outcome::Truncated;
        while actions.len() < start + 20 && outcome == Outcome::Truncated {
            states.extend((0..STATES).map(|s| f32::from(u8::from(s == state))));
            let (action, goes_right) = draw(&mut generator);
            let pays = goes_right && state == STATES - 1;
            actions.push(action);
            rewards.push(f32::from(u8::from(pays)));
            if pays {
                outcome = Outcome::Terminated;
            } else if goes_right {
                state += 1;
            } else {
                state = state.saturating_sub(1);
            }
        }
        episodes.push(Episode { start, length: actions.len() - start, outcome });
        finished.push(true);
    }
    let columns = Columns {
        path: "chain".into(),
        format: "chain",
        observations: ObservationColumn::Vectors { width: STATES, values: states },
        actions: ActionColumn::Continuous { width: 1, values: actions.clone() },
        rewards,
        behavior_log_probs: None,
        optional: Default::default(),
        episodes,
        finished,
        mixture: Default::default(),
        odd: Vec::new(),
        stored: Stored::default(),
    };
    (columns, actions)
}

/// Discrete actions, which go left with this probability. A fraction of the episodes is held out of
/// runs of seed 1.
pub fn listed(left: f64, held_out: f64) -> Arc<Dataset> {
    let (columns, actions) = walk(200, |generator| {
        let goes_right = generator.random::<f64>() >= left;
        (f32::from(if goes_right { RIGHT } else { LEFT }), goes_right)
    });
    let values = actions.iter().map(|&action| action as u16).collect();
    dataset(
        Columns { actions: ActionColumn::Discrete { n_actions: 2, values }, ..columns },
        held_out,
    )
}

/// Actions spread over [-1, 1]. A fraction of the episodes is held out of runs of seed 1.
pub fn real_valued(held_out: f64) -> Arc<Dataset> {
    let (columns, _) = walk(400, |generator| {
        let action = generator.random_range(-1.0f32..1.0);
        (action, action > 0.0)
    });
    dataset(columns, held_out)
}

fn dataset(columns: Columns, held_out: f64) -> Arc<Dataset> {
    let options =
        DatasetOptions { fragment: Fragment::Keep, held_out, seed: 1, ..DatasetOptions::default() };
    Arc::new(Dataset::of(columns, &options).unwrap())
}

/// The same steps in episodes of at most two. A limit ends most of them, so half of the steps have
/// no target.
pub fn cut_short(data: &Dataset) -> Arc<Dataset> {
    let StoredObservations::Vectors { width, values, .. } = data.observations() else {
        panic!("vectors")
    };
    let parts = |episode: &Episode| {
        let Episode { start, length, outcome } = *episode;
        (0..length).step_by(2).map(move |from| {
            if from + 2 >= length {
                Episode { start: start + from, length: length - from, outcome }
            } else {
                Episode { start: start + from, length: 2, outcome: Outcome::Truncated }
            }
        })
    };
    let columns = Columns::new(
        ObservationColumn::Vectors { width: *width, values: values.clone() },
        data.actions().clone(),
        data.rewards().to_vec(),
        data.episodes().as_slice().iter().flat_map(parts).collect(),
    );
    dataset(columns, 0.0)
}

/// The same steps in trajectories of two episodes each, which go on where the task is solved; masks
/// say so.
pub fn going_on(data: &Dataset) -> Arc<Dataset> {
    let StoredObservations::Vectors { width, values, .. } = data.observations() else {
        panic!("vectors")
    };
    let episodes = data.episodes().as_slice();
    let mut columns = Columns::new(
        ObservationColumn::Vectors { width: *width, values: values.clone() },
        data.actions().clone(),
        data.rewards().to_vec(),
        Vec::new(),
    );
    let mut stops = vec![false; data.n_transitions()];
    for pair in episodes.chunks(2) {
        let [first, .., last] = pair else { continue };
        if first.outcome == Outcome::Terminated {
            stops[first.end() - 1] = true;
            let (start, length) = (first.start, first.length + last.length);
            columns.episodes.push(Episode { start, length, outcome: last.outcome });
        } else {
            columns.episodes.extend([*first, *last]);
        }
    }
    columns.finished = vec![true; columns.episodes.len()];
    columns.optional.stops = Some(stops);
    dataset(columns, 0.0)
}

/// The same episodes, with weights of the steps.
pub fn weighted(data: &Dataset) -> Arc<Dataset> {
    let StoredObservations::Vectors { width, values, .. } = data.observations() else {
        panic!("vectors")
    };
    let mut columns = Columns::new(
        ObservationColumn::Vectors { width: *width, values: values.clone() },
        data.actions().clone(),
        data.rewards().to_vec(),
        data.episodes().as_slice().to_vec(),
    );
    let weights = (0..data.n_transitions()).map(|row| [0.0, 0.5, 1.0, 2.0][row % 4]);
    columns.optional.weights = Some(weights.collect());
    dataset(columns, 0.0)
}

pub fn config(updates: u64) -> TrainConfig {
    TrainConfig {
        updates,
        learning_rate: 2e-3,
        optimizer: AdamWConfig { clip_norm: 10.0, ..AdamWConfig::default() },
        log_every: 10,
        checkpoint_every: 7,
        keep_checkpoints: 10,
        ..TrainConfig::default()
    }
}

struct Quiet;

impl Observer for Quiet {
    fn stepped(&mut self, _step: u64, _loss: f64) {}
    fn logged(&mut self, _report: &StepReport) {}
    fn saved(&mut self, _checkpoint: &Checkpoint) {}
}

/// The last checkpoint of a run in `folder`, which resumes from `resume`.
pub fn train<A: Algorithm>(
    folder: &Path,
    data: &Arc<Dataset>,
    (algorithm, config): (A, TrainConfig),
    resume: Option<&Checkpoint>,
) -> Checkpoint {
    let job = Job {
        run: RunDir::create(folder, "run").unwrap(),
        config,
        data: TrainingData::new(data.clone(), 1.0),
        agent: serde_json::json!("walks a chain"),
        seed: 1,
        device: Device::flex(),
        init: None,
        resume: resume.cloned(),
    };
    let trainer = Box::new(Trainer::new(algorithm, job).unwrap());
    trainer.train(&AtomicBool::new(false), &mut Quiet).unwrap().checkpoint
}

/// The state after a run of `updates` steps.
pub fn learned<A: Algorithm + Clone>(
    algorithm: &A,
    data: &Arc<Dataset>,
    config: TrainConfig,
) -> A::State {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = train(folder.path(), data, (algorithm.clone(), config.clone()), None);
    let device = Device::flex().autodiff();
    let mut generator = seed::generator(9, "any");
    checkpoint.restore(algorithm.init(&config, &device, &mut generator).unwrap()).unwrap()
}

/// The loss of a run's first step.
pub fn first_loss<A: Algorithm + Clone>(
    algorithm: &A,
    data: &Arc<Dataset>,
    config: TrainConfig,
) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let config = TrainConfig { updates: 1, log_every: 1, ..config };
    let checkpoint = train(folder.path(), data, (algorithm.clone(), config), None);
    metrics(&checkpoint, "loss")[0]
}

/// A column of the metrics of a checkpoint's run.
pub fn metrics(checkpoint: &Checkpoint, name: &str) -> Vec<f64> {
    let run = checkpoint.path.parent().and_then(Path::parent).unwrap();
    let metrics = fs::read_to_string(run.join("metrics.csv")).unwrap();
    let mut lines = metrics.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let column = lines.next().unwrap().iter().position(|column| *column == name).unwrap();
    lines.map(|cells| cells[column].parse().unwrap()).collect()
}

/// Every state as input of a network with normalized observations; `[STATES, STATES]`.
pub fn states(data: &Dataset, change: impl Fn(&mut [f32])) -> Tensor<2> {
    let mut states: Vec<f32> =
        (0..STATES * STATES).map(|at| f32::from(u8::from(at % (STATES + 1) == 0))).collect();
    data.normalization().unwrap().apply(&mut states);
    change(&mut states);
    Tensor::from_data(TensorData::new(states, [STATES, STATES]), &Device::flex())
}

/// The action in every state (above zero is right), and its value by the smaller critic.
pub fn played(state: &ActorCritic, data: &Dataset, is_normalized: bool) -> [Vec<f64>; 2] {
    let rescaling = Rescaling::new(data.normalization(), is_normalized);
    let states = states(data, |states| rescaling.apply(states));
    let actions = state.actor.network.valid().act(states.clone());
    let values = state.critics.network.valid().smaller(concat(states, actions.clone()));
    [actions, values].map(|tensor| tensor.into_data().iter::<f64>().collect())
}

/// Every action goes right, and every value is within `tolerance` of the optimum `γ^(4 − s)`.
#[track_caller]
pub fn check_optimal([actions, values]: [Vec<f64>; 2], tolerance: f64) {
    for (s, (action, value)) in actions.into_iter().zip(values).enumerate() {
        let expected = GAMMA.powi((STATES - 1 - s) as i32);
        println!("state {s}: action {action:.3}, value {value:.3}, optimum {expected:.3}");
        assert!(action > 0.0, "action {action} in state {s}");
        assert!((value - expected).abs() < tolerance, "{value} in state {s}, not {expected}");
    }
}

/// The loss on held-out episodes is measured, and selects no checkpoint. It does not exist for
/// steps that are all truncated. A quarter of `data` is held out.
pub fn check_held_out<A: Algorithm + Clone>(algorithm: &A, data: &Arc<Dataset>) {
    let folder = tempfile::tempdir().unwrap();
    let config = TrainConfig { held_out: 0.25, ..config(8) };
    let job = || (algorithm.clone(), config.clone());
    let checkpoint = train(&folder.path().join("a"), data, job(), None);
    assert!(checkpoint.state.held_out.is_some_and(f64::is_finite));
    assert_eq!(checkpoint.state.best, None);
    let checkpoints = checkpoint.path.parent().unwrap();
    check_error!(Checkpoint::best(checkpoints).unwrap_err(), TrainError::NoBest { .. });

    let device = Device::flex();
    let generator = &mut seed::generator(9, "any");
    let state = algorithm.init(&config, &device.clone().autodiff(), generator).unwrap();
    let mut sampler =
        data.sampler(Subset::Training, config.held_out, Sampling::Uniform, 1, 1).unwrap();
    let options = BatchOptions { transitions: Some(Lookahead::ONE), ..BatchOptions::default() };
    for is_cut_off in [false, true] {
        let mut batch = Batch::default();
        batch.fill(data, &mut sampler, 8, &options).unwrap();
        if let (true, Some(transitions)) = (is_cut_off, &mut batch.transitions) {
            transitions.terminated.fill(false);
            transitions.next_is_known.fill(false);
        }
        let data = TrainingData::new(data.clone(), 1.0);
        let loss = algorithm.held_out_loss(&state, &mut batch, &data, &device);
        assert_eq!(loss.is_none(), is_cut_off);
    }
}

/// A batch of drawn steps as input of a network with normalized observations.
pub fn steps(data: &Dataset) -> Steps {
    let mut sampler = data.sampler(Subset::Training, 0.0, Sampling::Uniform, 1, 4).unwrap();
    let (mut batch, rescaling) = (Batch::default(), Rescaling::new(data.normalization(), true));
    let options = BatchOptions { transitions: Some(Lookahead::ONE), ..BatchOptions::default() };
    batch.fill(data, &mut sampler, 32, &options).unwrap();
    Steps::of(&batch, &rescaling, &Device::flex()).unwrap()
}

/// The module with NaN for every weight.
pub fn broken<M: Module>(module: M) -> M {
    let mut tensors = weights::export(&module);
    for data in tensors.values_mut() {
        let shape = data.shape().to_vec();
        *data = TensorData::new(vec![f32::NAN; shape.iter().product()], shape);
    }
    weights::import(module, &tensors).unwrap()
}

/// Networks, targets and moments of a run that was stopped and resumed twice: every file of its
/// last checkpoint has the same bytes as without stops. The same holds with averages of the
/// weights, which do not change the training.
pub fn check_resuming<A: Algorithm + Clone>(algorithm: &A, data: &Arc<Dataset>) {
    resume_twice(algorithm, data, config(21), [7, 14]);
    // Averages differ from the weights after about thirty steps of the actor.
    // Many batches of one step have no target.
    let one = TrainConfig { batch_size: 1, ..config(21) };
    resume_twice(algorithm, &cut_short(data), one, [7, 14]);
    let plain = TrainConfig { checkpoint_every: 28, ..config(112) };
    let averaging = TrainConfig { average_weights: true, ..plain.clone() };
    let averaging = resume_twice(algorithm, data, averaging, [28, 84]);
    let plain = resume_twice(algorithm, data, plain, [28, 84]);
    let averages = &averaging["model.safetensors"];
    let stepped = &averaging["optimizer.safetensors"];
    for (name, weight) in &plain["model.safetensors"] {
        let kept = format!("weights.{name}");
        let kept = stepped.iter().find(|(name, _)| name.ends_with(&kept)).unwrap().1;
        assert!(kept == weight && averages[name] != *weight, "{name}");
    }
}

/// The tensors of a run's last checkpoint, by file.
fn resume_twice<A: Algorithm + Clone>(
    algorithm: &A,
    data: &Arc<Dataset>,
    config: TrainConfig,
    stops: [u64; 2],
) -> BTreeMap<&'static str, NamedTensors> {
    let folder = tempfile::tempdir().unwrap();
    let job = || (algorithm.clone(), config.clone());
    let whole = train(&folder.path().join("a"), data, job(), None);
    for step in stops {
        let stopped = Checkpoint::at_step(whole.path.parent().unwrap(), step).unwrap();
        let folder = folder.path().join(format!("from-{step}"));
        let resumed = train(&folder, data, job(), Some(&stopped));
        for file in ["model.safetensors", "optimizer.safetensors", "state.json"] {
            let bytes = |checkpoint: &Checkpoint| fs::read(checkpoint.path.join(file)).unwrap();
            assert!(bytes(&whole) == bytes(&resumed), "{file} differs from step {step} on");
        }
    }
    let files = ["model.safetensors", "optimizer.safetensors"];
    files.map(|file| (file, weights::load(&whole.path.join(file)).unwrap())).into()
}
