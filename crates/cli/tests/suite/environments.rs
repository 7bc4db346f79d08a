//! Gymnasium's environments: recording, training and evaluation.

use std::{fs, path::Path};

use overtone_core::{Actions, Observations, Outcome, Task, seed::derive_nth};
use overtone_env::{Suite, VectorEnv};
use overtone_gymnasium::Gymnasium;
use overtone_testkit::Hdf5File;
use serde_json::Value;

use crate::{desk::Desk, runs::events};

/// One recorded episode.
#[derive(Default)]
struct Recorded {
    observations: Vec<f32>,
    actions: Vec<f32>,
    rewards: Vec<f64>,
    terminated: bool,
}

/// `n` episodes of `task` with the actions of `act`, which gets the observation, the episode and a
/// random number.
fn record(task: &Task, n: u64, act: impl Fn(&[f32], u64, u64) -> f32) -> Vec<Recorded> {
    let mut env = Gymnasium.open(task, &task.simulation, 1).unwrap();
    let seen = |env: &dyn VectorEnv| {
        let Observations::Vectors(row) = env.observations() else { panic!("pictures") };
        row.to_vec()
    };
    let mut episodes = Vec::new();
    for number in 0..n {
        let mut episode = Recorded::default();
        env.reset(&[0], &[number]).unwrap();
        loop {
            let before = seen(&*env);
            let draw = derive_nth(number, episode.rewards.len() as u64);
            let action = act(&before, number, draw);
            let actions = match task.actions.size() {
                1 => Actions::Continuous { width: 1, values: vec![action] },
                _ => Actions::Discrete(vec![action as usize]),
            };
            let step = env.step(&[0], &actions).unwrap()[0];
            episode.observations.extend(before);
            episode.actions.push(action);
            episode.rewards.push(step.reward.into());
            if step.outcome.is_some() {
                episode.observations.extend(seen(&*env));
                episode.terminated = step.outcome == Some(Outcome::Terminated);
                break;
            }
        }
        episodes.push(episode);
    }
    episodes
}

/// Writes episodes in Minari's layout.
fn write(path: &Path, episodes: &[Recorded], width: usize, is_list: bool) {
    let file = Hdf5File::create(path);
    for (number, episode) in episodes.iter().enumerate() {
        let group = file.group(&format!("episode_{number}"));
        let n = episode.rewards.len();
        group.put("observations", &episode.observations, width);
        if is_list {
            let ids: Vec<i64> = episode.actions.iter().map(|&action| action as i64).collect();
            group.put("actions", &ids, 0);
        } else {
            group.put("actions", &episode.actions, 1);
        }
        group.put("rewards", &episode.rewards, 0);
        for (name, holds) in
            [("terminations", episode.terminated), ("truncations", !episode.terminated)]
        {
            let mut flags = vec![false; n];
            flags[n - 1] = holds;
            group.put(name, &flags, 0);
        }
    }
}

fn report(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// CartPole from poor recordings to an agent far above random actions, which score 22. It has the
/// reference's dropout and tokens and a short warm-up. Half of its temperature is even better,
/// because the recorded policies act partly at random.
#[test]
fn a_trained_agent_balances_a_pole() {
    let desk = Desk::new();
    let task = Gymnasium.task("CartPole-v1").unwrap();
    // Three to ten of ten actions are random.
    let act = |seen: &[f32], episode: u64, draw: u64| match draw % 10 < 3 + episode % 8 {
        true => (draw / 10 % 2) as f32,
        false => f32::from(seen[2] + 0.3 * seen[3] > 0.0),
    };
    let episodes = record(task, 120, act);
    let lengths = episodes.iter().map(|episode| episode.rewards.len());
    let mean = lengths.sum::<usize>() as f64 / 120.0;
    assert!((20.0..150.0).contains(&mean), "recorded: {mean}");
    write(&desk.path("cartpole.hdf5"), &episodes, 4, true);
    let stdout = desk.succeeds(
        "train task=gymnasium/cartpole-v1 data.path=cartpole.hdf5 model.n_layers=1 \
         model.d_model=32 model.context_length=5 model.dropout=0.1 model.time=episode \
         model.return_unit=scale train.batch_size=64 train.updates=400 train.warmup_tokens=200000 \
         evaluation.episodes=10 evaluation.target=500 evaluation.temperature=1",
    );
    assert!(!stdout.contains("odd:"), "{stdout}");
    let run = desk.only_run("runs");
    let name = run.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.contains("CartPole-v1"), "{name}");
    let played = report(&run.join("evaluation.json"));
    assert_eq!(played["task"]["suite"], "gymnasium");
    assert_eq!(played["simulator"], "Gymnasium 1.4.0, CartPole-v1");
    assert_eq!(played["protocol"]["simulation"]["max_episode_steps"], 500);
    let target = &played["targets"][0];
    assert_eq!(target["normalized"], Value::Null, "no convention has CartPole");
    let score = |report: &Value| report["targets"][0]["raw_return"]["mean"].as_f64().unwrap();
    let at_one = score(&played);
    assert!(at_one > 2.0 * mean && at_one > 150.0, "recorded {mean}, played {at_one}");
    let seeds = |report: &Value| -> Vec<u64> {
        let episodes = report["episodes"].as_array().unwrap().iter();
        episodes.map(|episode| episode["environment_seed"].as_u64().unwrap()).collect()
    };
    assert_eq!(seeds(&played).len(), 10);
    // The checkpoint contains the task's spaces: evaluated again without parallel episodes.
    desk.succeeds("evaluate rollouts episodes=10 target=500 parallel=1 out=again.json");
    let again = report(&desk.path("again.json"));
    assert_eq!((seeds(&again), &again["episodes"]), (seeds(&played), &played["episodes"]));
    desk.succeeds("evaluate rollouts episodes=10 target=500 temperature=0.5 out=half.json");
    let at_half = score(&report(&desk.path("half.json")));
    assert!(at_half > 2.5 * mean, "recorded {mean}, played {at_half}");
}

/// A pendulum's torques go up to 2: an agent that learns full torque uses it.
#[test]
fn actions_are_learned_and_played_between_their_bounds() {
    let desk = Desk::new();
    let task = Gymnasium.task("Pendulum-v1").unwrap();
    // Full torque in the direction of the velocity.
    let act = |seen: &[f32], _, draw: u64| {
        (2.0 * (8.0 * seen[2]).tanh() + (draw % 100) as f32 / 1000.0).clamp(-2.0, 2.0)
    };
    let episodes = record(task, 10, act);
    write(&desk.path("pendulum.hdf5"), &episodes, 3, false);
    let words = "train task=gymnasium/Pendulum-v1 data.path=pendulum.hdf5 model.n_layers=1 \
                 model.d_model=32 model.context_length=3 train.batch_size=32 train.updates=300 \
                 evaluation.episodes=4";
    let stdout = desk.succeeds(words);
    assert!(!stdout.contains("odd:"), "{stdout}");
    let mean = |returns: &[f64]| returns.iter().sum::<f64>() / returns.len() as f64;
    let recorded: Vec<f64> = episodes.iter().map(|episode| episode.rewards.iter().sum()).collect();
    let played = report(&desk.only_run("runs").join("evaluation.json"));
    let score = played["targets"][0]["raw_return"]["mean"].as_f64().unwrap();
    // Half or no torque is another motion, with another cost.
    let [weak, idle] = [0.5, 0.0].map(|share| {
        let weaker = |seen: &[f32], n, draw| share * act(seen, n, draw);
        let episodes = record(task, 4, weaker);
        mean(&episodes.iter().map(|episode| episode.rewards.iter().sum()).collect::<Vec<f64>>())
    });
    let recorded = mean(&recorded);
    let apart = |other: f64| (score - other).abs();
    assert!(
        apart(recorded) < apart(weak) && apart(recorded) < apart(idle),
        "recorded {recorded}, played {score}, half as hard {weak}, not at all {idle}"
    );
}

/// A module that prints, in Python and below it; `Short` ends after ten steps, `Endless` never.
const LOUD: &str = r#"
import os
import gymnasium
import numpy
from gymnasium import spaces

print("a greeting")
os.write(1, b"a greeting from below\n")


class Short(gymnasium.Env):
    observation_space = spaces.Box(-9, 9, (1,), numpy.float32)
    action_space = spaces.Discrete(2)
    length = 10

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        print("a reset")
        self.time = 0
        return numpy.float32([0]), {}

    def step(self, action):
        self.time += 1
        ends = self.time == self.length
        return numpy.float32([self.time % 7]), 1.0, ends, False, {}


class Endless(Short):
    length = None


class Clock(Short):
    observation_space = spaces.Box(-numpy.inf, numpy.inf, (2,), numpy.float64)

    def reset(self, *, seed=None, options=None):
        return numpy.array([0, 1.7e9]), super().reset(seed=seed)[1]

    def step(self, action):
        _, *rest = super().step(action)
        return numpy.array([numpy.sin(self.time), 1.7e9 + self.time]), *rest


class Chosen(Short):
    def step(self, action):
        seen, _, ends, *rest, info = super().step(action)
        return seen, float(action), ends, *rest, {"is_success": numpy.float32(action)}


for kind in (Short, Endless, Clock, Chosen):
    gymnasium.register(f"{kind.__name__}-v0", kind)
"#;

#[test]
fn output_of_an_environment_is_not_on_standard_output() {
    let desk = Desk::new();
    fs::write(desk.path("loud.py"), LOUD).unwrap();
    let record = "record task=gymnasium/loud:Short-v0 to=short.hdf5 transitions=40";
    let said = desk.run(record);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(!said.stdout.contains("a greeting") && !said.stdout.contains("a reset"));
    for line in ["a greeting", "a greeting from below", "a reset"] {
        assert!(said.stderr.lines().any(|said| said == line), "{line}: {}", said.stderr);
    }
    // Without a limit, a line before the start explains how to set one.
    let line =
        "gymnasium/loud:Short-v0 does not have a step limit: an episode of 10000 steps is an error";
    assert!(
        said.stdout.contains(line) && said.stdout.contains("episode_steps="),
        "{}",
        said.stdout
    );
    let json = desk.run("data lint short.hdf5 --json --task gymnasium/loud:Short-v0").stdout;
    let found: Value = serde_json::from_str(&json).unwrap();
    assert!(found.is_object(), "{json}");
}

#[test]
fn success_is_reported_next_to_the_returns() {
    let desk = Desk::new();
    fs::write(desk.path("loud.py"), LOUD).unwrap();
    let output = |words: &str| {
        let said = desk.run(words);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        said.stdout
    };
    output("record task=gymnasium/loud:Chosen-v0 to=chosen.hdf5 transitions=200");
    let train = |task: &str| {
        output(&format!(
            "train task=gymnasium/loud:{task}-v0 data.path=chosen.hdf5 runs={task} algorithm=behavior_cloning \
             model.n_layers=1 model.d_model=16 train.batch_size=8 train.updates=4 \
             train.checkpoint_every=2 evaluation.every=1 evaluation.every_episodes=6 \
             evaluation.temperature=1 evaluation.episodes=20"
        ))
    };
    let stdout = train("Chosen");
    for part in ["success [interval]", ", success 0.", " in 6 episodes"] {
        assert!(stdout.contains(part), "no {part:?} in\n{stdout}");
    }
    let run = desk.only_run("Chosen");
    let played = report(&run.join("evaluation.json"));
    let episodes = played["episodes"].as_array().unwrap();
    let n = episodes.iter().filter(|episode| episode["success"] == true).count();
    assert!((1..20).contains(&n), "the agent clones random actions: {n} of 20");
    let success = &played["targets"][0]["success"];
    assert_eq!(success["value"], n as f64 / 20.0);
    let [low, high] = ["low", "high"].map(|end| success["interval"][end].as_f64().unwrap());
    assert!(low < n as f64 / 20.0 && (n as f64 / 20.0) < high && low > 0.0, "{success}");
    let curves = events(&run);
    assert_eq!(curves["eval/success"].len(), 2);
    assert!((curves["eval/success"][1].1 - n as f64 / 20.0).abs() < 1e-6);
    let columns = fs::read_to_string(run.join("checkpoints.csv")).unwrap();
    assert_eq!(columns.matches(",eval/success,").count(), 1, "{columns}");

    // This environment does not say whether an episode succeeded, although its episodes terminate.
    let stdout = train("Short");
    assert!(!stdout.contains("success"), "{stdout}");
}

#[test]
fn values_that_float32_makes_equal_are_reported_while_recording() {
    let desk = Desk::new();
    fs::write(desk.path("loud.py"), LOUD).unwrap();
    let said = desk.run("record task=gymnasium/loud:Clock-v0 to=clock.hdf5 transitions=200");
    let lines: Vec<&str> =
        said.stderr.lines().filter(|line| line.starts_with("warning: observation")).collect();
    assert_eq!(lines.len(), 1, "{}", said.stderr);
    assert!(lines[0].contains("place 1: float32 makes"), "{lines:?}");
    let short = desk.run("record task=gymnasium/loud:Short-v0 to=short.hdf5 transitions=200");
    assert!(!short.stderr.contains("float32"), "{}", short.stderr);
}

#[test]
fn an_episode_that_never_ends_is_an_error() {
    let desk = Desk::new();
    fs::write(desk.path("loud.py"), LOUD).unwrap();
    let record = "record task=gymnasium/loud:Endless-v0 to=endless.hdf5 transitions=100";
    let refused = desk.run(record);
    let error = refused.stderr.lines().find(|line| line.starts_with("error: ")).unwrap();
    for part in ["has not ended after 10000 steps", "episode_steps=1000"] {
        assert!(error.contains(part), "no {part:?} in: {error}");
    }
    assert_eq!(refused.code, Some(1));
    assert!(!desk.path("endless.hdf5").exists());
    let stdout = desk.run(&format!("{record} episode_steps=20")).stdout;
    assert!(stdout.contains("recorded 100 transitions in 5 episodes"), "{stdout}");
    assert!(!stdout.contains("no step limit"), "{stdout}");
}

#[test]
fn missing_environments_are_reported_before_training() {
    let desk = Desk::new();
    desk.refuses("train task=gymnasium/CartPool-v1");
    desk.refuses("train task=gymnasium/LunarLander-v3 data.path=x.hdf5");
    desk.refuses("train task=ale/combat");
    desk.refuses("train game=MsPackman");
}
