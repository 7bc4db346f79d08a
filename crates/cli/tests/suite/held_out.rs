//! Episodes kept out of training, and the checkpoint they select.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{
    desk::{Desk, Running, checkpoint, said, same_run, steps, wait_until},
    runs::events,
};

const HOLDING: &str = "train.held_out=0.5 train.log_every=1";

/// The rows of a run's `held_out.csv`.
fn losses(run: &Path) -> Vec<(u64, f64)> {
    let text = fs::read_to_string(run.join("held_out.csv")).unwrap();
    let row = |line: &str| {
        let (step, loss) = line.split_once(',').unwrap();
        (step.parse().unwrap(), loss.parse().unwrap())
    };
    text.lines().skip(1).map(row).collect()
}

fn lowest(losses: &[(u64, f64)]) -> u64 {
    losses.iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0
}

#[test]
fn a_killed_run_comes_to_the_same_losses_and_the_same_best() {
    let desk = Desk::new();
    let words = format!("{HOLDING} train.updates=60 train.checkpoint_every=4");
    let stdout = desk.succeeds(&desk.tiny(&format!("{words} runs=whole")));
    assert!(stdout.contains("held out: 1 of the episodes"), "{stdout}");
    let whole = desk.only_run("whole");
    let line = format!("after update {} (to evaluate it, use evaluate", lowest(&losses(&whole)));
    assert!(stdout.contains("lowest held-out loss ") && stdout.contains(&line), "{stdout}");

    let child = Running::start(desk.command(&desk.tiny(&words)));
    wait_until("checkpoints", || {
        let runs = crate::desk::names(&desk.path("runs"));
        runs.first().is_some_and(|run| steps(&desk.path("runs").join(run)).last() >= Some(&12))
    });
    child.kill();
    desk.succeeds("resume");
    let run = desk.only_run("runs");
    same_run(&run, &whole, 60);
    assert_eq!(losses(&run), losses(&whole));
    let measured: Vec<u64> = losses(&run).iter().map(|(step, _)| *step).collect();
    assert!(measured.into_iter().eq((4..=60).step_by(4)), "a gap, or a step twice");
    // TensorBoard has the same.
    let points = &events(&run)["held_out/loss"];
    assert_eq!(points.len(), 15);
    for (point, row) in points.iter().zip(losses(&run)) {
        assert_eq!((point.0, point.1 as f32), (row.0, row.1 as f32));
    }
    // The newest three, and the best.
    let mut kept = vec![lowest(&losses(&run)), 52, 56, 60];
    kept.dedup();
    kept.sort_unstable();
    kept.dedup();
    assert_eq!(steps(&run), kept);
}

#[test]
fn the_best_checkpoint_is_played() {
    let desk = Desk::new();
    let words = "train env=hopper evaluation.episodes=0 model.n_layers=1 model.d_model=16 \
                 model.context_length=5 train.batch_size=3 train.keep_checkpoints=1 \
                 train.checkpoint_every=2 train.held_out=0.1";
    // A high rate, so that the last loss is not the lowest.
    let line = format!("{words} train.updates=8 train.warmup_tokens=0 train.learning_rate=1");
    let stdout = desk.succeeds(&line);
    assert!(stdout.contains("held out: 13 of the episodes"), "of 128: {stdout}");
    let run = desk.only_run("runs");
    let best = lowest(&losses(&run));
    assert!(best < 8, "{:?}", losses(&run));
    assert_eq!(steps(&run), [best, 8]);
    let state: Value = serde_json::from_slice(&checkpoint(&run, 8)["state.json"]).unwrap();
    assert_eq!(state["best"]["step"], best);
    desk.succeeds("evaluate rollouts checkpoint=best episodes=1 target=100 out=best.json");
    let report: Value = serde_json::from_slice(&fs::read(desk.path("best.json")).unwrap()).unwrap();
    assert_eq!(report["checkpoint"]["step"], best, "{report}");
    // Both together; if they are the same checkpoint, it is evaluated once.
    let mut both = desk.command("evaluate rollouts episodes=1 target=100");
    assert_eq!(said(both.arg("checkpoint=last, best").output().unwrap()).code, Some(0));
    assert!(run.join(format!("evaluation-{best}.json")).is_file());
    assert!(run.join("evaluation-8.json").is_file());
    let twice = format!("evaluate rollouts checkpoint={best},best episodes=1 target=100");
    let stdout = desk.succeeds(&twice);
    assert!(stdout.contains(&format!("the best checkpoint is update {best}")), "{stdout}");

    // Statistics of observations use only training episodes.
    desk.succeeds(&format!("{words} train.updates=2 runs=all train.held_out=0"));
    let all: Value =
        serde_json::from_slice(&checkpoint(&desk.only_run("all"), 2)["state.json"]).unwrap();
    assert_ne!(all["agent"]["normalization"], state["agent"]["normalization"]);
    assert_eq!(all["dataset_hash"], state["dataset_hash"]);
}

#[test]
fn invalid_fractions_and_selections_are_refused() {
    let desk = Desk::new();
    let refuses = |words: &str| desk.refuses(&desk.tiny(words));
    refuses("train.held_out=1");
    refuses("train.held_out=-0.1");
    refuses("train.held_out=0.01");
    refuses("train.held_out=0.99");
    assert_eq!(crate::desk::names(&desk.path("runs")), [""; 0]);
    desk.succeeds(&desk.tiny(""));
    desk.refuses("evaluate rollouts checkpoint=best episodes=1");
}
