//! Export of agents to other programs, and import.

use std::fs;

use serde_json::Value;

use crate::desk::{Desk, acting_of, checkpoint, copy, names, project};

const TINY: &str = "env=hopper model.n_layers=2 model.d_model=16 model.context_length=5 \
                    model.top_percents=none train.batch_size=3 train.updates=4 \
                    evaluation.episodes=0";

/// The report of an evaluation by these words.
fn played(desk: &Desk, words: &str) -> Value {
    desk.succeeds(&format!("evaluate rollouts {words} out=one.json"));
    serde_json::from_slice(&fs::read(desk.path("one.json")).unwrap()).unwrap()
}

#[test]
fn an_agent_goes_out_and_comes_back_equal() {
    goes_out_and_comes_back("model.return_unit=scale");
}

/// transformers' model has an embedding of timesteps, which is zero if ours has none.
#[test]
fn an_agent_with_timesteps_comes_back_equal() {
    goes_out_and_comes_back("model.return_unit=scale model.time=episode");
}

/// A range of returns goes into the weights, which rounds them.
#[test]
fn one_with_a_range_of_returns_plays_the_same() {
    let desk = Desk::new();
    desk.succeeds(&format!("train {TINY} model.return_unit=range model.return_head=none"));
    desk.succeeds("export to=out");
    desk.succeeds("import out runs=back");
    let [own, its] = ["runs", "back"].map(|runs| {
        let played = played(&desk, &format!("runs={runs} episodes=2 target=1800"));
        let episodes = played["episodes"].as_array().unwrap().iter();
        episodes.map(|episode| episode["raw_return"].as_f64().unwrap()).collect::<Vec<_>>()
    });
    for (own, its) in own.iter().zip(&its) {
        assert!((own - its).abs() < 1e-3 * own.abs().max(1.0), "{own} {its}");
    }
}

/// transformers supports neither top percentages nor return models; an agent with a fixed top
/// percent does not need them.
#[test]
fn an_agent_with_a_top_percent_ignores_returns() {
    let desk = Desk::new();
    let quick = TINY.replace("top_percents=none", "top_percents=10,100");
    desk.succeeds(&format!("train {quick}"));
    desk.refuses("export to=out");
    desk.refuses("export to=out top_percent=20");
    desk.refuses("export to=out top_percent=10 format=safetensors");
    let episodes = |words: &str| -> Value {
        played(&desk, &format!("episodes=2 {words}"))["episodes"].clone()
    };
    let returns = |words: &str| -> Vec<f64> {
        let episodes = episodes(words);
        episodes.as_array().unwrap().iter().map(|e| e["raw_return"].as_f64().unwrap()).collect()
    };
    let mut all = Vec::new();
    for percent in [10, 100] {
        let said = desk.succeeds(&format!("export to=out{percent} top_percent={percent}"));
        assert!(said.contains(&format!("conditioned on the top {percent} %")), "{said}");
        let card = fs::read_to_string(desk.path(&format!("out{percent}/README.md"))).unwrap();
        assert!(card.contains("ignores returns"), "{card}");
        desk.succeeds(&format!("import out{percent} runs=back{percent}"));
        let own = returns(&format!("runs=runs top_percent={percent}"));
        for target in [100, 1800] {
            assert_eq!(own, returns(&format!("runs=back{percent} target={target}")));
        }
        all.push(own);
    }
    assert_ne!(all[0], all[1]);

    // The default export has the run's chosen mode.
    desk.succeeds("evaluate choose runs=runs budget=7");
    let choice: Value =
        serde_json::from_slice(&fs::read(acting_of(&desk.only_run("runs"))).unwrap()).unwrap();
    match choice["chosen"]["top_percent"].as_f64().unwrap_or(0.0) {
        0.0 => desk.refuses("export to=out"),
        percent => {
            let said = desk.succeeds("export to=out");
            assert!(said.contains(&format!("conditioned on the top {percent} %")), "{said}");
        }
    };
}

/// An agent that is conditioned on returns does not need vectors of top percentages.
#[test]
fn an_agent_with_returns_is_exported_without_top_percents() {
    let desk = Desk::new();
    let quick = TINY.replace("top_percents=none", "top_percents=10");
    desk.succeeds(&format!("train {quick} model.return_unit=scale"));
    desk.succeeds("export to=out");
    desk.succeeds("import out runs=back");
    let [own, its] = ["runs", "back"].map(|runs| {
        desk.succeeds(&format!("evaluate rollouts runs={runs} episodes=2 target=1800 out=e.json"));
        let text = fs::read(desk.path("e.json")).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()["episodes"].clone()
    });
    assert_eq!(own, its);
}

fn goes_out_and_comes_back(words: &str) {
    let desk = Desk::new();
    desk.succeeds(&format!("train {TINY} {words}"));
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
    assert!(card.contains("Actions are between -1 and 1.\n"), "{card}");

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
    // Weights of other sizes, or fewer blocks than the weights have.
    let text = fs::read_to_string(folder.join("config.json")).unwrap();
    for (key, was, is) in [("hidden_size", 16, 32), ("n_layer", 2, 1)] {
        let other = text.replace(&format!("\"{key}\": {was}"), &format!("\"{key}\": {is}"));
        assert_ne!(other, text, "{key}");
        fs::write(folder.join("config.json"), other).unwrap();
        desk.refuses("import from=out/hopper runs=other");
        assert!(!desk.path("other").exists(), "{key}");
    }
    fs::write(folder.join("config.json"), text).unwrap();

    for word in ["n_heads=2", "return_scale=5", "context_length=9"] {
        desk.refuses(&format!("import from=out/hopper {word}"));
    }
    // As from another program: without Overtone's own file.
    fs::remove_file(folder.join("overtone.json")).unwrap();
    desk.refuses("import from=out/hopper");
    desk.refuses("import from=out/hopper task=mujoco/hopper");
    desk.refuses("import from=out/hopper task=mujoco/hopper statistics=s.json");
    let statistics = |width: usize| {
        serde_json::json!({ "mean": vec![0.0; width], "std": vec![1.0; width] }).to_string()
    };
    fs::write(desk.path("s.json"), statistics(11).replace("1.0", "-1.0")).unwrap();
    desk.refuses("import from=out/hopper task=mujoco/hopper statistics=s.json");
    fs::write(desk.path("s.json"), statistics(17)).unwrap();
    desk.refuses("import from=out/hopper task=mujoco/hopper statistics=s.json");
    desk.refuses("import from=out/hopper task=mujoco/walker2d statistics=s.json");
    fs::write(desk.path("s.json"), statistics(11)).unwrap();
    desk.succeeds("import from=out/hopper task=mujoco/hopper statistics=s.json runs=bare");
    desk.succeeds("evaluate rollouts runs=bare episodes=1 target=1800");
}

/// Every algorithm and head: the same files, and the same episodes.
#[test]
fn every_agent_goes_out_as_safetensors_and_comes_back_equal() {
    const SMALL: &str = "env=hopper train.batch_size=3 train.updates=4 evaluation.episodes=0";
    for words in [
        "model.n_layers=1 model.d_model=16",
        "head=fourier attention=fourier model.n_layers=1 model.d_model=16",
        "head=gmm head.bins=5 model.n_layers=1 model.d_model=16",
        "algorithm=behavior_cloning model.kind=perceptron head=gaussian model.d_model=16",
        "algorithm=behavior_cloning model.kind=perceptron head=gmm head.weights=learned \
         head.std=state model.d_model=16",
        "algorithm=behavior_cloning model.kind=perceptron head=gmm head.std=fixed \
         head.init_std=0.1 model.d_model=16",
        "algorithm=rvs model.d_model=16 model.top_percents=none",
        "algorithm=rvs model.d_model=16 model.top_percents=10,100",
        "algorithm=td3_bc td3_bc.hidden=8",
        "algorithm=iql iql.hidden=8",
        "algorithm=rebrac rebrac.hidden=8",
    ] {
        let desk = Desk::new();
        desk.succeeds(&format!("train {SMALL} {words}"));
        let run = desk.only_run("runs");
        desk.succeeds(&format!("export {} format=safetensors out", run.display()));
        assert_eq!(names(&desk.path("out")), ["README.md", "model.safetensors", "overtone.json"]);
        desk.succeeds("import out runs=back");
        let back = desk.only_run("back");
        let [mut own, mut its] = [&run, &back].map(|run| checkpoint(run, 4));
        for same in ["model.safetensors", "state.json"] {
            assert!(own.remove(same) == its.remove(same), "{words}: {same}");
        }
        let has_values = ["td3_bc", "iql", "rebrac", "cloning"].iter().any(|of| words.contains(of));
        let target = if has_values { "" } else { "target=900" };
        for (runs, out) in [("runs", "own"), ("back", "its")] {
            desk.succeeds(&format!("evaluate rollouts runs={runs} episodes=1 {target} out={out}"));
        }
        let [own, its] = ["own", "its"].map(|name| -> Value {
            let text = fs::read(desk.path(name)).unwrap();
            serde_json::from_slice::<Value>(&text).unwrap()["episodes"].clone()
        });
        assert_eq!(own, its, "{words}");
    }
}

/// An agent's chosen mode is exported with it.
#[test]
fn the_acting_mode_is_exported_too() {
    let desk = Desk::new();
    desk.succeeds(&format!("train {TINY} model.return_head=hl_gauss"));
    desk.succeeds("evaluate choose return_quantiles=0.25 target=900 budget=1");
    desk.succeeds("export format=safetensors to=out");
    desk.succeeds("import out runs=back");
    let [own, its] = ["runs", "back"].map(|runs| played(&desk, &format!("runs={runs} episodes=1")));
    assert_eq!(its["protocol"]["acting"]["return_quantile"], 0.25);
    assert_eq!(own["protocol"], its["protocol"]);
    assert_eq!(own["episodes"], its["episodes"]);

    let description = desk.path("out/overtone.json");
    let text = fs::read_to_string(&description).unwrap();
    fs::write(&description, text.replacen("\"curve\"", "\"bend\"", 1)).unwrap();
    desk.refuses("import out runs=other");
}

/// Discrete actions, on images.
#[test]
fn games_are_exported_too() {
    let desk = Desk::new();
    desk.succeeds(&desk.tiny("head=fourier"));
    let run = desk.only_run("runs");
    desk.refuses("export to=out");
    desk.succeeds("export format=safetensors to=out");
    desk.succeeds("import out runs=back");
    let [own, its] = [run, desk.only_run("back")].map(|run| checkpoint(&run, 4));
    assert!(own["model.safetensors"] == its["model.safetensors"]);
    assert!(own["state.json"] == its["state.json"]);
}

/// A tiny model in the published Atari program's names, as torch saved it.
#[test]
fn a_published_state_dict_becomes_a_run_that_plays() {
    let desk = Desk::new();
    let file = project().join("crates/agents/tests/state_dict/atari.pt");
    let file = file.display();
    desk.refuses(&format!("import {file}"));
    desk.refuses(&format!("import {file} task=ale/seaquest"));
    desk.refuses(&format!("import {file} task=ale/pong n_heads=3"));
    desk.refuses(&format!("import {file} task=ale/pong n_heads=2 context_length=5"));
    desk.refuses(&format!("import {file} task=mujoco/hopper"));
    desk.succeeds(&format!("import {file} task=ale/pong n_heads=2"));
    let said = desk.succeeds("evaluate rollouts episodes=1 target=20 out=played");
    assert!(said.contains("played"), "{said}");
    let played: Value = serde_json::from_slice(&fs::read(desk.path("played")).unwrap()).unwrap();
    assert_eq!(played["episodes"].as_array().map(Vec::len), Some(1));
}

#[test]
fn the_card_has_the_returns_and_damage_is_refused() {
    let desk = Desk::new();
    desk.succeeds(&format!("train {TINY}"));
    let run = desk.only_run("runs");
    desk.succeeds(&format!("export {} format=safetensors first", run.display()));
    let card = |folder: &str| fs::read_to_string(desk.path(folder).join("README.md")).unwrap();
    assert!(card("first").contains("Not evaluated.") && card("first").contains("seed: 123"));
    desk.succeeds("evaluate rollouts episodes=2 target=900 seed=5");
    desk.succeeds(&format!("export {} format=safetensors second", run.display()));
    let said = card("second");
    assert!(said.contains("| 900 | ") && said.contains(" | 2 | 5 |"), "{said}");
    desk.refuses("export a b c");
    desk.refuses("export format=tf to=third");
    desk.refuses("import second task=mujoco/hopper");
    desk.refuses("import runs");
    desk.refuses("import /nonexistent");
    // A directory with `=` in its path, and the current directory.
    copy(&desk.path("second"), &desk.path("a=b"));
    desk.succeeds("import a=b runs=named");
    let mut here = desk.command("import . runs=../named");
    assert_eq!(
        crate::desk::said(here.current_dir(desk.path("second")).output().unwrap()).code,
        Some(0)
    );
    assert_eq!(names(&desk.path("named")), ["imported-a=b", "imported-second"]);

    let weights = desk.path("second/model.safetensors");
    let sound = fs::read(&weights).unwrap();
    let mut damaged = sound.clone();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(&weights, &damaged).unwrap();
    desk.refuses("import second runs=back");
    fs::write(&weights, sound).unwrap();
    let description = desk.path("second/overtone.json");
    let text = fs::read_to_string(&description).unwrap();
    for (from, to) in [
        ("\"layout\": 2", "\"layout\": 9"),
        ("\"n_heads\": 1", "\"n_heads\": 3"),
        ("\"d_model\": 16", "\"d_model\": 32"),
        ("task = \\\"mujoco/hopper", "task = \\\"mujoco/walker2d"),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        fs::write(&description, text.replace(from, to)).unwrap();
        desk.refuses("import second runs=back");
    }
    // At a fixed place, so that the sentence does not depend on the keys.
    fs::write(&description, text.lines().take(3).collect::<String>()).unwrap();
    desk.refuses("import second runs=back");
    assert!(!desk.path("back").exists(), "nothing was begun");
}

#[test]
fn unsupported_parts_are_not_exported() {
    let desk = Desk::new();
    for words in [
        "head=gaussian model.return_unit=scale",
        "attention=fourier model.return_unit=scale",
        "model.return_unit=rate",
        "model.return_unit=range",
        "algorithm=behavior_cloning",
        "algorithm=td3_bc train.updates=2",
    ] {
        let model = if words.contains("td3") { "env=hopper evaluation.episodes=0" } else { TINY };
        desk.succeeds(&format!("train {model} {words} runs={}", words.replace(' ', "-")));
        let runs = words.replace(' ', "-");
        desk.refuses(&format!("export runs={runs} to=out"));
        assert!(!desk.path("out").exists());
    }
    desk.refuses("export");
    desk.refuses("import");
}
