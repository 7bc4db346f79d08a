//! Data without an environment, and data with a missing environment: training on both uses the
//! dataset's spaces. There is neither a `.venv` nor a project here.

use std::{
    fs,
    path::{Path, PathBuf},
};

use overtone_testkit::Hdf5File;

use crate::desk::{Desk, ProgramOutput, copy, names, said, steps};

const TINY: &str = "model.n_layers=1 model.d_model=16 model.context_length=2 \
                    train.batch_size=2 train.updates=2";

/// A file from NumPy (`own_arrays.py`).
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/tests/fixtures").join(name)
}

fn run(desk: &Desk, line: &str) -> ProgramOutput {
    let mut command = desk.command(line);
    command.env_remove("OVERTONE_DATASETS").env_remove("VIRTUAL_ENV");
    command.env("HOME", desk.path("home")).env("MINARI_DATASETS_PATH", desk.path("minari"));
    said(command.output().unwrap())
}

#[track_caller]
fn succeeds(desk: &Desk, line: &str) -> String {
    let said = run(desk, line);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{line}\n{}", said.stdout);
    said.stdout
}

/// The task in the checkpoint of the only run in `runs`.
fn task(desk: &Desk, runs: &str) -> serde_json::Value {
    let state = desk.only_run(runs).join("checkpoints/step-00000002/state.json");
    let state: serde_json::Value = serde_json::from_slice(&fs::read(state).unwrap()).unwrap();
    state["agent"]["task"].clone()
}

#[test]
fn arrays_without_an_environment_are_trained_on() {
    let desk = Desk::new();
    let file = fixture("stored.npz");
    let line = format!("train task=own/plant dataset={} {TINY}", file.display());
    let text = succeeds(&desk, &line);
    // Nine rows: actions are rows / 16 and its opposite.
    let shown = "own/plant as its dataset defines it: observations are 3 numbers; actions are 2 \
                 continuous numbers, in [0, 0.5], [-0.5, 0]";
    assert!(text.contains(shown), "{text}");
    assert!(!text.contains("odd:"), "{text}");
    let last = text.lines().last().unwrap();
    let folder = desk.only_run("runs");
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.ends_with("-plant-stored"), "{name}");
    let expected = format!(
        "own/plant does not have an environment, so the agent has no score. Use it \
         from Python: overtone.load(\"runs/{name}\").policy()"
    );
    assert_eq!(last, expected);
    // Nine rows are too few for a judgement.
    assert!(text.contains("not judged: "), "{text}");
    assert_eq!(steps(&folder), [2]);
    let task = task(&desk, "runs");
    assert_eq!((&task["suite"], &task["name"]), (&"own".into(), &"plant".into()));
    // The reference's settings do not evaluate either.
    let paper = line.replace("train ", "study run ") + " profile=paper plan=true";
    let planned = run(&desk, &paper);
    assert_eq!(planned.code, Some(0), "{planned:?}");
    for words in ["evaluate rollouts", "record policy=RUN to=x"] {
        run(&desk, &words.replace("RUN", &folder.display().to_string())).refused();
    }
    run(&desk, "evaluate rollouts").refused();
    let played = format!("{line} evaluation.episodes=1");
    run(&desk, &played).refused();
    succeeds(&desk, "resume");
}

#[test]
fn every_kind_of_recording_shows_its_spaces() {
    let desk = Desk::new();
    let kinds = [
        ("list.npz", "own=website", "discrete"),
        ("pictures.npz", "task=own/camera", "discrete"),
        ("d3rlpy.h5", "task=own/d3rlpy", ""),
        ("minari.hdf5", "task=own/minari", "continuous"),
        ("ogbench.npz", "task=own/maze data.layout=ogbench", "continuous"),
    ];
    for (at, (file, words, kind)) in kinds.into_iter().enumerate() {
        let (file, runs) = (fixture(file), format!("runs-{at}"));
        let line = format!("train {words} dataset={} {TINY} runs={runs}", file.display());
        let text = succeeds(&desk, &line);
        assert!(text.contains("does not have an environment, so the agent has no score"), "{text}");
        let actions = &task(&desk, &runs)["actions"]["kind"];
        assert!(kind.is_empty() || actions == kind, "{line}: {actions}");
    }
    // As one file, which contains its task.
    let list = fixture("list.npz");
    let convert = format!("data convert {} website --task own/website", list.display());
    succeeds(&desk, &convert);
    let text = succeeds(&desk, &format!("train dataset=./website {TINY} runs=again"));
    assert!(text.contains("own/website as its dataset defines it"), "{text}");
}

#[test]
fn invalid_own_tasks_are_refused() {
    let desk = Desk::new();
    let refuses = |line: &str| run(&desk, line).refused();
    let list = fixture("list.npz");
    let list = list.display();
    refuses(&format!("train dataset={list}"));
    refuses("train task=own/plant");
    refuses("record task=own/plant to=x");
    refuses("train task=own/plant dataset=/nowhere/a.npz");
    refuses(&format!("train task=own/ dataset={list}"));
    refuses(&format!("train task=own/plant dataset={}", fixture("pickled.npz").display()));
    assert_eq!(names(&desk.path("runs")), [""; 0]);
}

/// A dataset from Minari itself, with its spaces in `metadata.json`.
#[test]
fn environments_that_are_not_here_are_trained_for() {
    let desk = Desk::new();
    let minari = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/minari");
    copy(&minari, &desk.path("minari"));
    let metadata = desk.path("minari/mujoco/hopper/tiny-v0/data/metadata.json");
    let text = fs::read_to_string(&metadata).unwrap();
    fs::write(&metadata, text.replace("Hopper-v5", "Plant-v3")).unwrap();
    let line = format!("train dataset=minari:mujoco/hopper/tiny-v0 {TINY}");
    let text = succeeds(&desk, &format!("{line} evaluation.episodes=0"));
    assert!(!text.contains("odd:"), "{text}");
    let task = task(&desk, "runs");
    assert_eq!((&task["suite"], &task["name"]), (&"gymnasium".into(), &"Plant-v3".into()));
    assert_eq!(task["observations"]["width"], 11);
    assert_eq!(task["actions"]["low"], serde_json::json!([-1.0, -1.0, -1.0]));
    assert_eq!(task["simulation"]["max_episode_steps"], 1000);
    // Another task than the dataset's is refused.
    let data = desk.path("minari/mujoco/hopper/tiny-v0");
    let other = format!("task=gymnasium/Plant-v3 dataset={}", data.display());
    succeeds(&desk, &format!("train {other} {TINY} evaluation.episodes=0"));
    run(&desk, &format!("train {} {TINY}", other.replace("v3", "v4"))).refused();
    run(&desk, &line).refused();
}

#[test]
fn a_doubt_about_actions_is_reported_before_training() {
    let desk = Desk::new();
    let file = Hdf5File::create(desk.path("valves.hdf5"));
    let put = |name: &str, values: &[f32]| file.put(name, values, 1);
    let numbers: Vec<f32> = (0..40).map(|row| (row as f32 * 0.7).sin()).collect();
    put("observations", &numbers);
    put("actions", &(0..40).map(|row| (row % 2) as f32).collect::<Vec<_>>());
    put("rewards", &numbers);
    put("terminals", &(0..40).map(|row| f32::from(u8::from(row % 10 == 9))).collect::<Vec<_>>());
    put("timeouts", &[0.0; 40]);
    drop(file);
    let line = format!("train task=own/valves dataset=./valves.hdf5 {TINY}");
    let said = run(&desk, &line);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let doubt = "actions: expected real numbers, found whole numbers, 2 different ones from 0 to 1";
    let warning = format!("warning: {doubt}. Save them as integers, one a row");
    assert!(said.stderr.starts_with(&warning), "{}", said.stderr);
    assert_eq!(said.stderr.lines().count(), 1, "{}", said.stderr);
    let linted = run(&desk, "data lint valves.hdf5");
    let found = "whole numbers, 2 different ones from 0 to 1";
    assert!(linted.stdout.contains(found), "{}", linted.stdout);
    // Integers are discrete actions without a doubt.
    let ids: Vec<i64> = (0..40).map(|row| row % 2).collect();
    Hdf5File::edit(desk.path("valves.hdf5")).put("actions", &ids, 0);
    succeeds(&desk, &format!("{line} runs=list"));
}

/// A robot's demonstrations that have no reward are cloned, and nothing is learned from values.
#[test]
fn demonstrations_without_a_reward_are_cloned() {
    let desk = Desk::new();
    copy(&fixture("lerobot"), &desk.path("pusht"));
    let info = desk.path("pusht/meta/info.json");
    let text = fs::read_to_string(&info).unwrap();
    fs::write(&info, text.replace("next.reward", "next.other")).unwrap();
    let line = format!("train own=pusht dataset=pusht {TINY}");
    let text = succeeds(&desk, &format!("{line} algorithm=behavior_cloning"));
    assert!(text.contains("odd: no column `next.reward`: every reward is 0"), "{text}");
    let line = "train own=pusht dataset=pusht algorithm=iql";
    let said = run(&desk, line);
    assert!(said.stderr.contains("every reward of this data is 0"), "{}", said.stderr);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    // With its reward, values are learned.
    copy(&fixture("lerobot"), &desk.path("rewarded"));
    succeeds(&desk, "train own=reach dataset=rewarded algorithm=iql train.updates=2 runs=values");
}

/// Another choice of columns: robomimic's parts of an observation.
#[test]
fn the_parts_of_a_demonstration_are_chosen() {
    let desk = Desk::new();
    let file = fixture("robomimic.hdf5");
    let line =
        format!("train own=lift dataset={} algorithm=behavior_cloning {TINY}", file.display());
    let shown = |text: &str, numbers: &str| {
        let shown = format!("observations are {numbers}");
        assert!(text.contains(&shown), "{text}");
    };
    shown(&succeeds(&desk, &format!("{line} runs=all")), "3 numbers");
    let one = format!("{line} runs=one data.columns.observation=object");
    shown(&succeeds(&desk, &one), "2 numbers");
    let text = run(&desk, &format!("data lint {}", file.display())).stdout;
    assert!(text.contains("obs/agentview_image"), "{text}");
}
