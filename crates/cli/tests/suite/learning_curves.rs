//! Evaluations during training: curves of returns, and unchanged training.

use std::fs;

use serde_json::Value;

use crate::{
    desk::{Desk, same_run, steps},
    evaluating::report,
    runs::events,
};

/// A minimal model and run.
const TINY: &str = "train env=hopper model.n_layers=1 model.d_model=16 model.context_length=5 \
                    train.batch_size=3 train.updates=6 train.checkpoint_every=1 \
                    evaluation.target=3600 runs=";

#[test]
fn every_second_checkpoint_is_played_and_training_is_the_same() {
    let desk = Desk::new();
    desk.succeeds(&format!("{TINY}plain evaluation.episodes=0"));
    let words = "evaluation.episodes=0 evaluation.every=2 evaluation.every_episodes=3";
    let stdout = desk.succeeds(&format!("{TINY}played {words}"));
    let (plain, played) = (desk.only_run("plain"), desk.only_run("played"));
    same_run(&plain, &played, 6);
    assert!(!plain.join("checkpoints.csv").exists());
    let curve_lines: Vec<&str> =
        stdout.lines().filter(|line| line.contains("in 3 episodes; training waited")).collect();
    assert_eq!(curve_lines.len(), 3, "{stdout}");
    assert!(curve_lines[0].starts_with("update 2: mean return "), "{}", curve_lines[0]);
    let curves = events(&played);
    for tag in ["eval/return", "eval/normalized_return"] {
        let steps: Vec<u64> = curves[tag].iter().map(|(step, _)| *step).collect();
        assert_eq!(steps, [2, 4, 6], "{tag}");
    }
    let raw = &curves["eval/return"];
    let normalized = &curves["eval/normalized_return"];
    for ((_, raw), (_, normalized)) in raw.iter().zip(normalized) {
        let expected = (raw + 20.272305) / (3234.3 + 20.272305) * 100.0;
        assert!((normalized - expected).abs() < 1e-4, "{raw} is not {normalized}");
    }
    let rows = fs::read_to_string(played.join("checkpoints.csv")).unwrap();
    assert_eq!(rows.lines().next(), Some("step,seconds,figure,value"));
    assert_eq!(rows.lines().count(), 1 + 3 * 2, "{rows}");
    // The evaluation after training is not another point of the curve.
    let words = "evaluation.episodes=2 evaluation.every=3 evaluation.every_episodes=3";
    desk.succeeds(&format!("{TINY}both {words}"));
    let both = desk.only_run("both");
    same_run(&plain, &both, 6);
    let rows = fs::read_to_string(both.join("checkpoints.csv")).unwrap();
    assert!(rows.lines().skip(1).all(|row| row.starts_with("3,")), "{rows}");
    let steps: Vec<u64> = events(&both)["eval/return"].iter().map(|(step, _)| *step).collect();
    assert_eq!(steps, [3, 6]);
}

/// Also if the last update is not a multiple, without an evaluation after training.
#[test]
fn the_last_checkpoint_ends_the_curve() {
    let desk = Desk::new();
    let words = "evaluation.episodes=0 evaluation.every=4 evaluation.every_episodes=1";
    desk.succeeds(&format!("{TINY}runs {words}"));
    let rows = fs::read_to_string(desk.only_run("runs").join("checkpoints.csv")).unwrap();
    let steps: Vec<&str> = rows.lines().skip(1).map(|row| row.split(',').next().unwrap()).collect();
    assert_eq!(steps, ["4", "4", "6", "6"], "{rows}");
}

/// The acting mode is chosen after training. The curve has one mode to its end; the scores of another
/// chosen mode have names of their own.
#[test]
fn a_choice_after_training_ends_the_curve() {
    let desk = Desk::new();
    let words = "evaluation.episodes=1 evaluation.every=3 evaluation.every_episodes=1 \
                 evaluation.target= model.top_percents=50";
    let stdout = desk.succeeds(&format!("{TINY}runs {words}"));
    assert_eq!(stdout.matches("Mode: ").count(), 1, "{stdout}");
    let run = desk.only_run("runs");
    let rows = fs::read_to_string(run.join("checkpoints.csv")).unwrap();
    let steps: Vec<&str> = rows.lines().skip(1).map(|row| row.split(',').next().unwrap()).collect();
    assert_eq!(steps, ["3", "3"], "{rows}");
    let curves = events(&run);
    let steps: Vec<u64> = curves["eval/return"].iter().map(|(step, _)| *step).collect();
    assert_eq!(steps, [3, 6]);
    let read = |file: &str| report(&run.join(file));
    let choice = read("checkpoints/step-00000006/acting.json");
    // During training, the agent is conditioned on a target, with the default limit.
    let is_of_curve = |mode: &Value| mode["top_percent"] == 0.0 && mode["return_quantile"] != 1.0;
    let points: Vec<&Value> = choice["curve"].as_array().unwrap().iter().collect();
    let mut points = points.into_iter().filter(|point| is_of_curve(&point["mode"]));
    let point = points.next().unwrap();
    let played = read("evaluation.json")["targets"][0]["raw_return"]["mean"].as_f64().unwrap();
    let is_same = choice["chosen"] == point["mode"];
    let expected = if is_same { played } else { point["raw_return"]["mean"].as_f64().unwrap() };
    assert!((curves["eval/return"][1].1 - expected).abs() < 1e-3 * expected.abs().max(1.0));
    let chosen = curves.get("eval/return/chosen_mode");
    assert_eq!(chosen.is_none(), is_same);
    for (step, mean) in chosen.into_iter().flatten() {
        assert!(*step == 6 && (mean - played).abs() < 1e-3 * played.abs().max(1.0));
    }
}

/// A long enough run is evaluated during training, for at most a tenth of its time, and its weights
/// equal the weights of a run without evaluations.
#[test]
fn a_long_run_is_played_by_itself() {
    let desk = Desk::new();
    let words = "train env=hopper algorithm=td3_bc td3_bc.hidden=64 train.batch_size=64 \
                 train.updates=4000 train.checkpoint_every=4000 evaluation.every_episodes=1 runs=";
    let stdout = desk.succeeds(&format!("{words}curve evaluation.episodes=1"));
    desk.succeeds(&format!("{words}plain evaluation.episodes=0"));
    let [curve, plain] = ["curve", "plain"].map(|runs| desk.only_run(runs));
    same_run(&plain, &curve, 4000);
    assert_eq!(steps(&curve), [4000], "no checkpoint is left of an evaluation");
    let points: Vec<u64> = events(&curve)["eval/return"].iter().map(|(step, _)| *step).collect();
    assert!(points.iter().all(|step| step % 500 == 0), "{points:?}");
    assert_eq!(points.last(), Some(&4000), "{points:?}");
    let n_played = points.len() - 1;
    let cost = stdout.lines().find(|line| line.contains(" during training took "));
    match cost {
        Some(cost) => assert!(cost.starts_with(&format!("{n_played} evaluation")), "{cost}"),
        // The machine did the run in less than 5 s.
        None => assert_eq!(n_played, 0, "{stdout}"),
    }
}

/// TensorBoard's own reader finds settings and scores.
#[test]
fn settings_are_hyperparameters() {
    let desk = Desk::new();
    desk.succeeds(&format!("{TINY}runs evaluation.episodes=1 evaluation.return_quantile=0.9"));
    const READ: &str = "
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2
events = EventAccumulator(sys.argv[1])
events.Reload()
found = events.summary_metadata
start, end = plugin_data_pb2.HParamsPluginData(), plugin_data_pb2.HParamsPluginData()
start.ParseFromString(found['_hparams_/session_start_info'].plugin_data.content)
end.ParseFromString(found['_hparams_/session_end_info'].plugin_data.content)
hparams = start.session_start_info.hparams
print(json.dumps([
    hparams['algorithm'].string_value, hparams['train.updates'].number_value,
    hparams['train.average_weights'].bool_value, 'runs' in hparams,
    end.session_end_info.status, found['eval/return'].summary_description,
]))
";
    let python = crate::desk::project().join(".venv/bin/python");
    let run = desk.only_run("runs");
    let output = std::process::Command::new(python).args(["-c", READ]).arg(&run).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let expected = "[\"decision_transformer\", 6.0, true, false, 1, \"matched protocol, target \
                    3600\"]";
    assert_eq!(stdout.trim(), expected, "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_resumed_run_has_the_remaining_evaluations() {
    let desk = Desk::new();
    let words = "evaluation.episodes=0 evaluation.every=2 evaluation.every_episodes=1";
    desk.succeeds(&format!("{TINY}whole {words}"));
    let whole = desk.only_run("whole");
    // As if it had been killed after its fifth update, without the last one.
    let killed = desk.path("runs/killed");
    crate::desk::copy(&whole, &killed);
    fs::remove_file(killed.join("finished")).unwrap();
    fs::remove_dir_all(killed.join("checkpoints/step-00000006")).unwrap();
    assert!(steps(&killed).contains(&5), "{:?}", steps(&killed));
    desk.succeeds("resume run=killed");
    same_run(&whole, &killed, 6);
    let values = |run: &std::path::Path| -> Vec<String> {
        let rows = fs::read_to_string(run.join("checkpoints.csv")).unwrap();
        let without_seconds = |row: &str| {
            let cells: Vec<&str> = row.split(',').collect();
            format!("{},{},{}", cells[0], cells[2], cells[3])
        };
        rows.lines().map(without_seconds).collect()
    };
    assert_eq!(values(&killed), values(&whole));
    assert_eq!(values(&whole).len(), 1 + 3 * 2);
}

#[test]
fn a_curve_needs_episodes() {
    let desk = Desk::new();
    desk.refuses(&format!("{TINY}no evaluation.every=1 evaluation.every_episodes=0"));
}
