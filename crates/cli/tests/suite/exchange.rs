//! Agents that go out to other programs and come back.

use std::fs;

use serde_json::Value;

use crate::desk::{Desk, checkpoint};

const TINY: &str = "env=hopper model.n_layers=2 model.d_model=16 model.context_length=5 \
                    train.batch_size=3 train.updates=4 evaluation.episodes=0";

#[test]
fn an_agent_goes_out_and_comes_back_equal() {
    let desk = Desk::new();
    desk.succeeds(&format!("train {TINY}"));
    let run = desk.only_run("runs");
    desk.succeeds("export to=out/hopper");
    let folder = desk.path("out/hopper");
    let config: Value =
        serde_json::from_slice(&fs::read(folder.join("config.json")).unwrap()).unwrap();
    for (key, value) in [("state_dim", 11), ("act_dim", 3), ("hidden_size", 16), ("n_layer", 2)] {
        assert_eq!(config[key], value, "{config}");
    }
    let card = fs::read_to_string(folder.join("README.md")).unwrap();
    assert!(card.contains("mujoco/hopper") && card.contains("divided by 1000"), "{card}");

    desk.succeeds("import from=out/hopper runs=back");
    let back = desk.only_run("back");
    let model = |run| checkpoint(run, 4).remove("model.safetensors");
    assert_eq!(model(&run), model(&back));
    let said = desk.succeeds("evaluate rollouts runs=back episodes=2 target=1800 out=back.json");
    assert!(said.contains("Hopper"), "{said}");
    desk.succeeds("evaluate rollouts runs=runs episodes=2 target=1800 out=own.json");
    let episodes = |name: &str| -> Value {
        let text = fs::read(desk.path(name)).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()["episodes"].clone()
    };
    assert_eq!(episodes("back.json"), episodes("own.json"));

    // As from elsewhere: without what only Overtone says.
    fs::remove_file(folder.join("overtone.json")).unwrap();
    desk.refuses("import from=out/hopper", &["task=", "mujoco/hopper"]);
    desk.refuses("import from=out/hopper task=mujoco/hopper", &["statistics=", "mean and std"]);
    desk.refuses("import from=out/hopper task=mujoco/hopper statistics=s.json", &["s.json"]);
    let statistics = |width: usize| {
        serde_json::json!({ "mean": vec![0.0; width], "std": vec![1.0; width] }).to_string()
    };
    fs::write(desk.path("s.json"), statistics(17)).unwrap();
    desk.refuses(
        "import from=out/hopper task=mujoco/hopper statistics=s.json",
        &["[17, 17] numbers", "shows 11"],
    );
    desk.refuses(
        "import from=out/hopper task=mujoco/walker2d statistics=s.json",
        &["state_dim = 11", "17"],
    );
    fs::write(desk.path("s.json"), statistics(11)).unwrap();
    desk.succeeds("import from=out/hopper task=mujoco/hopper statistics=s.json runs=bare");
    desk.succeeds("evaluate rollouts runs=bare episodes=1 target=1800");
}

#[test]
fn what_others_do_not_have_is_not_exported() {
    let desk = Desk::new();
    for (words, part) in [
        ("head=gaussian", "model.head = "),
        ("attention=fourier", "model.attention = "),
        ("algorithm=behavior_cloning", "model.conditioning = "),
        ("algorithm=td3_bc train.updates=2", "model.kind = "),
    ] {
        let model = if words.contains("td3") { "env=hopper evaluation.episodes=0" } else { TINY };
        desk.succeeds(&format!("train {model} {words} runs={}", words.replace(' ', "-")));
        let runs = words.replace(' ', "-");
        desk.refuses(&format!("export runs={runs} to=out"), &["cannot be exported", part]);
        assert!(!desk.path("out").exists());
    }
    desk.refuses("export", &["to=", "folder"]);
    desk.refuses("import", &["from=", "folder"]);
}
