//! Evaluations that several processes share, part by part.

use std::{fs, path::Path};

use serde_json::Value;

use crate::desk::{Desk, Running, names};

/// A robot's agent as small as it can be, which draws its actions.
const ROBOT: &str = "env=hopper head=gaussian model.n_layers=1 model.d_model=16 \
                     model.context_length=5 train.batch_size=3 train.updates=4";

/// Between batches of different sizes; 3e-10 was seen.
#[cfg(feature = "python")]
const ROUNDING: f64 = 1e-6;

fn report(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// An evaluation's bytes, but for those that say how long it took.
fn bytes(path: &Path) -> String {
    let mut report = report(path);
    let object = report.as_object_mut().unwrap();
    for key in ["wall_seconds", "steps_per_second", "pace"] {
        assert!(object.remove(key).is_some(), "{key}");
    }
    serde_json::to_string(&report).unwrap()
}

#[test]
fn parts_of_a_robots_evaluation_are_one() {
    let desk = Desk::new();
    desk.succeeds(&format!("train {ROBOT} evaluation.episodes=0"));
    let run = desk.only_run("runs");
    let words = "evaluate rollouts episodes=10 target=1000,3000 actions=sample";
    desk.succeeds(&format!("{words} out=whole.json"));
    let out = run.join("evaluation-sample.json");
    let folder = run.join("evaluation-sample.parts");

    let said = desk.succeeds(&format!("{words} part=2/3"));
    assert!(said.contains("part 2/3: 6 episodes, ") && said.contains("1 of 3 parts"), "{said}");
    let part = folder.join("2-of-3.json");
    let first = fs::read(&part).unwrap();
    // Played already.
    let said = desk.succeeds(&format!("{words} part=2/3"));
    assert!(!said.contains("part 2/3: "), "{said}");
    assert!(fs::read(&part).unwrap() == first && !out.exists());
    // Another evaluation's part gives way, and is none of this one.
    assert_eq!(desk.run(&format!("{words} part=1/3 seed=2")).code, Some(0));
    let said = desk.run(&format!("{words} part=3/3"));
    assert!(said.code == Some(0) && said.stdout.contains("2 of 3 parts"), "{said:?}");
    assert!(said.stderr.contains("1-of-3.json is a part of another evaluation"), "{said:?}");
    let said = desk.succeeds(&format!("{words} part=1/3"));
    assert!(said.contains("evaluation: ") && !folder.exists(), "{said}");
    let whole = report(&desk.path("whole.json"));
    assert_eq!(report(&out)["episodes"], whole["episodes"], "the parts are not the whole");
    let first = bytes(&out);
    // By others, in another order.
    (1..=3).for_each(|part| drop(desk.succeeds(&format!("{words} part={part}/3"))));
    assert!(bytes(&out) == first, "parts depend on who plays them");

    for (word, parts) in [
        ("part=4/3", vec!["part=4/3: expected a number and how many there are"]),
        ("part=half", vec!["part=half: "]),
        ("part=1/11", vec!["part=1/11: there are fewer episodes than parts", "episodes=11"]),
    ] {
        desk.refuses(&format!("{words} {word}"), &parts);
    }
    fs::create_dir(&folder).unwrap();
    fs::write(&part, "{").unwrap();
    desk.refuses(&format!("{words} part=2/3"), &["2-of-3.json", "remove it and play it again"]);
}

#[test]
#[cfg(feature = "python")]
fn parts_that_play_at_once_are_one() {
    let desk = Desk::new();
    desk.succeeds(&desk.tiny("head=fourier head.frequencies=3"));
    let run = desk.only_run("runs");
    let words = "evaluate rollouts episodes=4 target=5,10 temperature=0.7";
    desk.succeeds(&format!("{words} out=whole.json"));
    let out = run.join("evaluation-t0.7.json");
    (1..=4).for_each(|part| drop(desk.succeeds(&format!("{words} part={part}/4"))));
    let first = bytes(&out);
    fs::remove_file(&out).unwrap();
    let children: Vec<Running> = (1..=4)
        .map(|part| Running::start(desk.command(&format!("{words} part={part}/4"))))
        .collect();
    children.into_iter().for_each(Running::finish);
    assert!(bytes(&out) == first, "parts depend on who plays them");
    let (parts, whole) = (report(&out), report(&desk.path("whole.json")));
    assert_eq!(parts["episodes"], whole["episodes"], "the parts are not the whole");
    let smoothness = |report: &Value| report["targets"][1]["smoothness"]["mean"].as_f64().unwrap();
    assert!((smoothness(&parts) - smoothness(&whole)).abs() < ROUNDING);
    let left: Vec<String> = names(&run).into_iter().filter(|name| name.contains("parts")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_study_whose_runs_are_played_in_parts_has_the_same_page() {
    let study = |desk: &Desk, words: &str| {
        let line = format!(
            "study run {ROBOT} evaluation.episodes=4 evaluation.target=1000 \
             head=tanh,gaussian seed=1..2 name=s jobs=2 {words}"
        );
        desk.succeeds(&line)
    };
    let (whole, parts) = (Desk::new(), Desk::new());
    study(&whole, "");
    let said = study(&parts, "parts=2");
    assert!(said.contains("4 cells to train, 2 at once"), "{said}");
    assert!(said.contains("8 parts to play, 2 at once"), "{said}");
    assert!(said.contains("4 cells: 4 played"), "{said}");
    for file in ["report.html", "report.md", "report-cells.csv"] {
        let of = |desk: &Desk| fs::read(desk.path("runs/studies/s").join(file)).unwrap();
        assert!(of(&whole) == of(&parts), "{file} differs");
    }
    // One part is gone, the run is trained.
    let cells = parts.path("runs/studies/s/cells");
    assert!(cells.join("head=tanh_s1.2-of-2.log").is_file(), "{cells:?}");
    let again = study(&parts, "parts=2");
    assert!(again.contains("nothing is left to do"), "{again}");
}

#[test]
fn a_cell_that_is_not_trained_is_not_played_in_parts() {
    let desk = Desk::new();
    let line = format!("study run {ROBOT} evaluation.episodes=2 parts=2 name=s jobs=1");
    let said = desk.run(&format!("{line} evaluation.target=p900"));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("failed: all training: "), "{said:?}");
    assert!(said.stderr.contains("1 of 1 processes failed"), "{said:?}");
    assert!(!said.stdout.contains("to play"), "{said:?}");
    let told: Value = serde_json::from_str(&desk.succeeds("study status --json s")).unwrap();
    assert!(told["cells"][0]["error"].as_str().unwrap().contains("p900"), "{told}");
}
