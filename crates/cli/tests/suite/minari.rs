//! A dataset of Minari's hub, from a local server that answers like the hub: download, and training
//! by its id only. The dataset is from Minari itself (`fixtures/write_minari.py`).

use std::{
    fs,
    path::{Path, PathBuf},
};

use overtone_testkit::{minari_hub::serve, web_server::WebServer};

use crate::desk::{Desk, ProgramOutput, copy, names, said, steps};

const ID: &str = "minari:mujoco/hopper/tiny-v0";
const TINY: &str = "evaluation.episodes=0 model.n_layers=1 model.d_model=16 \
                    model.context_length=4 train.batch_size=4 train.updates=2";

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/minari")
}

fn hub() -> (WebServer, String) {
    let server = serve(fixture(), 10_000, |_| {});
    let address = format!("http://{}", server.address);
    (server, address)
}

/// The program in an empty directory without a project; Minari's directory is `minari`.
fn run_where(desk: &Desk, line: &str, variables: &[(&str, &str)]) -> ProgramOutput {
    let mut command = desk.command(line);
    for proxy in ["ALL_PROXY", "HTTP_PROXY"] {
        command.env_remove(proxy).env_remove(proxy.to_lowercase());
    }
    command.env_remove("OVERTONE_DATASETS").env_remove("HF_ENDPOINT");
    command.env("MINARI_DATASETS_PATH", desk.path("minari"));
    command.envs(variables.iter().copied());
    said(command.output().unwrap())
}

fn run(desk: &Desk, line: &str) -> ProgramOutput {
    run_where(desk, line, &[])
}

#[track_caller]
fn succeeds(said: ProgramOutput) -> String {
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{}", said.stdout);
    said.stdout
}

#[test]
fn a_dataset_is_fetched_and_trained_on_by_its_id() {
    let (desk, (server, address)) = (Desk::new(), hub());
    let line = format!("download dataset={ID}");
    let text = succeeds(run(&desk, &format!("{line} plan=true from={address}/")));
    for part in [
        "data: Minari's mujoco/hopper/tiny-v0",
        "plan: 2 of 2 files to fetch, 80 kB",
        "79 kB  mujoco/hopper/tiny-v0/data/main_data.hdf5",
        "2 kB  mujoco/hopper/tiny-v0/data/metadata.json",
    ] {
        assert!(text.contains(part), "no {part:?} in: {text}");
    }
    assert!(!desk.path("minari").exists());
    run(&desk, &format!("train dataset={ID} {TINY}")).refused();
    // The first answer breaks off.
    let text = succeeds(run_where(&desk, &line, &[("HF_ENDPOINT", &address)]));
    assert!(text.contains("train dataset=minari:mujoco/hopper/tiny-v0"), "{text}");
    assert!(server.starts("GET").contains(&10_000));
    let data = desk.path("minari/mujoco/hopper/tiny-v0/data");
    assert_eq!(names(&data), ["main_data.hdf5", "metadata.json"]);
    for name in names(&data) {
        let original = fixture().join("mujoco/hopper/tiny-v0/data").join(&name);
        assert!(fs::read(data.join(&name)).unwrap() == fs::read(original).unwrap(), "{name}");
    }
    let text = succeeds(run(&desk, &format!("train dataset={ID} {TINY}")));
    assert!(text.contains("data: Minari's mujoco/hopper/tiny-v0 in "), "{text}");
    assert!(text.contains("102 transitions in 4 episodes"), "{text}");
    // Hopper-v5, not the v4 of D4RL's datasets.
    let run_folder = desk.only_run("runs");
    assert!(run_folder.to_string_lossy().contains("hopper-tiny-v0"), "{run_folder:?}");
    let config = fs::read_to_string(run_folder.join("config.toml")).unwrap();
    assert!(config.contains("task = \"mujoco/hopper\""), "{config}");
    assert_eq!(steps(&run_folder), [2]);
    let state = run_folder.join("checkpoints/step-00000002/state.json");
    let state: serde_json::Value = serde_json::from_slice(&fs::read(state).unwrap()).unwrap();
    assert_eq!(state["agent"]["recording"]["revision"], "v5", "{state}");
    let lint = run(&desk, &format!("data lint {}", data.display()));
    assert_eq!(lint.code, Some(0), "{}", lint.stdout);
}

/// The description of one of our recordings contains its simulation, by its id and by its path.
#[test]
fn how_an_own_dataset_was_recorded_is_known() {
    let desk = Desk::new();
    let words = "record env=hopper transitions=60 episode_steps=20 to=minari:mine/short-v0";
    succeeds(run(&desk, words));
    for dataset in ["minari:mine/short-v0", "./minari/mine/short-v0"] {
        let text = succeeds(run(&desk, &format!("train dataset={dataset} {TINY} resume=never")));
        assert!(!text.contains("does not say how it was recorded"), "{text}");
    }
    for name in names(&desk.path("runs")) {
        let state = desk.path(&format!("runs/{name}/checkpoints/step-00000002/state.json"));
        let state: serde_json::Value = serde_json::from_slice(&fs::read(state).unwrap()).unwrap();
        assert_eq!(state["agent"]["recording"]["max_steps"], 20, "{state}");
        // The average return-to-go uses that many steps.
        assert!(
            state["agent"].to_string().contains(r#""average_return":{"horizon":20}"#),
            "{state}"
        );
    }
}

/// The limit of the recording, not of the task.
#[test]
fn a_recordings_own_limit_says_which_episodes_are_too_long() {
    let desk = Desk::new();
    copy(&fixture(), &desk.path("minari"));
    let data = desk.path("minari/mujoco/hopper/tiny-v0/data");
    let lint = format!("data lint {}", data.display());
    let text = run(&desk, &lint).stdout;
    assert!(!text.contains("episode-too-long"), "{text}");
    let description = data.join("metadata.json");
    let original = fs::read_to_string(&description).unwrap();
    let shorter = original.replace(r#"max_episode_steps\": 1000"#, r#"max_episode_steps\": 10"#);
    assert_ne!(original, shorter);
    // Also for an environment that only Gymnasium knows.
    for text in [shorter.replace("Hopper-v5", "Own-v0"), shorter] {
        fs::write(&description, text).unwrap();
        let said = run(&desk, &lint);
        assert!(said.stdout.contains("episode-too-long"), "{said:?}");
        assert_ne!(said.code, Some(0), "{said:?}");
    }
    // The agent is evaluated for as long as the recorded episodes, and a warning reports it.
    let said = run(&desk, &format!("train dataset={ID} {TINY}"));
    assert_eq!(said.code, Some(0), "{said:?}");
    let words = "warning: recorded episodes have up to ";
    assert!(said.stderr.contains(words) && said.stderr.contains("limit is 10"), "{said:?}");
    let state = desk.only_run("runs").join("checkpoints/step-00000002/state.json");
    let state: serde_json::Value = serde_json::from_slice(&fs::read(state).unwrap()).unwrap();
    let limit = state["agent"]["recording"]["max_steps"].as_u64().unwrap();
    assert!(said.stderr.contains(&format!("up to {limit} steps")) && limit > 10, "{said:?}");
}

#[test]
fn datasets_that_do_not_fit() {
    let (desk, (_server, address)) = (Desk::new(), hub());
    let refuses = |line: &str| run(&desk, line).refused();
    let from = format!("from={address}");
    refuses(&format!("download dataset=minari:mujoco/hopper/large-v0 {from}"));
    refuses("download dataset=minari:hopper");
    refuses(&format!("train dataset=minari:../x-v0 {TINY}"));
    refuses(&format!("download env=hopper dataset={ID} {from}"));
    copy(&fixture(), &desk.path("minari"));
    let words = format!("train env=walker2d dataset={ID} {TINY}");
    refuses(&words);
    let data = desk.path("minari/mujoco/hopper/tiny-v0/data");
    let train = format!("train dataset={ID} {TINY}");
    fs::rename(data.join("main_data.hdf5"), data.join("main_data.hdf5.partial")).unwrap();
    refuses(&train);
    let metadata = fs::read_to_string(data.join("metadata.json")).unwrap();
    fs::rename(data.join("main_data.hdf5.partial"), data.join("main_data.hdf5")).unwrap();
    fs::write(data.join("metadata.json"), metadata.replace("Hopper-v5", "Own-v0")).unwrap();
    // It contains its spaces: training does not need the environment, and evaluation does.
    refuses(&format!("{train} evaluation.episodes=1"));
    succeeds(run(&desk, &train));
    fs::write(data.join("metadata.json"), metadata.replace("env_spec", "spec")).unwrap();
    refuses(&train);
    fs::write(data.join("metadata.json"), "{").unwrap();
    refuses(&train);
}
