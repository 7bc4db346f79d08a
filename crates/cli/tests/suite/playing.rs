//! Training, then evaluation in the real game.

use std::{fs, path::Path, thread::sleep, time::Duration};

use serde_json::Value;

use crate::{
    desk::{Desk, checkpoint, interrupt, said},
    runs::events,
};

fn report(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The identity of an episode: target, number, seed, length, return.
fn episodes(report: &Value) -> Vec<Value> {
    let fields = ["target_return", "episode", "seed", "length", "raw_return", "clipped_return"];
    let episodes = report["episodes"].as_array().unwrap().iter();
    let picked = |episode: &Value| fields.map(|field| episode[field].clone());
    episodes.map(|episode| Value::from(picked(episode).to_vec())).collect()
}

#[test]
fn a_trained_agent_plays_and_is_scored() {
    let desk = Desk::new();
    let words = "evaluation.episodes=2 evaluation.target=5,10";
    let stdout = desk.succeeds(&desk.tiny(words));
    let run = desk.only_run("runs");
    let first = report(&run.join("evaluation.json"));

    assert_eq!(first["task"]["title"], "Seaquest");
    assert_eq!(first["rom_md5"], "240bfbac5163af4df5ae713985386f92");
    assert_eq!(first["protocol"]["name"], "matched");
    assert_eq!(first["protocol"]["simulation"]["sticky_probability"], 0.25);
    assert_eq!(first["protocol"]["return_units"], "clipped");
    assert_eq!(first["checkpoint"]["path"], "checkpoints/step-00000004");
    assert_eq!((&first["checkpoint"]["step"], &first["seed"]), (&4.into(), &1.into()));
    let state: Value = serde_json::from_slice(&checkpoint(&run, 4)["state.json"]).unwrap();
    assert_eq!(first["dataset_hash"], state["dataset_hash"]);
    assert_eq!(first["dataset_hash"].as_str().unwrap().len(), 64);

    let played = first["episodes"].as_array().unwrap();
    assert_eq!(played.len(), 4);
    for (target, episodes) in [5.0, 10.0].into_iter().zip(played.chunks(2)) {
        assert!(episodes.iter().all(|episode| episode["target_return"] == target));
        // Both targets have the same episodes.
        assert_eq!(episodes[0]["seed"], played[0]["seed"]);
        assert_eq!(episodes[1]["seed"], played[1]["seed"]);
    }
    assert_ne!(played[0]["seed"], played[1]["seed"]);
    for episode in played {
        assert!(episode["length"].as_u64().unwrap() > 30, "{episode}");
        // Seaquest's points are multiples of ten; the data's are clipped to one.
        assert_eq!(episode["raw_return"].as_f64().unwrap() % 10.0, 0.0, "{episode}");
    }
    for target in first["targets"].as_array().unwrap() {
        let (raw, normalized) = (&target["raw_return"]["mean"], &target["normalized"]["mean"]);
        // The default convention's random and human scores.
        let expected = (raw.as_f64().unwrap() - 68.0) / (42_055.0 - 68.0) * 100.0;
        assert!((normalized.as_f64().unwrap() - expected).abs() < 1e-9, "{target}");
        // Every action was drawn from a distribution over 18 actions; one-hot is 0.7764.
        let smoothness = &target["smoothness"];
        assert_eq!((&smoothness["n_bins"], &smoothness["order"]), (&18.into(), &"compass".into()));
        let steps = played.iter().filter(|e| e["target_return"] == target["target_return"]);
        let steps: u64 = steps.map(|episode| episode["length"].as_u64().unwrap()).sum();
        assert_eq!(smoothness["n"], steps);
        let (mean, sd) = (smoothness["mean"].as_f64().unwrap(), smoothness["sd"].as_f64().unwrap());
        assert!(0.0 < mean && mean < 0.78 && sd > 0.0, "{smoothness}");
    }
    assert!(!stdout.contains("smoothness"), "of interest for Fourier heads alone: {stdout}");
    for start in ["evaluating runs/", "Seaquest · Decision Transformer", "evaluation: runs/"] {
        assert_eq!(stdout.lines().filter(|line| line.starts_with(start)).count(), 1, "{start}");
    }
    let curves = events(&run);
    for tag in ["train/loss", "eval/return", "eval/normalized_return/target_10"] {
        assert_eq!(curves[tag].len(), 1, "{tag}");
        assert_eq!(curves[tag][0].0, 4, "{tag}");
    }

    // Repeated without parallel episodes: the same episodes.
    let again = "evaluate rollouts episodes=2 target=5,10 parallel=1 out=again.json";
    desk.succeeds(again);
    let second = report(&desk.path("again.json"));
    assert_eq!((&first["parallel_episodes"], &second["parallel_episodes"]), (&4.into(), &1.into()));
    assert_eq!(episodes(&first), episodes(&second));
    desk.succeeds("evaluate rollouts episodes=2 target=5,10");
    assert_eq!(episodes(&report(&run.join("evaluation.json"))), episodes(&first));
    // The report's own command repeats it too; another seed has other episodes.
    let command = first["command"].as_str().unwrap().strip_prefix("overtone ").unwrap();
    desk.succeeds(&format!("{command} out=written.json"));
    assert_eq!(episodes(&report(&desk.path("written.json"))), episodes(&first));
    desk.succeeds("evaluate rollouts episodes=2 target=5,10 seed=2 out=other.json");
    assert_ne!(episodes(&report(&desk.path("other.json"))), episodes(&first));
}

/// Two checkpoints of one run and one of another, two targets each, in one call.
#[test]
fn checkpoints_have_the_same_episodes_together_and_alone() {
    let desk = Desk::new();
    desk.succeeds(&desk.tiny("runs=first train.checkpoint_every=2"));
    desk.succeeds(&desk.tiny("runs=second seed=7"));
    let runs = ["first", "second"].map(|root| desk.only_run(root));
    let names = runs.each_ref().map(|run| run.display().to_string());
    let words = "evaluate rollouts episodes=2 target=5,10";
    let result = |path: &Path| {
        let report = report(path);
        (episodes(&report), report["checkpoint"]["step"].clone())
    };
    let alone = |run: &str, step: u64| {
        desk.succeeds(&format!("{words} run={run} checkpoint={step} out=alone.json"));
        result(&desk.path("alone.json"))
    };
    let (at_2, at_4, other) = (alone(&names[0], 2), alone(&names[0], 4), alone(&names[1], 4));
    assert_ne!(at_2.0, other.0, "the agents differ");

    // Three parallel slots for eight episodes, which mix both checkpoints.
    desk.succeeds(&format!("{words} run={} checkpoint=2,last parallel=3", names[0]));
    assert_eq!(result(&runs[0].join("evaluation-2.json")), at_2);
    assert_eq!(result(&runs[0].join("evaluation-4.json")), at_4);
    assert!(!runs[0].join("evaluation.json").exists());
    // In one thread, and together.
    let line = format!("{words} run={}", names.join(","));
    let output = desk.command(&line).env("RAYON_NUM_THREADS", "1").output().unwrap();
    assert_eq!(said(output).code, Some(0));
    assert_eq!(result(&runs[0].join("evaluation.json")), at_4);
    assert_eq!(result(&runs[1].join("evaluation.json")), other);

    let words = format!("{words} run={}", names[0]);
    desk.refuses(&format!("{words} checkpoint=4,last"));
    desk.refuses(&format!("{words} checkpoint=2,4 out=one.json"));
}

fn settings(differences: &Value) -> Vec<&str> {
    let differences = differences.as_array().unwrap().iter();
    differences.map(|difference| difference["setting"].as_str().unwrap()).collect()
}

#[test]
fn both_protocols_stand_side_by_side() {
    let desk = Desk::new();
    desk.succeeds(&desk.tiny(""));
    let run = desk.only_run("runs");
    let stdout = desk.succeeds("evaluate rollouts episodes=1 protocol=matched,released");
    let matched = report(&run.join("evaluation.json"));
    let released = report(&run.join("evaluation-released.json"));
    let expected = ["matched", "released"];
    assert_eq!([&matched, &released].map(|report| report["protocol"]["name"].clone()), expected);
    let target = |report: &Value| report["episodes"][0]["target_return"].clone();
    // A return of the data, and the reference's target.
    let state: Value = serde_json::from_slice(&checkpoint(&run, 4)["state.json"]).unwrap();
    let returns = state["episode_returns"].as_array().unwrap();
    assert!(returns.iter().any(|episode| episode[0] == target(&matched)), "{returns:?}");
    assert_eq!(target(&released), 1150.0);
    assert_eq!(settings(&matched["differences"]), [""; 0]);
    // A linear head's bins are the environment's ids, and both target and rewards are whole.
    let expected = [
        "simulation.sticky_probability",
        "simulation.resize",
        "simulation.max_noops",
        "simulation.double_reset",
        "return_units",
        "global_timestep",
        "target_return",
    ];
    assert_eq!(settings(&released["differences"]), expected);
    for part in [
        "no setting differs from the recorded data and training",
        "  simulation.sticky_probability 0, trained with 0.25: the emulator repeats",
        "  target_return 1150, trained with ",
        "All protocols",
    ] {
        assert!(stdout.contains(part), "no {part:?} in\n{stdout}");
    }
    let table = stdout.split_once("All protocols").unwrap().1;
    let written: Vec<Vec<&str>> =
        table.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        written[0][1..5],
        ["4", "matched", &target(&matched).as_f64().unwrap().to_string(), "1"]
    );
    assert_eq!(written[1][1..5], ["4", "released", "1150", "1"]);

    // Alone, and by its own command, it has the same result and keeps the other report.
    fs::remove_file(run.join("evaluation-released.json")).unwrap();
    let command = released["command"].as_str().unwrap().strip_prefix("overtone ").unwrap();
    desk.succeeds(command);
    let again = report(&run.join("evaluation-released.json"));
    assert_eq!(episodes(&again), episodes(&released));
    assert_eq!(report(&run.join("evaluation.json")), matched);
}

#[test]
fn a_setting_is_a_protocol_with_a_paired_difference() {
    let desk = Desk::new();
    desk.succeeds(&desk.tiny(""));
    let run = desk.only_run("runs");
    let words = "evaluate rollouts episodes=2 target=5";
    let stdout = desk.succeeds(&format!("{words} protocol=matched,sticky_probability"));
    let matched = report(&run.join("evaluation.json"));
    let sticky = report(&run.join("evaluation-sticky_probability.json"));
    assert_eq!(matched["protocol"]["simulation"]["sticky_probability"], 0.25);
    let mut simulation = matched["protocol"]["simulation"].clone();
    simulation["sticky_probability"] =
        sticky["protocol"]["simulation"]["sticky_probability"].clone();
    assert_eq!(simulation, sticky["protocol"]["simulation"], "only this setting differs");
    assert_eq!(sticky["differences"][0]["setting"], "simulation.sticky_probability");
    let mean = |report: &Value| report["targets"][0]["raw_return"]["mean"].as_f64().unwrap();
    let difference = format!("{:+.1} [", mean(&sticky) - mean(&matched));
    assert!(stdout.contains(&difference), "no {difference} in\n{stdout}");
    // It cannot change an episode of this agent.
    desk.refuses(&format!("{words} protocol=matched,fed_back_actions"));
}

/// The finished episodes are a biased sample (short ones), so no report is written.
#[test]
fn an_interrupted_evaluation_reports_nothing() {
    let desk = Desk::new();
    desk.succeeds(&desk.tiny(""));
    let child = desk.command("evaluate rollouts episodes=4 parallel=1 target=5").spawn().unwrap();
    // Long enough to start, far too short for four episodes in sequence.
    sleep(Duration::from_millis(500));
    interrupt(child.id());
    let said = said(child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{said:?}");
    let error = said.stderr.lines().find(|line| line.starts_with("error: ")).unwrap();
    assert!(error.contains("stopped after") && error.contains("of 4 episodes"), "{error}");
    assert!(!desk.only_run("runs").join("evaluation.json").exists());
}
