//! Runs that are initialised from another run: `train init=RUN`.

use std::{fs, path::Path};

use overtone_model::weights;
use serde_json::Value;

use crate::desk::{Desk, Running, checkpoint, names, same_run, steps, wait_until};

const SOURCE: &str = "train env=hopper train.batch_size=3 train.updates=4 evaluation.episodes=0 \
                      runs=before";
const TRANSFORMER: &str = "model.n_layers=1 model.d_model=16 model.context_length=5";
/// A learning rate so small that no nonzero number changes.
const NOTHING_LEARNED: &str = "train.updates=1 train.batch_size=3 train.learning_rate=1e-30 \
                               evaluation.episodes=0 seed=7";

fn state(run: &Path, step: u64) -> Value {
    serde_json::from_slice(&checkpoint(run, step)["state.json"]).unwrap()
}

/// The largest difference of two runs' networks: policies and critics.
#[track_caller]
fn distance(one: (&Path, u64), other: (&Path, u64)) -> f32 {
    let [one, other] = [one, other].map(|(run, step)| {
        let folder = run.join(format!("checkpoints/step-{step:08}"));
        let load = |name: &str| weights::load(&folder.join(name)).unwrap();
        let mut networks = load("model.safetensors");
        let critics = load("optimizer.safetensors").into_iter();
        let is_critic = |name: &str| name.starts_with("critics.") || name.starts_with("value.");
        networks.extend(critics.filter(|(name, _)| is_critic(name)));
        networks
    });
    assert!(one.keys().eq(other.keys()));
    let pairs = one
        .values()
        .zip(other.values())
        .flat_map(|(one, other)| one.iter::<f32>().zip(other.iter::<f32>()).collect::<Vec<_>>());
    pairs.map(|(one, other)| (one - other).abs()).fold(0.0, f32::max)
}

/// With every algorithm, the first step has the other run's weights, and not without `init`.
#[test]
fn the_first_step_has_the_other_runs_predictions() {
    for algorithm in [
        TRANSFORMER,
        "attention=fourier head=fourier head.bins=5 model.n_layers=1 model.d_model=16",
        "algorithm=rvs model.d_model=16 model.top_percents=none",
        "algorithm=rvs model.d_model=16 model.top_percents=10,100",
        "algorithm=behavior_cloning model.kind=perceptron head=gmm head.weights=learned \
         head.std=state model.d_model=16",
        "algorithm=td3_bc td3_bc.hidden=8",
        "algorithm=iql iql.hidden=8",
        "algorithm=rebrac rebrac.hidden=8 rebrac.normalize=true",
    ] {
        let desk = Desk::new();
        desk.succeeds(&format!("{SOURCE} {algorithm}"));
        let source = desk.only_run("before");
        let said = desk.succeeds(&format!("train init={} {NOTHING_LEARNED}", source.display()));
        assert!(said.contains("init: weights of"), "{said}");
        let run = desk.only_run("runs");
        let moved = distance((&source, 4), (&run, 1));
        assert!(moved < 1e-20, "{algorithm}: {moved}");
        let (before, after) = (state(&source, 4), state(&run, 1));
        assert_eq!(before["agent"], after["agent"], "{algorithm}");
        assert_eq!(
            (&after["init_source"]["step"], &before["init_source"]),
            (&4.into(), &Value::Null)
        );
        let sha256 = after["init_source"]["sha256"].as_str().unwrap();
        let sums = String::from_utf8(checkpoint(&source, 4)["SHA256SUMS"].clone()).unwrap();
        assert!(sums.contains(&format!("{sha256}  model.safetensors")), "{sums}");

        let plain = format!("train env=hopper {algorithm} {NOTHING_LEARNED} runs=drawn");
        desk.succeeds(&plain);
        let drawn = distance((&source, 4), (&desk.only_run("drawn"), 1));
        assert!(drawn > 1e-3, "{algorithm}: {drawn}");
    }
}

/// Discrete actions, on images and with value-based algorithms.
#[test]
fn games_begin_with_weights_too() {
    for algorithm in ["", "algorithm=discrete_cql discrete_cql.hidden=8 discrete_cql.quantiles=3"] {
        let desk = Desk::new();
        let line = desk.tiny("runs=before");
        // Conservative Q-learning has no model of logged actions.
        let line = match algorithm {
            "" => line,
            _ => line
                .split(' ')
                .filter(|word| !word.starts_with("model."))
                .collect::<Vec<_>>()
                .join(" "),
        };
        desk.succeeds(&format!("{line} {algorithm}"));
        let source = desk.only_run("before");
        let cache = line.split(' ').find(|word| word.starts_with("data.cache=")).unwrap();
        desk.succeeds(&format!("train init={} {cache} {NOTHING_LEARNED}", source.display()));
        let moved = distance((&source, 4), (&desk.only_run("runs"), 1));
        assert!(moved < 1e-20, "{algorithm}: {moved}");
    }
}

#[test]
fn other_data_is_seen_as_the_weights_know_it() {
    let desk = Desk::new();
    desk.succeeds(&format!("{SOURCE} {TRANSFORMER}"));
    let source = desk.only_run("before");
    let line = format!("train init={}:4 dataset=medium {NOTHING_LEARNED}", source.display());
    desk.succeeds(&line);
    let (before, after) = (state(&source, 4), state(&desk.only_run("runs"), 1));
    assert_ne!(before["dataset_hash"], after["dataset_hash"]);
    assert_eq!(before["agent"]["normalization"], after["agent"]["normalization"]);
    assert!(before["agent"].to_string().contains("\"return_range\":["), "{before}");
    assert_eq!(before["agent"]["algorithm"], after["agent"]["algorithm"]);
    assert_eq!(after["agent"]["dataset"], "medium");
}

#[test]
fn killed_fine_tuning_resumes_without_the_other_run() {
    const LONG: &str = "train.updates=300 train.batch_size=3 train.checkpoint_every=5 \
                        evaluation.episodes=0";
    let desk = Desk::new();
    desk.succeeds(&format!("{SOURCE} {TRANSFORMER}"));
    let source = desk.only_run("before");
    let name = format!("before/{}", source.file_name().unwrap().to_string_lossy());
    desk.succeeds(&format!("train init={name} {LONG} runs=whole"));
    let whole = desk.only_run("whole");

    let child = Running::start(desk.command(&format!("train init={name} {LONG}")));
    let newest = || {
        let runs = names(&desk.path("runs"));
        runs.first().and_then(|run| steps(&desk.path("runs").join(run)).last().copied())
    };
    wait_until("a checkpoint", || newest().is_some_and(|step| step >= 10));
    child.kill();
    fs::rename(desk.path("before"), desk.path("gone")).unwrap();
    desk.refuses(&format!("train init={name} {LONG}"));
    let said = desk.succeeds("resume");
    assert!(said.contains("resuming after update"), "{said}");
    let run = desk.only_run("runs");
    same_run(&run, &whole, 300);

    // As if it had been killed before its first checkpoint.
    for gone in ["finished", "metrics.csv"] {
        fs::remove_file(run.join(gone)).unwrap();
    }
    fs::remove_dir_all(run.join("checkpoints")).unwrap();
    fs::create_dir(run.join("checkpoints")).unwrap();
    let said = desk.succeeds("resume");
    assert!(said.contains("starting over from update 0"), "{said}");
    same_run(&run, &whole, 300);
}

#[test]
fn other_agents_are_refused_with_both_values() {
    let desk = Desk::new();
    desk.succeeds(&format!("{SOURCE} {TRANSFORMER}"));
    desk.succeeds(&format!("{} algorithm=td3_bc td3_bc.hidden=8", SOURCE.replace("before", "td3")));
    let [transformer, td3] = ["before", "td3"].map(|runs| desk.only_run(runs));
    let refuses = |run: &Path, words: &str| {
        desk.refuses(&format!("train init={} {words}", run.display()));
    };
    let run = &transformer;
    refuses(run, "env=walker2d");
    refuses(run, "model.d_model=32");
    refuses(run, "model.n_heads=2");
    refuses(run, "head=gaussian");
    refuses(run, "data.return_scale=50");
    refuses(run, "data.return_scale=0");
    refuses(&td3, "data.return_scale=50");
    refuses(run, "attention=fourier");
    refuses(run, "algorithm=behavior_cloning");
    refuses(&td3, "td3_bc.hidden=16");
    refuses(&td3, "td3_bc.normalize=false");
    desk.refuses("train init=nobody");
    for checkpoint in ["7", "first"] {
        let line = format!("train init={}:{checkpoint}", run.display());
        desk.refuses(&line);
    }
    assert!(names(&desk.path("runs")).is_empty(), "nothing was begun");
    // Settings of training only may differ.
    let line = format!("train init={} {NOTHING_LEARNED}", run.display());
    desk.succeeds(&format!("{line} model.dropout=0.2"));
    desk.succeeds(&format!("train init={} {NOTHING_LEARNED} td3_bc.alpha=1", td3.display()));
}
