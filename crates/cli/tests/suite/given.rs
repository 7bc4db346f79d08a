//! Options without an effect, and outputs that cannot be written, are refused early.

use std::{fs, path::Path};

use crate::desk::{Desk, names};

const ROBOT: &str = "train env=hopper evaluation.episodes=0 model.n_layers=1 model.d_model=16 \
                     model.context_length=5 train.batch_size=3 train.updates=2";

#[test]
fn options_of_another_variant_are_refused() {
    let desk = Desk::new();
    desk.refuses(&desk.tiny("head.frequencies=28"));
    desk.refuses(&desk.tiny("attention.power=6"));
    let perceptron = "algorithm=behavior_cloning model.kind=perceptron";
    desk.refuses(&format!("{ROBOT} {perceptron} attention=fourier"));
    assert!(names(&desk.path("runs")).is_empty(), "nothing was begun");
}

#[test]
fn options_of_other_tasks_are_refused() {
    let desk = Desk::new();
    desk.refuses("train game=seaquest env=hopper");
    desk.refuses(&desk.tiny("head.bins=50"));
    desk.succeeds(ROBOT);
    desk.refuses("evaluate rollouts temperature=2");
    desk.succeeds(&desk.tiny("runs=games"));
    let run = desk.only_run("games");
    let line = format!("evaluate rollouts run={} actions=sample", run.display());
    desk.refuses(&line);
    let line = format!("evaluate rollouts run={} protocol=v5", run.display());
    desk.refuses(&line);
}

/// Options that an agent does not use are refused.
#[test]
fn acting_modes_that_an_agent_lacks_are_refused() {
    let desk = Desk::new();
    desk.succeeds(&format!("{ROBOT} algorithm=behavior_cloning"));
    desk.refuses("evaluate rollouts episodes=1 target=p50,p90");
    desk.refuses("evaluate rollouts episodes=1 actions=sample");
    desk.refuses("evaluate rollouts episodes=1 target=p50");
    desk.succeeds("evaluate rollouts episodes=1");
    let line = "train env=hopper algorithm=td3_bc td3_bc.hidden=8 train.updates=2 runs=none \
                evaluation.episodes=1 evaluation.actions=sample";
    desk.refuses(line);
    assert!(names(&desk.path("none")).is_empty(), "nothing was begun");

    let line = desk
        .tiny("runs=games algorithm=discrete_cql discrete_cql.hidden=8 discrete_cql.quantiles=3");
    let words: Vec<&str> = line.split(' ').filter(|word| !word.starts_with("model.")).collect();
    desk.succeeds(&words.join(" "));
    desk.refuses("evaluate rollouts runs=games temperature=0.3");
}

/// A log of frames and images in a file have different keys.
#[test]
fn options_of_another_kind_of_recording_are_refused() {
    let desk = Desk::new();
    desk.refuses(&desk.tiny("data.top_percent=50"));
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/tests/fixtures/pictures.npz");
    let line = format!(
        "train task=own/camera dataset={} model.n_layers=1 model.d_model=16 \
         model.context_length=2 train.batch_size=2 train.updates=2",
        own.display()
    );
    for word in ["data.run=3", "data.transitions=50", "data.selection=released"] {
        desk.refuses(&format!("{line} {word}"));
    }
    let said = desk.succeeds(&format!("{line} data.top_percent=50"));
    assert!(said.contains("4 below the top percent"), "{said}");
}

/// A game's directory has one name, and its run is found under any spelling.
#[test]
fn a_game_is_one_game_in_any_spelling() {
    let desk = Desk::new();
    let line = desk.tiny("train.checkpoint_every=2");
    desk.succeeds(&line.replace("game=seaquest", "game=bankheist"));
    let run = desk.only_run("runs");
    assert!(run.ends_with("linear-s123-bank_heist"), "{run:?}");
    fs::remove_file(run.join("finished")).unwrap();
    fs::remove_dir_all(run.join("checkpoints/step-00000004")).unwrap();
    let said = desk.succeeds(&line.replace("game=seaquest", "game=Bank_Heist"));
    assert!(said.contains("resuming after update 2"), "{said}");
    assert_eq!(names(&desk.path("runs")).len(), 1);
}

/// A file blocks the path, also for root.
#[test]
fn an_output_that_cannot_be_written_is_refused_early() {
    let desk = Desk::new();
    fs::write(desk.path("file"), "").unwrap();
    desk.succeeds(&ROBOT.replace("evaluation.episodes=0", "evaluation.episodes=1"));
    let said = desk.run("video out=file/a.gif");
    said.refused();
    assert!(!said.stdout.contains("filming"), "{said:?}");
    fs::create_dir(desk.path("folder")).unwrap();
    let said = desk.run("video out=folder");
    said.refused();
    assert!(!said.stdout.contains("filming"), "{said:?}");
    let said = desk.run("video out=a.mp4");
    said.refused();
    assert!(!said.stdout.contains("filming"), "{said:?}");
    // A missing directory is created.
    desk.succeeds("video steps=4 out=new/a.gif");
    assert!(desk.path("new/a.gif").is_file());
}
