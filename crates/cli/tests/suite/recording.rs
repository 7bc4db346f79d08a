//! `overtone record` and `data convert`: recorded datasets train, and are reproducible.

use std::fs;

use overtone_data::read::columns;
use overtone_testkit::dopamine::Recorder;

use crate::desk::{self, Desk, names};

const TINY: &str = "evaluation.episodes=2 model.n_layers=1 model.d_model=16 \
                    model.context_length=4 train.batch_size=4 train.updates=3 runs=runs";
const CARTPOLE: &str = "record task=gymnasium/CartPole-v1 transitions=300";

#[track_caller]
fn said(desk: &Desk, line: &str) -> String {
    let said = desk.run(line);
    assert_eq!(said.code, Some(0), "{line}: {}{}", said.stdout, said.stderr);
    said.stdout
}

fn hash(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("content_sha256 ")).unwrap()
}

#[test]
fn records_of_cartpole_train_and_play() {
    let desk = Desk::new();
    let first = said(&desk, &format!("{CARTPOLE} to=first"));
    assert!(first.contains("recorded 3"), "{first}");
    assert_eq!(names(&desk.path("first/data")), ["main_data.hdf5", "metadata.json"]);
    // Both actions have probability 1/2.
    let log_probs = |name: &str| columns(&desk.path(name)).unwrap().behavior_log_probs;
    let all = log_probs("first").unwrap();
    assert!(all.len() >= 300 && all.iter().all(|&log_prob| log_prob == 0.5f32.ln()), "{all:?}");
    // The same for any number of parallel episodes; others with another seed.
    let again = said(&desk, &format!("{CARTPOLE} parallel=2 to=again.hdf5"));
    assert_eq!(hash(&again), hash(&first));
    let other = said(&desk, &format!("{CARTPOLE} seed=2 to=other"));
    assert_ne!(hash(&other), hash(&first));
    // Neither to an existing path, nor without one.
    desk.run(&format!("{CARTPOLE} to=first")).refused();
    desk.run(CARTPOLE).refused();
    // Directory and file contain the task.
    let trained = said(&desk, &format!("train dataset=./first {TINY}"));
    assert!(trained.contains("dataset: 3"), "{trained}");
    said(&desk, &format!("train dataset=again.hdf5 {TINY} seed=5"));
    let run = format!("runs/{}", names(&desk.path("runs"))[0]);
    let config = fs::read_to_string(desk.path(&run).join("config.toml")).unwrap();
    assert!(config.contains("task = \"gymnasium/CartPole-v1\""), "{config}");
    // Runs record too: by share, with switches, and with random actions.
    let mixed =
        format!("record policy={run},random share=1,3 transitions=200 epsilon=0.2 to=mixed");
    assert!(said(&desk, &mixed).contains("episodes, mean return"));
    // An action's probability is at least 0.2 / 2, and at most 1 less that.
    let range = (0.1f32.ln() - 1e-6)..=(0.9f32.ln() + 1e-6);
    let all = log_probs("mixed").unwrap();
    assert!(all.iter().all(|log_prob| range.contains(log_prob)), "{all:?}");
    assert!(all.iter().any(|&log_prob| log_prob != 0.5f32.ln()), "{all:?}");
    let turns = format!("record policy={run},random switch=3..9 transitions=200");
    for word in ["target=5,10", "actions=sample"] {
        desk.run(&format!("{turns} {word} to=none")).refused();
    }
    let one = said(&desk, &format!("{turns} to=turns"));
    let two = said(&desk, &format!("{turns} parallel=1 to=turns-again"));
    assert_eq!(hash(&one), hash(&two));
    said(&desk, &format!("train dataset=./turns {TINY} seed=6"));
    // The converted dataset has the same contents, except the last observations.
    let text = said(&desk, "data convert first converted");
    assert!(text.contains("converted 3"), "{text}");
    said(&desk, &format!("train dataset=./converted {TINY} seed=7"));
    assert_eq!(log_probs("converted"), log_probs("first"));
}

#[test]
fn pictures_and_real_valued_actions_are_recorded() {
    let desk = Desk::new();
    said(&desk, "record game=breakout transitions=60 episode_steps=40 to=breakout");
    said(&desk, &format!("train dataset=./breakout {TINY} evaluation.episodes=0"));
    said(&desk, "record task=gymnasium/Pendulum-v1 transitions=250 to=pendulum.hdf5");
    let inspected = said(&desk, "data inspect pendulum.hdf5 --json");
    let inspected: serde_json::Value = serde_json::from_str(&inspected).unwrap();
    let of = |end: &str| inspected["actions"][0][end].as_f64().unwrap();
    assert_eq!(columns(&desk.path("pendulum.hdf5")).unwrap().behavior_log_probs, None);
    // A torque is between -2 and 2, at random everywhere there.
    assert!((-2.0..-1.5).contains(&of("min")) && (1.5..=2.0).contains(&of("max")), "{inspected}");
    assert_eq!(
        (inspected["episodes"].as_u64(), inspected["transitions"].as_u64()),
        (Some(2), Some(400))
    );
    said(&desk, &format!("train dataset=pendulum.hdf5 {TINY} evaluation.episodes=0 seed=9"));
}

/// A user's own environments: one that fails at each step, and one with given bounds.
const OWN: &str = "
import gymnasium
from gymnasium import spaces

class Raises(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (2,), 'float32')
    action_space = spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.low, {}
    def step(self, action):
        raise RuntimeError('always')

class Lever(Raises):
    action_space = spaces.Box(-BOUND, BOUND, (1,), 'float32')
    def step(self, action):
        return self.observation_space.low, float(action[0]), False, False, {}
";

fn write_own(desk: &Desk, bound: &str) {
    fs::write(desk.path("own_envs.py"), OWN.replace("BOUND", bound)).unwrap();
}

#[test]
fn an_environment_that_always_fails_is_given_up() {
    let desk = Desk::new();
    write_own(&desk, "2");
    desk.run("record task=gymnasium/own_envs:Raises transitions=50 to=there").refused();
    assert!(!desk.path("there").exists());
}

/// A step limit is part of a recording's simulation, and holds in evaluations. If an agent's
/// environment has changed, its recording would be wrong.
#[test]
fn a_recording_says_how_its_environment_was() {
    let desk = Desk::new();
    write_own(&desk, "2");
    let task = "task=gymnasium/own_envs:Lever";
    said(&desk, &format!("record {task} episode_steps=30 transitions=100 to=first"));
    let metadata = fs::read_to_string(desk.path("first/data/metadata.json")).unwrap();
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    let simulation = &metadata["overtone"]["simulation"];
    assert_eq!(simulation["max_episode_steps"], 30, "{metadata}");
    let words = TINY.replace("evaluation.episodes=2", "evaluation.episodes=0");
    said(&desk, &format!("train dataset=./first {words}"));
    let run = &names(&desk.path("runs"))[0];
    write_own(&desk, "5");
    let line = format!("record policy={run} episode_steps=30 transitions=50 to=second");
    desk.run(&line).refused();
}

/// Temporary inflated files are removed, and invalid requests are refused before.
#[test]
fn a_log_is_converted_and_leaves_nothing() {
    let desk = Desk::new();
    let mut recorder = Recorder::new(&desk.path(""), "Seaquest", 60);
    (0..3).for_each(|_| recorder.episode(30));
    let run = |line: &str| {
        let mut command = desk.command(line);
        desk::said(command.env("OVERTONE_DATASETS", desk.path("datasets")).output().unwrap())
    };
    let converted = run("data convert Seaquest robot --task mujoco/hopper");
    converted.refused();
    assert!(
        !converted.stderr.contains("cache") && !desk.path("datasets/cache").exists(),
        "{converted:?}"
    );
    let converted = run("data convert Seaquest own");
    assert_eq!(converted.code, Some(0), "{converted:?}");
    assert_eq!(names(&desk.path("datasets/cache")), [""; 0]);
}

#[test]
fn words_that_are_wrong() {
    let desk = Desk::new();
    for words in [
        "",
        "task=",
        "game=seaquest env=hopper",
        "task=gymnasium/CartPole-v1 target=p50",
        "task=gymnasium/CartPole-v1 temperature=foo",
        "task=gymnasium/CartPole-v1 epsilon=2.0",
        "task=gymnasium/CartPole-v1 share=1,2",
        "task=gymnasium/CartPole-v1 switch=5..1",
        "task=gymnasium/CartPole-v1 switch=5",
        "task=gymnasium/CartPole-v1 policy=none",
        "task=gymnasium/CartPole-v1 transitions=0",
    ] {
        desk.run(&format!("record {words} to=there")).refused();
        assert!(!desk.path("there").exists());
    }
}
