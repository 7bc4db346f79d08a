//! Contents of a run's directory, and the settings that decide them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::desk::{Desk, checkpoint, curves, names, project, same_run, steps};

/// The curves in a run's event files, as TensorBoard reads them: steps and values by tag.
#[track_caller]
pub fn events(run: &Path) -> BTreeMap<String, Vec<(u64, f64)>> {
    const READ: &str = "
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={'scalars': 0})
events.Reload()
tags = events.Tags()['scalars']
print(json.dumps({tag: [(p.step, p.value) for p in events.Scalars(tag)] for tag in tags}))
";
    let python = project().join(".venv/bin/python");
    let output = Command::new(python).args(["-c", READ]).arg(run).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    // TensorBoard warns about records with a wrong checksum, and skips them.
    assert!(!stderr.contains("rror") && !stderr.contains("rrupt"), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Asserts that the events equal `metrics.csv`.
#[track_caller]
pub fn events_agree_with_metrics(run: &Path) {
    let (events, rows) = (events(run), curves(run));
    for (tag, column) in [
        ("train/loss", 2),
        ("train/cross_entropy", 3),
        ("train/accuracy", 4),
        ("train/lr", 5),
        ("train/grad_norm", 6),
    ] {
        let points = &events[tag];
        assert_eq!(points.len(), rows.len(), "{tag}: {points:?}");
        for (&(step, value), row) in points.iter().zip(&rows) {
            assert_eq!(step.to_string(), row[0], "{tag}");
            assert_eq!(value as f32, row[column].parse::<f64>().unwrap() as f32, "{tag}");
        }
    }
    // The last of each step: a record with a wrong checksum ends the reading.
    assert_eq!(events["perf/waited_share"].len(), rows.len());
}

#[test]
fn a_run_leaves_everything_about_it() {
    let desk = Desk::new();
    let words = "head=fourier seed=231 train.updates=6 train.log_every=2 \
                 train.checkpoint_every=2 train.keep_checkpoints=2";
    let stdout = desk.succeeds(&desk.tiny(words));
    let run = desk.only_run("runs");
    let name = run.file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(name, "fourier14-s231-seaquest");
    assert!(stdout.contains(&format!("run: runs/{name}")), "{stdout}");

    let config = fs::read_to_string(run.join("config.toml")).unwrap();
    let config: toml::Table = config.parse().unwrap();
    assert_eq!(config["seed"].as_integer(), Some(231));
    assert_eq!(config["profile"].as_str(), Some("quick"));
    assert_eq!(config["head"]["kind"].as_str(), Some("fourier"));
    assert_eq!(config["train"]["updates"].as_integer(), Some(6));
    // Defaults are written too.
    assert_eq!(config["train"]["optimizer"]["beta_2"].as_float(), Some(0.95));

    assert_eq!(steps(&run), [4, 6]);
    let state: serde_json::Value =
        serde_json::from_slice(&checkpoint(&run, 6)["state.json"]).unwrap();
    assert_eq!((state["step"].as_u64(), state["n_drawn"].as_u64()), (Some(6), Some(12)));
    assert_eq!(state["agent"]["task"]["title"].as_str(), Some("Seaquest"));
    assert_eq!(state["seed"].as_u64(), Some(231));
    let sums = Command::new("sha256sum")
        .args(["--check", "--strict", "--quiet", "SHA256SUMS"])
        .current_dir(run.join("checkpoints/step-00000006"))
        .status();
    // With the shell's tool, if it is installed.
    assert!(sums.is_err() || sums.unwrap().success());

    let rows = curves(&run);
    assert_eq!(rows.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["2", "4", "6"]);
    assert!(rows.iter().flatten().all(|cell| cell.parse::<f64>().unwrap().is_finite()));
    assert!(run.join("finished").is_file());
    events_agree_with_metrics(&run);
}

#[test]
fn the_seed_decides_the_weights() {
    let desk = Desk::new();
    desk.succeeds(&desk.tiny("runs=one"));
    desk.succeeds(&desk.tiny("runs=two"));
    desk.succeeds(&desk.tiny("runs=other seed=231"));
    let (one, two, other) = (desk.only_run("one"), desk.only_run("two"), desk.only_run("other"));
    same_run(&one, &two, 4);
    let weights = |run: &Path| checkpoint(run, 4).remove("model.safetensors");
    assert!(weights(&one) != weights(&other), "two seeds, one model");
    assert_ne!(curves(&one)[0][2..], curves(&other)[0][2..]);
}

#[test]
fn a_finished_run_is_not_taken_up_again() {
    let desk = Desk::new();
    desk.succeeds(&desk.tiny(""));
    let again = desk.succeeds(&desk.tiny(""));
    assert!(!again.contains("unfinished"), "{again}");
    assert_eq!(names(&desk.path("runs")).len(), 2);
    // Resuming a finished run changes nothing.
    let run = desk.path("runs").join(&names(&desk.path("runs"))[0]);
    let before = checkpoint(&run, 4);
    let resumed = desk.succeeds(&format!("resume run={}", run.display()));
    assert!(resumed.contains("resuming after update 4"), "{resumed}");
    desk.refuses("resume train.updates=8");
    desk.refuses("evaluate rollouts checkpoint=3");
    assert!(checkpoint(&run, 4) == before);
    assert_eq!(curves(&run).len(), 1);
}

/// A run that was evaluated before its end is evaluated again after it.
#[test]
fn scores_of_weights_of_before_are_not_taken_for_a_runs_own() {
    let desk = Desk::new();
    let words = "train env=hopper model.n_layers=1 model.d_model=16 train.batch_size=2 \
                 train.updates=2 train.checkpoint_every=1 evaluation.episodes=1 \
                 evaluation.target=1800";
    desk.succeeds(words);
    let run = desk.only_run("runs");
    let path = run.join("evaluation.json");
    let whole = fs::read_to_string(&path).unwrap();
    assert!(desk.succeeds("resume").contains("is finished and evaluated"));
    // Earlier weights have their own report.
    desk.succeeds("evaluate rollouts checkpoint=1 episodes=1 target=1800");
    assert!(run.join("evaluation-1.json").is_file());
    assert_eq!(fs::read_to_string(&path).unwrap(), whole);
    fs::write(&path, whole.replace("\"step\": 2", "\"step\": 1")).unwrap();
    desk.succeeds("resume");
    let again: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(again["checkpoint"]["step"], 2);
}

/// A run, the path of its configuration, and its text.
fn tiny_run(desk: &Desk) -> (PathBuf, PathBuf, String) {
    desk.succeeds(&desk.tiny(""));
    let run = desk.only_run("runs");
    let config = run.join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    (run, config, text)
}

/// A run resumes with the settings of its file, and reports if they have changed.
#[test]
fn a_changed_configuration_is_reported() {
    let desk = Desk::new();
    let (run, config, text) = tiny_run(&desk);
    let edited = text.replace("learning_rate = 0.0006", "learning_rate = 0.0007");
    assert_ne!(edited, text);
    for (written, is_reported) in [(&text, false), (&edited, true), (&edited, false), (&text, true)]
    {
        fs::write(&config, written).unwrap();
        fs::remove_file(run.join("finished")).unwrap();
        let output = desk.succeeds("resume");
        assert_eq!(
            output.contains("config.toml has changed since the last process"),
            is_reported,
            "{output}"
        );
    }
}
