//! Readers of what a run has written: weights, checkpoints, metrics, evaluations.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use overtone_agents::exchange::{self, Description};
use overtone_agents::state_dict::{self, MissingSettings};
use overtone_agents::{
    Agent, AlgorithmConfig, BehaviorCloningConfig, DecisionTransformerOptions, RvsConfig,
};
use overtone_core::policy::EpisodeStart;
use overtone_core::protocol::{ActionChoice, ReturnUnits};
use overtone_core::task::Targets;
use overtone_core::{
    ActionSpace, BinOrder, Normalization, ObservationSpace, Observations, Play, Simulation, Task,
    Turn, seed,
};
use overtone_env::{Corridor, VectorEnv};
use overtone_eval::statistics::Bootstrap;
use overtone_eval::{
    ActionProbability, CheckpointRef, Evaluation, Plan, RandomPolicy, Setting, SmoothnessResult,
    Timing, UsedSettings, rollout,
};
use overtone_model::burn::tensor::{Device, TensorData};
use overtone_model::head::{
    BinnedConfig, BinsHeadConfig, FourierHeadConfig, FourierLikelihoodConfig, GaussianConfig,
    TanhConfig,
};
use overtone_model::{
    DecisionTransformerConfig, HeadConfig, Init, Model, ModelConfig, PerceptronConfig,
    PositionsConfig, weights,
};
use overtone_report::page::{Page, RunFiles};
use overtone_train::metrics::Metrics;
use overtone_train::{AdamWConfig, Best, Checkpoint, Exported, Learner, TrainConfig, Unreported};

use crate::targets::{MIB, Seed, Target};

/// Numbers of an observation and of an action of the small agents.
const WIDTHS: (usize, usize) = (3, 2);

pub fn targets() -> Vec<Target> {
    vec![
        Target {
            name: "weights",
            // Tensors: `weights::load`.
            gzip: false,
            share: 130,
            limit: |bytes| 2 * MIB + 64 * bytes,
            prepare: tensors,
            read: |path| {
                weights::load(path)?;
                Ok(())
            },
        },
        Target {
            name: "checkpoint",
            // A checkpoint's files: `Checkpoint::newest`, its model, its optimizer, a step of play.
            gzip: false,
            share: 15,
            // A model, its weights and two moments; what a step of play holds.
            limit: |bytes| 64 * MIB + 64 * bytes,
            prepare: checkpoints,
            read: play_checkpoint,
        },
        Target {
            name: "exported",
            // An exported agent: `exchange::read`.
            gzip: false,
            share: 5,
            limit: |bytes| 64 * MIB + 64 * bytes,
            prepare: exported,
            read: |path| {
                exchange::read(path.parent().context("no folder of an agent")?)?;
                Ok(())
            },
        },
        Target {
            name: "state_dict",
            // A state dict of torch: `state_dict::read`, `state_dict::import`.
            gzip: false,
            share: 10,
            limit: |bytes| 64 * MIB + 64 * bytes,
            prepare: |_| {
                let file = |name: &str, bytes: &[u8]| Seed::new(name, bytes.to_vec());
                Ok(vec![
                    file("gym.pt", include_bytes!("../../../agents/tests/state_dict/gym.pt")),
                    file("older.pt", include_bytes!("../../../agents/tests/state_dict/older.pt")),
                    file("atari.pt", include_bytes!("../../../agents/tests/state_dict/atari.pt")),
                ])
            },
            read: |path| {
                let theirs = state_dict::read(path)?;
                let missing_settings = MissingSettings { n_heads: Some(2), context_length: 4 };
                let frames = ObservationSpace::Pixels { shape: vec![4, 84, 84] };
                let tasks = [
                    (ObservationSpace::Vectors { width: 5 }, ActionSpace::unit(3)),
                    (frames, ActionSpace::numbered(6)),
                ];
                let import = |(observations, actions)| {
                    state_dict::import(
                        &theirs,
                        &Task::own("own", observations, actions),
                        missing_settings,
                    )
                };
                let [vectors, frames] = tasks.map(import);
                vectors.or(frames)?;
                Ok(())
            },
        },
        Target {
            name: "evaluation",
            // `evaluation.json`: `Evaluation::read`, its tables.
            gzip: false,
            share: 75,
            limit: |bytes| 4 * MIB + 64 * bytes,
            prepare: |_| Ok(vec![Seed::new("evaluation.json", evaluation()?)]),
            read: |path| {
                let evaluation = Evaluation::read(path)?;
                let text = evaluation.to_text();
                ensure!(!text.is_empty() && !evaluation.targets.is_empty(), "nothing in it");
                Ok(())
            },
        },
        Target {
            name: "page",
            // A run's folder: `RunFiles::read`, `Page::new`, `Page::files`.
            gzip: false,
            share: 10,
            limit: |bytes| 32 * MIB + 256 * bytes,
            prepare: run,
            read: |path| {
                let mut folders = path.ancestors();
                let folder = folders.find(|folder| folder.join("config.toml").is_file());
                let run = RunFiles::read(folder.context("no run's folder")?)?;
                let bootstrap = Bootstrap { replications: 50, level: 0.95, seed: 1 };
                let files = Page::new(&[run], &bootstrap)?.files("report");
                ensure!(files.iter().all(|(name, _)| !name.contains(['/', '\\'])), "a path");
                Ok(())
            },
        },
        Target {
            name: "metrics",
            // `metrics.csv` of a run that resumes: `Metrics::open`.
            gzip: false,
            share: 20,
            limit: |bytes| MIB + 8 * bytes,
            prepare: |_| {
                Ok(vec![Seed::new("metrics.csv", METRICS), Seed::new("held_out.csv", HELD_OUT)])
            },
            read: |path| {
                let folder = path.parent().context("no run's folder")?;
                Metrics::open(folder, 20, &["accuracy"], true)?;
                for entry in fs::read_dir(folder)? {
                    let path = entry?.path();
                    if path.extension().is_none_or(|ending| ending != "csv") {
                        fs::remove_file(path)?;
                    }
                }
                Ok(())
            },
        },
    ]
}

const METRICS: &str = "step,tokens,loss,accuracy,learning_rate,grad_norm,timesteps_per_s,\
    waited_share,seconds\n10,300,2.5,0.5,1e-4,0.5,900.0,0.0100,1.50\n20,600,NaN,0.25,2e-4,\
    0.25,910.0,0.0200,3.00\n30,900,1.5,0.125,2e-4,0.25,910.0,0.0200,4.50\n";
const HELD_OUT: &str = "step,loss\n10,2.5\n20,1.5\n30,1.25\n";
/// The part of a checkpoint's state that a page reads.
const STATE: &str = r#"{"step": 200, "best": {"step": 100, "loss": 1.25}, "episode_returns": []}"#;
/// One dark pixel.
const VIDEO: &[u8] =
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\
      \x02\x02D\x01\x00;";
const CONFIG: &str = "format = 1\ntask = \"ale/seaquest\"\nseed = 1\n\n[train]\nupdates = 200\n";

fn config(head: HeadConfig) -> ModelConfig {
    ModelConfig::Transformer(DecisionTransformerConfig {
        n_layers: 1,
        d_model: 8,
        context_length: 4,
        head,
        ..DecisionTransformerConfig::gym(9)
    })
}

/// The actions of the small agents: discrete, or numbers.
fn actions(config: &ModelConfig) -> ActionSpace {
    match config.head() {
        HeadConfig::Fourier(_) => ActionSpace::numbered(WIDTHS.1),
        _ => ActionSpace::unit(WIDTHS.1),
    }
}

fn observations() -> ObservationSpace {
    ObservationSpace::Vectors { width: WIDTHS.0 }
}

/// Small agents of the different kinds.
fn agents() -> [(&'static str, ModelConfig); 6] {
    let fourier = FourierLikelihoodConfig::new(3);
    let bins = FourierHeadConfig::new(3);
    let binned = BinnedConfig { bins: 5, head: BinsHeadConfig::Fourier(bins.clone()) };
    let perceptron = PerceptronConfig {
        width: 8,
        context_length: 4,
        head: HeadConfig::Gaussian(GaussianConfig {}),
        ..PerceptronConfig::gym()
    };
    let mut told = PerceptronConfig { width: 8, ..PerceptronConfig::rvs(8) };
    if let Some(conditioning) = &mut told.conditioning {
        conditioning.top_percents = vec![10.0, 100.0];
    }
    let mut actions = config(HeadConfig::Fourier(bins));
    if let ModelConfig::Transformer(model) = &mut actions {
        model.positions = PositionsConfig::LocalAndGlobal { max_timestep: 8 };
    }
    [
        ("tanh", config(HeadConfig::Tanh(TanhConfig {}))),
        ("fourier", config(HeadConfig::FourierLikelihood(fourier))),
        ("binned", config(HeadConfig::Binned(binned))),
        ("actions", actions),
        ("perceptron", ModelConfig::Perceptron(perceptron)),
        ("told", ModelConfig::Perceptron(told)),
    ]
}

fn model(config: &ModelConfig) -> Result<Model> {
    let mut generator = seed::generator(1, "init");
    let init = &mut Init::drawn(&Device::flex(), &mut generator);
    Ok(Model::init(config, &observations(), &actions(config), init)?)
}

fn tensors(folder: &Path) -> Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    let path = folder.join("seed.safetensors");
    let metadata = BTreeMap::from([("step".to_owned(), "3".to_owned())]);
    let doubles = TensorData::new(vec![1.0f64, 2.0, 3.0], [3]);
    let small = BTreeMap::from([
        ("scalar".to_owned(), TensorData::new(vec![0.5f32], [1])),
        ("doubles".to_owned(), doubles),
        ("none".to_owned(), TensorData::new(Vec::<f32>::new(), [0, 4])),
    ]);
    for tensors in [weights::export(&model(&agents()[0].1)?), small] {
        weights::save(&tensors, &metadata, &path)?;
        seeds.push(Seed::new("model.safetensors", fs::read(&path)?));
    }
    fs::remove_file(path)?;
    Ok(seeds)
}

/// A checkpoint of each agent. One has its sums; the others have none, so that what is damaged gets
/// past them.
fn checkpoints(folder: &Path) -> Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    for (name, config) in agents() {
        let model = model(&config)?;
        // Both moments of every parameter, as if training had begun.
        let moments = weights::export(&model).into_iter().flat_map(|(name, data)| {
            let flat = TensorData::new(vec![0.5f32; data.num_elements()], [data.num_elements()]);
            ["first", "second"].map(|which| (format!("{which}.{name}"), flat.clone()))
        });
        let learned = Exported { model: weights::export(&model), training: moments.collect() };
        let state = state(config);
        let saved = Checkpoint::save(&folder.join(name), &state, &learned, 1, 1)?;
        let sums = name == "perceptron";
        if !sums {
            fs::remove_file(saved.path.join("SHA256SUMS"))?;
        }
        for entry in fs::read_dir(&saved.path)? {
            let path = entry?.path();
            let file = path.strip_prefix(folder)?.to_string_lossy().into_owned();
            // A file with a checksum is refused by it: only the checkpoint's sums are damaged.
            if !sums || file.ends_with("SHA256SUMS") {
                seeds.push(Seed::new(file, fs::read(&path)?));
            }
        }
    }
    seeds.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(seeds)
}

/// The description of a small agent in a checkpoint.
fn state(model: ModelConfig) -> overtone_train::TrainState {
    overtone_train::TrainState {
        format: overtone_train::checkpoint::FORMAT,
        step: 3,
        n_drawn: 9,
        tokens: 27,
        seed: 1,
        init_source: None,
        agent: agent(model).to_value(),
        dataset_hash: "beef".into(),
        dataset_kind: "starter".into(),
        episode_returns: overtone_data::EpisodeReturns::new([(0.5, 3), (1.5, 4)]),
        first_observations: overtone_core::FirstObservations::of([&[0.5f32; 3][..]], 3),
        held_out_share: 0.1,
        held_out: Some(0.75),
        best: Some(Best { step: 3, loss: 0.75 }),
        unreported: Some(Unreported {
            steps: 1,
            loss: 0.5,
            figures: vec![0.5],
            figure_steps: vec![1],
        }),
    }
}

/// Every small agent as `export` writes it.
fn exported(folder: &Path) -> Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    for (name, config) in agents() {
        let folder = folder.join(name);
        fs::create_dir_all(&folder)?;
        let path = folder.join(exchange::WEIGHTS);
        weights::save(&weights::export(&model(&config)?), &BTreeMap::new(), &path)?;
        let description = Description {
            layout: exchange::LAYOUT,
            overtone: "0.1.0".into(),
            sha256: overtone_train::checkpoint::sha256(&path)?,
            state: state(config),
            settings: CONFIG.into(),
            choice: None,
        };
        let description = serde_json::to_vec(&description)?;
        fs::write(folder.join(exchange::DESCRIPTION), &description)?;
        seeds.push(Seed::new(format!("{name}/{}", exchange::WEIGHTS), fs::read(&path)?));
        seeds.push(Seed::new(format!("{name}/{}", exchange::DESCRIPTION), description));
    }
    Ok(seeds)
}

/// An agent with such a model.
fn agent(model: ModelConfig) -> Agent {
    let task = Task {
        suite: "mujoco".into(),
        name: "hopper".into(),
        title: "Hopper".into(),
        observations: observations(),
        actions: actions(&model),
        horizon: Some(9),
        return_units: ReturnUnits::Raw,
        reference: None,
        targets: Targets::default(),
        simulation: simulation(),
    };
    let algorithm = match model {
        ModelConfig::Transformer(model) => {
            AlgorithmConfig::DecisionTransformer(DecisionTransformerOptions(model))
        }
        ModelConfig::Perceptron(model) if model.conditioning.is_some() => {
            AlgorithmConfig::Rvs(RvsConfig(model))
        }
        perceptron => AlgorithmConfig::BehaviorCloning(BehaviorCloningConfig(perceptron)),
    };
    Agent {
        task,
        dataset: "medium".into(),
        algorithm,
        normalization: Some(Normalization::identity(WIDTHS.0)),
        return_scale: 10.0,
        delayed_reward: false,
        recording: Some(simulation()),
        needs_action_mask: false,
    }
}

/// How D4RL's robots were simulated.
fn simulation() -> Simulation {
    Simulation::new([("revision", "v4".into()), ("max_steps", 1000u32.into())])
}

fn play_checkpoint(path: &Path) -> Result<()> {
    let folder = path.ancestors().nth(2).context("no folder of checkpoints")?;
    let (checkpoint, _) = Checkpoint::newest(folder)?;
    let device = Device::flex();
    let agent = Agent::of(&checkpoint)?;
    let protocol = Play { action_choice: ActionChoice::Sample, ..agent.matched() };
    let mut policy = overtone_agents::policy(&checkpoint, &protocol, &device)?;
    // The weights fit the configuration: now training may resume with them.
    if let Some(config) = agent.algorithm.model() {
        let (observations, actions) = (&agent.task.observations, &agent.task.actions);
        let weights = checkpoint.weights()?;
        let model = Model::from_weights(&config, observations, actions, &weights, &device)?;
        let config = TrainConfig { optimizer: AdamWConfig::ATARI, ..TrainConfig::default() };
        let _: Learner<Model> = checkpoint.restore(Learner::new(model, &config))?;
    }
    let start = EpisodeStart { seed: 1, target_return: 3000.0 };
    let turn = Turn { agent: 0, reward: 0.0, start: Some(start) };
    let observation = vec![0.5; agent.task.observations.size()];
    let acted = policy.act(&[turn], Observations::Vectors(&observation));
    acted.map_err(anyhow::Error::from_boxed)?;
    Ok(())
}

/// Random play, written as the program writes it.
fn evaluation() -> Result<Vec<u8>> {
    let return_units = ReturnUnits::Clipped;
    let plan = Plan::new(4, vec![16.0, 32.0], 5, return_units);
    let mut env = Corridor::new(4, 6, 12, 0.2);
    let mut policy = RandomPolicy::new(env.action_space().clone(), 4);
    let played = rollout(&mut env, &mut policy, &plan, &mut |_| ControlFlow::Continue(()))?;
    let task = &overtone_ale::Game::named("seaquest")?.task;
    let setting = Setting {
        protocol: task.matched(None),
        task: task.clone(),
        simulator: "a corridor".into(),
        rom_md5: Some("0123".into()),
        policy: "uniform random".into(),
        checkpoint: Some(CheckpointRef { path: "checkpoints/step-200".into(), step: 200 }),
        dataset_hash: Some("beef".into()),
        differences: Vec::new(),
        used_settings: UsedSettings::ALL,
        choice: None,
        command: "overtone evaluate rollouts checkpoint=200 seed=5".into(),
    };
    let mut evaluation = Evaluation::new(setting, &plan, played)?;
    // A value from the clock would make every search different.
    (evaluation.wall_seconds, evaluation.steps_per_second) = (2.0, 100.0);
    evaluation.timing =
        Timing { steps_per_second: 100.0, acting: 0.5, waiting: 0.25, stepping: 0.5, full: 1.0 };
    // The output of a policy that draws from bins.
    for target in &mut evaluation.targets {
        let order = BinOrder::Environment;
        target.smoothness =
            Some(SmoothnessResult { n_bins: 2, order, n: 40, mean: 0.05, sd: Some(0.01) });
        let share = |(action, share): (&str, f64)| ActionProbability {
            action: action.into(),
            probability: share,
        };
        target.actions = Some([("NOOP", 0.25), ("FIRE", 0.75)].map(share).into());
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("evaluation.json");
    evaluation.write(&path)?;
    Ok(fs::read(path)?)
}

fn run(folder: &Path) -> Result<Vec<Seed>> {
    fs::create_dir_all(folder.join("checkpoints/step-00000200"))?;
    Ok(vec![
        Seed::new("config.toml", CONFIG),
        Seed::new("metrics.csv", METRICS),
        Seed::new("evaluation.json", evaluation()?),
        Seed::new("checkpoints/step-00000200/state.json", STATE),
        Seed::new("video.gif", VIDEO),
    ])
}
