//! Robots: training on the starter sets, then evaluation in MuJoCo.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{
    desk::{Desk, checkpoint, names, project, same_run},
    runs::events,
};

/// A minimal model and run.
const TINY: &str = "env=hopper evaluation.episodes=0 model.n_layers=1 model.d_model=16 \
                    model.context_length=5 train.batch_size=3 train.updates=4";

fn tiny(words: &str) -> String {
    format!("train {TINY} {words}")
}

fn report(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// The identity of an episode: target, number, seed, length, return.
fn episodes(report: &Value) -> Vec<Value> {
    let fields = ["target_return", "episode", "seed", "length", "raw_return", "outcome"];
    let episodes = report["episodes"].as_array().unwrap().iter();
    let picked = |episode: &Value| fields.map(|field| episode[field].clone());
    episodes.map(|episode| Value::from(picked(episode).to_vec())).collect()
}

#[test]
fn a_trained_robot_plays_and_is_scored() {
    let desk = Desk::new();
    let stdout = desk.succeeds(&tiny("evaluation.episodes=3 evaluation.target=reference"));
    let run = desk.only_run("runs");
    let name = run.file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(name, "tanh-s123-hopper-switching");
    assert!(stdout.contains("comes with the project, not D4RL"), "{stdout}");
    let first = report(&run.join("evaluation.json"));
    assert_eq!(first["task"]["title"], "Hopper");
    assert_eq!(first["simulator"], "MuJoCo 3.17.0, Hopper-v4");
    assert_eq!(first["protocol"]["name"], "matched");
    assert_eq!(first["protocol"]["simulation"]["max_steps"], 1000);
    let state: Value = serde_json::from_slice(&checkpoint(&run, 4)["state.json"]).unwrap();
    assert_eq!(first["dataset_hash"], state["dataset_hash"]);
    assert_eq!(state["agent"]["normalization"]["mean"].as_array().unwrap().len(), 11);

    // The reference's targets, three episodes each, both in the same episodes.
    let played = first["episodes"].as_array().unwrap();
    let targets: Vec<&Value> = played.iter().map(|episode| &episode["target_return"]).collect();
    assert_eq!(targets, [3600.0, 3600.0, 3600.0, 1800.0, 1800.0, 1800.0]);
    assert_eq!(played[1]["seed"], played[4]["seed"]);
    assert_ne!(played[0]["seed"], played[1]["seed"]);
    for target in first["targets"].as_array().unwrap() {
        let (raw, normalized) = (&target["raw_return"]["mean"], &target["normalized"]["mean"]);
        let expected = (raw.as_f64().unwrap() + 20.272305) / (3234.3 + 20.272305) * 100.0;
        assert!((normalized.as_f64().unwrap() - expected).abs() < 1e-9, "{target}");
    }
    assert!(!stdout.contains("clipped"), "{stdout}");
    let curves = events(&run);
    for tag in ["train/action_loss", "eval/return"] {
        assert_eq!(curves[tag].last().unwrap().0, 4, "{tag}");
    }

    // Repeated without parallel episodes and by the report's own command: the same episodes.
    desk.succeeds("evaluate rollouts episodes=3 target=reference parallel=1 out=again.json");
    assert_eq!(episodes(&report(&desk.path("again.json"))), episodes(&first));
    let command = first["command"].as_str().unwrap().strip_prefix("overtone ").unwrap();
    desk.succeeds(&format!("{command} out=written.json"));
    assert_eq!(episodes(&report(&desk.path("written.json"))), episodes(&first));
    // Other seeds, targets and protocols have other episodes.
    desk.succeeds("evaluate rollouts episodes=3 target=reference seed=2 out=other.json");
    assert_ne!(episodes(&report(&desk.path("other.json"))), episodes(&first));
    // The default target: the return of the episodes with the best twentieth of all actions.
    desk.succeeds("evaluate rollouts episodes=1 out=default.json");
    let of_action = |episode: &Value| {
        vec![number(&episode[0]); episode[1].as_u64().unwrap().try_into().unwrap()]
    };
    let mut returns: Vec<f64> =
        state["episode_returns"].as_array().unwrap().iter().flat_map(of_action).collect();
    returns.sort_by(f64::total_cmp);
    let p95 = returns[(0.95 * returns.len() as f64).ceil() as usize - 1];
    let targets = &report(&desk.path("default.json"))["targets"];
    let asked: Vec<f64> =
        targets.as_array().unwrap().iter().map(|t| number(&t["target_return"])).collect();
    assert_eq!(asked, [p95]);
    desk.succeeds("evaluate rollouts episodes=2 targets=100,p90 protocol=v5 out=v5.json");
    let v5 = report(&desk.path("v5.json"));
    assert_eq!(v5["simulator"], "MuJoCo 3.17.0, Hopper-v5");
    assert_eq!(v5["protocol"]["name"], "v5");
    let asked: Vec<f64> = v5["targets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["target_return"].as_f64().unwrap())
        .collect();
    assert_eq!(asked[0], 100.0);
    assert!(asked[1] > 3600.0 && asked[1] < 3650.0, "{asked:?}"); // of a recording that ends at 3677
}

#[test]
fn a_robots_protocols_have_a_paired_difference() {
    let desk = Desk::new();
    desk.succeeds(&tiny("head=gaussian"));
    let run = desk.only_run("runs");
    desk.refuses("evaluate rollouts protocol=released");
    let stdout =
        desk.succeeds("evaluate rollouts episodes=3 target=3700 protocol=matched,revision");
    let [matched, other] =
        ["evaluation.json", "evaluation-revision.json"].map(|name| report(&run.join(name)));
    let settings: Vec<&Value> =
        other["differences"].as_array().unwrap().iter().map(|row| &row["setting"]).collect();
    // The target is more than any return of the dataset.
    assert_eq!(settings, ["simulation.revision", "target_return"]);
    // The revisions differ only in the step of a fall, by 1.
    let mean = |report: &Value| report["targets"][0]["raw_return"]["mean"].as_f64().unwrap();
    let difference = mean(&other) - mean(&matched);
    assert_eq!(difference.round(), -1.0);
    assert!(stdout.contains(&format!("{difference:+.1} [")), "{stdout}");

    let desk = Desk::new();
    desk.succeeds(&tiny("env=halfcheetah"));
    desk.refuses("evaluate rollouts episodes=1 protocol=revision");
}

/// By default an agent clamps the target to the return that it predicts, so an unreachable target
/// is safe.
#[test]
fn the_target_is_clamped_to_the_predicted_return() {
    let desk = Desk::new();
    desk.succeeds(&tiny("train.updates=30 evaluation.return_quantile=0.9"));
    let run = desk.only_run("runs");
    let [first, absurd, free, low] = [
        "target=20000",
        "target=2000000",
        "target=2000 return_quantile=1",
        "target=20000 return_quantile=0.1",
    ]
    .map(|words| {
        let out = format!("{}.json", words.replace([' ', '='], "-"));
        desk.succeeds(&format!("evaluate rollouts episodes=2 {words} out={out}"));
        report(&desk.path(&out))
    });
    let returns = |report: &Value| -> Vec<f64> {
        let episodes = report["episodes"].as_array().unwrap().iter();
        episodes.map(|episode| number(&episode["raw_return"])).collect()
    };
    assert_eq!(returns(&first), returns(&absurd));
    assert_eq!(first["protocol"]["acting"]["return_quantile"], 0.9f32);
    assert_ne!(returns(&first), returns(&low));
    assert_eq!(free["protocol"]["acting"]["return_quantile"], 1.0, "{}", free["protocol"]);
    desk.succeeds("evaluate rollouts episodes=1 return_quantile=0.5");
    let written = report(&run.join("evaluation-q0.5.json"));
    assert_eq!(written["differences"][0]["setting"], "return_quantile");

    desk.refuses("evaluate rollouts return_quantile=1.5");
    let desk = Desk::new();
    desk.refuses(&tiny("model.return_head=none evaluation.return_quantile=0.5"));
    desk.refuses(&tiny("model.return_head=hl_gauss model.return_unit=scale"));
    desk.succeeds(&tiny("model.return_head=none"));
    desk.refuses("evaluate rollouts return_quantile=0.5");
}

#[test]
fn every_model_and_head_trains_and_plays() {
    for (words, name) in [
        ("head=gaussian attention=fourier", "gaussian-attention-fourier4"),
        ("head=fourier", "fourier14"),
        ("head=gmm attention=fourier", "gmm2-attention-fourier4"),
        ("head=linear head.bins=9", "linear-bins9"),
        ("head=fourier head.bins=9 head.domain=periodic", "fourier14-bins9"),
        ("head=gmm head.bins=9", "gmm2-bins9"),
        ("head=gmm head.weights=learned head.std=state evaluation.actions=sample", "gmm2"),
        ("head=gmm head.bins=9 head.std=fixed head.init_std=0.1", "gmm2-bins9"),
        ("algorithm=behavior_cloning data.top_percent=10", "top10-bc-tanh"),
        ("algorithm=behavior_cloning model.kind=perceptron", "bc-perceptron-tanh"),
        (
            "algorithm=behavior_cloning model.kind=perceptron head=fourier",
            "bc-perceptron-fourier14",
        ),
        ("algorithm=rvs model.d_model=16", "rvs-tanh"),
        ("head=gaussian attention=fourier", "gaussian-attention-fourier4"),
        ("algorithm=rvs model.d_model=16 head=gaussian", "rvs-gaussian"),
        ("data.delayed_reward=true train.sampling=from_start", "tanh"),
    ] {
        let desk = Desk::new();
        // Heads with a distribution can sample.
        let (actions, report_name) = match name.contains("tanh") {
            true => ("mode", "evaluation.json"),
            false => ("sample", "evaluation-sample.json"),
        };
        let target = if words.contains("cloning") { "" } else { "evaluation.target=50" };
        desk.succeeds(&tiny(&format!(
            "{words} train.updates=2 evaluation.episodes=1 {target} evaluation.actions={actions}"
        )));
        let run = desk.only_run("runs");
        let folder = run.file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(folder, format!("{name}-s123-hopper-switching"), "{words}");
        let played = report(&run.join(report_name));
        assert_eq!(played["protocol"]["action_choice"], actions);
        assert!(played["targets"][0]["raw_return"]["mean"].as_f64().unwrap().is_finite());
        assert_eq!(played["protocol"]["delayed_reward"], words.contains("delayed"));
    }
}

#[test]
fn a_stopped_run_resumes_to_the_same_weights() {
    let desk = Desk::new();
    let words = "train.updates=6 train.checkpoint_every=3 train.log_every=1";
    desk.succeeds(&tiny(&format!("{words} runs=whole")));
    desk.succeeds(&tiny(&format!("{words} runs=cut")));
    let (whole, cut) = (desk.only_run("whole"), desk.only_run("cut"));
    // As if the run had been killed after its first checkpoint.
    fs::remove_dir_all(cut.join("checkpoints/step-00000006")).unwrap();
    fs::remove_file(cut.join("finished")).unwrap();
    let stdout = desk.succeeds(&format!("resume run={}", cut.display()));
    assert!(stdout.contains("resuming after update 3"), "{stdout}");
    same_run(&whole, &cut, 6);
}

#[test]
fn invalid_words_are_refused() {
    let desk = Desk::new();
    desk.refuses("train");
    desk.refuses("train env=hoper");
    desk.refuses("train env=hopper dataset=mediun");
    desk.refuses("train env=hopper dataset=expert");
    desk.refuses("train env=hopper game=seaquest");
    desk.refuses("train env=hopper dataset=/no/such.hdf5");
    desk.refuses(&tiny("head=linear"));
    desk.refuses(&tiny("evaluation.target=high evaluation.episodes=1"));
    desk.refuses(&tiny("evaluation.protocol=v3 evaluation.episodes=1"));
    desk.refuses(&tiny("evaluation.actions=best"));
    fs::write(desk.path("text.hdf5"), "not HDF5").unwrap();
    let text = format!("train env=hopper dataset={}", desk.path("text.hdf5").display());
    desk.refuses(&text);
    let other = project().join("datasets/starter/mujoco/walker2d_medium.hdf5");
    desk.refuses(&format!("train env=hopper dataset={}", other.display()));
    // Also a file without a card whose sizes are the same.
    let cheetah = project().join("datasets/starter/mujoco/halfcheetah_medium.hdf5");
    fs::create_dir(desk.path("data")).unwrap();
    fs::copy(&cheetah, desk.path("data/halfcheetah_medium-v2.hdf5")).unwrap();
    for words in ["dataset=data/halfcheetah_medium-v2.hdf5", "dataset=medium data.path=data"] {
        desk.refuses(&format!("train env=walker2d {words}"));
    }
    // Another dataset than the named one is refused; without a name, any is used.
    desk.refuses("train env=halfcheetah dataset=expert data.path=data");
    desk.succeeds(&tiny("env=halfcheetah data.path=data runs=any"));
    // Without a name, the sizes decide.
    fs::copy(&other, desk.path("unnamed.hdf5")).unwrap();
    let unnamed = desk.path("unnamed.hdf5");
    desk.refuses(&format!("train env=hopper dataset={}", unnamed.display()));
    assert!(names(&desk.path("runs")).is_empty(), "no run was started");

    let mut command = desk.command(&tiny("evaluation.episodes=1"));
    command.env("OVERTONE_SITE_PACKAGES", desk.path("nowhere"));
    let said = crate::desk::said(command.output().unwrap());
    said.refused();
    desk.succeeds(&tiny(""));
    desk.refuses("evaluate rollouts episodes=1 actions=best");
    desk.refuses("evaluate rollouts episodes=1 targets=nan");
}

#[test]
fn robots_and_games_are_not_played_together() {
    let desk = Desk::new();
    desk.succeeds(&tiny("runs=first"));
    desk.succeeds(&tiny("runs=second env=walker2d"));
    let [first, second] = ["first", "second"].map(|root| desk.only_run(root));
    desk.refuses(&format!(
        "evaluate rollouts run={},{} episodes=1",
        first.display(),
        second.display()
    ));
}

#[test]
fn a_recording_is_described_with_its_normalized_return() {
    let desk = Desk::new();
    let file = project().join("datasets/starter/mujoco/hopper_medium.hdf5");
    let stdout = desk.succeeds(&format!("data inspect {}", file.display()));
    // 1453.9 raw, datasets/README.md.
    assert!(stdout.contains("mean 45.3 [random 0, expert 100, scores of D4RL]"), "{stdout}");
    let json = desk.succeeds(&format!("data inspect {} --json", file.display()));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!((json["d4rl_normalized_return"].as_f64().unwrap() - 45.3).abs() < 0.05, "{json}");
    assert_eq!(json["episodes"], 179);
}
