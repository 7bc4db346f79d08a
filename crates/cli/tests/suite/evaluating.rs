//! Evaluations of other weights or protocols than a run's own: their reports and output.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{desk::Desk, pairs::File, runs::events};

/// A minimal model and run of a robot.
pub fn tiny(words: &str) -> String {
    format!(
        "train env=hopper evaluation.episodes=0 model.n_layers=1 model.d_model=16 \
         model.context_length=5 train.batch_size=3 train.updates=4 {words}"
    )
}

pub fn report(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The points of the curve of returns.
fn points(run: &Path) -> usize {
    events(run).get("eval/return").map_or(0, Vec::len)
}

/// Relative to the desk, as a user would write it.
fn relative(desk: &Desk, path: &Path) -> PathBuf {
    path.strip_prefix(desk.path("")).unwrap().to_owned()
}

#[test]
fn another_runs_checkpoint_is_never_reported_as_this_runs() {
    let desk = Desk::new();
    desk.succeeds(&tiny("runs=first"));
    desk.succeeds(&tiny("runs=second seed=7"));
    let [run, other] = ["first", "second"].map(|root| desk.only_run(root));
    let (name, foreign) = (relative(&desk, &run), other.join("checkpoints/step-00000004"));
    let words = format!("evaluate rollouts run={} episodes=1 target=100", name.display());
    desk.succeeds(&words);
    let own = report(&run.join("evaluation.json"));
    assert_eq!(points(&run), 1);

    for path in [relative(&desk, &foreign), foreign.clone()] {
        let checkpoint = format!("checkpoint={}", path.display());
        desk.refuses(&format!("{words} {checkpoint}"));
    }
    assert_eq!(report(&run.join("evaluation.json")), own, "nothing was written");

    let out = run.join("evaluation-other.json");
    let path = relative(&desk, &foreign);
    desk.succeeds(&format!("{words} checkpoint={} out={}", path.display(), out.display()));
    let written = report(&out);
    let absolute = foreign.canonicalize().unwrap().display().to_string();
    assert_eq!(written["checkpoint"]["path"], absolute);
    assert_ne!(written["episodes"], own["episodes"], "another agent");
    assert_eq!(points(&run), 1, "no point of another run's weights");
    // Its command evaluates these weights again.
    let command =
        written["command"].as_str().unwrap().strip_prefix("overtone ").unwrap().to_owned();
    assert!(command.contains(&format!(" checkpoint={absolute} ")), "{command}");
    desk.succeeds(&format!("{command} out=again.json"));
    assert_eq!(report(&desk.path("again.json"))["episodes"], written["episodes"]);
    // The page lists it as chosen, and it can be filmed.
    desk.succeeds(&format!("report {} video=false replications=100", name.display()));
    let scores = fs::read_to_string(run.join("report-scores.csv")).unwrap();
    let row = |file: &str| scores.lines().find(|row| row.contains(file)).unwrap().to_owned();
    assert!(row("evaluation.json").contains(",last,4,"), "{scores}");
    assert!(row("evaluation-other.json").contains(",chosen,4,"), "{scores}");
    let film = "evaluation=evaluation-other.json steps=4 out=other.gif";
    desk.succeeds(&format!("video run={} {film}", name.display()));
}

#[test]
fn a_runs_own_checkpoint_may_be_named_by_its_folder() {
    let desk = Desk::new();
    desk.succeeds(&tiny(""));
    let run = desk.only_run("runs");
    let folder = run.join("checkpoints/step-00000004");
    for path in [relative(&desk, &folder), folder] {
        desk.succeeds(&format!(
            "evaluate rollouts episodes=1 target=100 checkpoint={}",
            path.display()
        ));
        let written = report(&run.join("evaluation.json"));
        assert_eq!(written["checkpoint"]["path"], "checkpoints/step-00000004");
        assert!(written["command"].as_str().unwrap().contains(" checkpoint=4 "), "{written}");
        fs::remove_file(run.join("evaluation.json")).unwrap();
    }
    assert_eq!(points(&run), 2);
}

#[test]
fn a_protocol_other_than_training_has_its_own_report() {
    let desk = Desk::new();
    // The same in training.
    desk.succeeds(&tiny(
        "head=gaussian evaluation.episodes=1 evaluation.target=100 evaluation.actions=sample",
    ));
    let run = desk.only_run("runs");
    let sampled = report(&run.join("evaluation-sample.json"));
    assert_eq!(sampled["protocol"]["action_choice"], "sample");
    assert!(!run.join("evaluation.json").exists());
    assert_eq!(points(&run), 0);

    let words = "evaluate rollouts episodes=1 target=100,100.0";
    desk.succeeds(words);
    let own = report(&run.join("evaluation.json"));
    assert_eq!((points(&run), own["targets"].as_array().unwrap().len()), (1, 1));
    for (options, name) in [
        ("protocol=v5", "evaluation-v5.json"),
        ("actions=sample", "evaluation-sample.json"),
        ("protocol=v5 actions=sample", "evaluation-v5-sample.json"),
        ("protocol=v5 checkpoint=4,last", ""),
    ] {
        if name.is_empty() {
            desk.refuses(&format!("{words} {options}"));
            continue;
        }
        desk.succeeds(&format!("{words} {options}"));
        assert!(run.join(name).is_file(), "{options}");
    }
    // The data is of v4, so naming it changes nothing.
    desk.succeeds(&format!("{words} protocol=v4 actions=mode"));
    assert_eq!(points(&run), 2);
    assert_eq!(report(&run.join("evaluation.json"))["episodes"], own["episodes"]);
    // Other episodes have another file, and are not on the curve.
    for (options, name) in [
        ("episodes=1 target=100 seed=2", "evaluation-seed2.json"),
        ("episodes=2 target=100", "evaluation-n2.json"),
        ("episodes=2 target=50 seed=3", "evaluation-n2-seed3-target50.json"),
    ] {
        let said = desk.succeeds(&format!("evaluate rollouts {options}"));
        assert!(said.contains("is about other episodes and is kept"), "{said}");
        assert!(run.join(name).is_file(), "{options}");
    }
    assert_eq!(report(&run.join("evaluation.json"))["episodes"], own["episodes"]);
    assert_eq!(points(&run), 2);
    desk.succeeds("report video=false replications=100");
    let scores = fs::read_to_string(run.join("report-scores.csv")).unwrap();
    assert_eq!(scores.lines().count(), 8, "every one of them is on the page: {scores}");
    let page = fs::read_to_string(run.join("report.md")).unwrap();
    let largest = "This is the largest evaluation, evaluation-n2.json. Others: evaluation.json \
                   (1 episode), evaluation-seed2.json (1 episode).";
    assert!(page.contains(largest), "{page}");
}

#[test]
fn a_video_of_an_evaluation_that_is_no_more_is_filmed_again() {
    let desk = Desk::new();
    desk.succeeds(&tiny("evaluation.episodes=3 evaluation.target=100"));
    let run = desk.only_run("runs");
    let films = |words: &str| {
        let stdout = desk.succeeds(&format!("report replications=100 {words}"));
        stdout.contains("filming episode")
    };
    let shown = || report(&run.join("video.gif.json"))["episode"]["seed"].as_u64().unwrap();
    let page = || fs::read_to_string(run.join("report.md")).unwrap();
    assert!(films(""));
    let first = shown();
    assert!(page().contains("update 4, matched protocol, target 100, episode "), "{}", page());
    assert!(!films(""), "it is the same");
    // Other episodes; and a video that the user chose is kept.
    fs::remove_file(run.join("evaluation.json")).unwrap();
    desk.succeeds("evaluate rollouts episodes=3 target=100 seed=2");
    assert!(films(""));
    assert_ne!(shown(), first);
    desk.succeeds("video episode=worst steps=4");
    assert!(!films(""));
    assert!(page().contains(" (worst), "), "{}", page());
    // Without its description, the content of the video is unknown.
    fs::remove_file(run.join("video.gif.json")).unwrap();
    assert!(!films("video=false") && !page().contains(" protocol, target 100, episode "));
    assert!(films(""));
    assert!(page().contains(" (median), "), "{}", page());
}

#[test]
fn a_runs_folder_may_have_a_comma_in_its_name() {
    let desk = Desk::new();
    desk.succeeds(&tiny(""));
    let run = desk.only_run("runs").with_file_name("a,b");
    fs::rename(desk.only_run("runs"), &run).unwrap();
    desk.succeeds("evaluate rollouts run=a,b episodes=1 target=100");
    assert!(run.join("evaluation.json").is_file());
    desk.refuses("evaluate rollouts run=a,b, episodes=1");
}

/// Observations in other units than the task's are reported. A recording of the task is not.
#[test]
fn recorded_episodes_that_begin_elsewhere_are_reported() {
    let desk = Desk::new();
    File { reward: 1.0, is_ogbench: false, is_discrete: false }.write(&desk.path("waves.npz"));
    for (dataset, is_other) in [("./waves.npz", true), ("medium", false)] {
        let runs = if is_other { "other" } else { "own" };
        desk.succeeds(&tiny(&format!("dataset={dataset} runs={runs}")));
        let run = desk.only_run(runs);
        let line = format!(
            "evaluate rollouts run={} episodes=1 target=20",
            relative(&desk, &run).display()
        );
        let said = desk.run(&line);
        let settings = report(&run.join("evaluation.json"))["differences"].to_string();
        for text in [&said.stdout, &said.stderr, &settings] {
            let is_named = text.contains("first_observations[0]");
            assert_eq!(is_named, is_other, "{text}");
        }
    }
}
