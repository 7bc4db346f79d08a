//! Runs between their last update and their first report.

use std::{fs, path::Path};

use serde_json::Value;

use crate::desk::{Desk, Running, names, wait_until};

const ROBOT: &str = "train env=hopper model.n_layers=1 model.d_model=16 model.context_length=5 \
                     train.batch_size=3 train.updates=4 evaluation.target=50";

fn played(run: &Path) -> usize {
    let report = fs::read(run.join("evaluation.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    report["episodes"].as_array().unwrap().len()
}

#[test]
fn a_played_run_is_not_played_again_by_resume() {
    let desk = Desk::new();
    desk.succeeds(&format!("{ROBOT} evaluation.episodes=1"));
    desk.succeeds("evaluate rollouts episodes=5 target=50");
    let run = desk.only_run("runs");
    assert_eq!(played(&run), 1);
    let large = fs::read(run.join("evaluation-n5.json")).unwrap();
    let said = desk.succeeds("resume");
    let name = run.file_name().unwrap().to_string_lossy();
    let expected = format!(
        "runs/{name} is finished and evaluated. To evaluate it again: `overtone evaluate rollouts \
         run=runs/{name}`\n"
    );
    assert_eq!(said, expected);
    let same = fs::read(run.join("evaluation-n5.json")).unwrap() == large;
    assert!(same, "the large evaluation was replaced");
    // The same command is another run, as before.
    desk.succeeds(&format!("{ROBOT} evaluation.episodes=1"));
    assert_eq!(names(&desk.path("runs")).len(), 2);
}

#[test]
fn a_run_killed_while_it_played_is_played() {
    let desk = Desk::new();
    let line = format!("{ROBOT} evaluation.episodes=1");
    desk.succeeds(&line);
    let run = desk.only_run("runs");
    for again in [line.as_str(), "resume"] {
        // As between the last update and the end of the evaluation.
        fs::remove_file(run.join("evaluation.json")).unwrap();
        let said = desk.succeeds(again);
        assert!(said.contains("resuming after update 4"), "{said}");
        assert_eq!(
            said.contains("without its evaluation; resuming it"),
            again != "resume",
            "{said}"
        );
        assert_eq!(played(&run), 1);
        assert_eq!(names(&desk.path("runs")).len(), 1, "a second run was trained");
    }
}

/// The same with a killed process.
#[test]
fn a_process_killed_while_it_plays_is_gone_on_with() {
    let desk = Desk::new();
    let line = format!("{ROBOT} evaluation.episodes=2000 evaluation.parallel=1");
    let child = Running::start(desk.command(&line));
    let finished = || {
        let runs = desk.path("runs");
        names(&runs).iter().any(|run| runs.join(run).join("finished").is_file())
    };
    wait_until("the last update", finished);
    child.kill();
    let run = desk.only_run("runs");
    assert!(!run.join("evaluation.json").exists(), "it ended before it was killed");
    // As few episodes as the others, because only the evaluation itself is tested.
    let config = fs::read_to_string(run.join("config.toml")).unwrap();
    fs::write(run.join("config.toml"), config.replace("episodes = 2000", "episodes = 1")).unwrap();
    desk.succeeds(&line.replace("=2000", "=1"));
    assert_eq!((names(&desk.path("runs")).len(), played(&run)), (1, 1));
}
