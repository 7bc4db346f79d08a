//! Training on several datasets as one.

use std::fs;

use overtone_core::judgement::{Judgement, Trained};

use crate::{
    desk::{Desk, Running, names, project, same_run, steps, wait_until},
    pairs::File,
};

const TINY: &str = "env=hopper train.batch_size=3 model.d_model=16 model.n_layers=1 \
                    evaluation.episodes=0";

#[test]
fn killed_training_on_a_mixture_resumes_to_the_same_end() {
    let desk = Desk::new();
    let long = format!("{TINY} train.updates=300 train.checkpoint_every=5");
    // The same datasets and shares in another order.
    let mix = format!("train {long} dataset=medium,switching data.shares=2,1");
    desk.succeeds(&format!("train {long} dataset=switching,medium data.shares=1,2 runs=whole"));
    let child = Running::start(desk.command(&mix));
    let newest = || {
        let runs = names(&desk.path("runs"));
        runs.first().and_then(|run| steps(&desk.path("runs").join(run)).last().copied())
    };
    wait_until("a checkpoint", || newest().is_some_and(|step| step >= 10));
    child.kill();
    let said = desk.succeeds("resume");
    assert!(said.contains("resuming after update"), "{said}");
    same_run(&desk.only_run("runs"), &desk.only_run("whole"), 300);
}

#[test]
fn formats_of_one_task_mix() {
    let desk = Desk::new();
    let records = format!("record env=hopper transitions=60 to={}", desk.path("mine").display());
    desk.succeeds(&records);
    let line =
        format!("train {TINY} train.updates=2 dataset=switching,{}", desk.path("mine").display());
    let said = desk.succeeds(&line);
    let run = names(&desk.path("runs"));
    assert!(run[0].contains("hopper-switching-mine"), "{run:?}");
    assert!(said.matches("data: ").count() >= 2, "{said}");
    let config = fs::read_to_string(desk.path("runs").join(&run[0]).join("config.toml")).unwrap();
    assert!(config.contains("switching,"), "{config}");
    // A recording that was trained on, of several.
    desk.succeeds("judge dataset=switching updates=2 modes=own steps=300");
    assert_eq!(judgement(&desk).recording.trained, Trained::Yes);
}

fn judgement(desk: &Desk) -> Judgement {
    let path = desk.only_run("runs").join(Judgement::FILE);
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// By the held-out episodes of all datasets together.
#[test]
fn a_run_on_several_datasets_is_judged() {
    let desk = Desk::new();
    for (name, reward) in [("log.npz", 1.0), ("later.npz", 3.0)] {
        let file = File { reward, is_ogbench: false, is_discrete: true };
        file.write(&desk.path(name));
    }
    let said = desk.succeeds(
        "train own=shop dataset=./log.npz,./later.npz algorithm=rvs train.held_out=0.5 \
         train.updates=3 train.batch_size=8 model.d_model=16 model.n_layers=1",
    );
    assert!(said.contains("recorded: 40 episodes of "), "{said}");
    assert_eq!(judgement(&desk).recording.trained, Trained::No);
}

#[test]
fn what_does_not_fit_is_refused_in_a_sentence() {
    let desk = Desk::new();
    let cart = project().join("datasets/starter/gymnasium/CartPole-v1_mixed.hdf5");
    let walker = project().join("datasets/starter/mujoco/walker2d_medium.hdf5");
    for words in [
        "dataset=medium,switching data.shares=1",
        "dataset=medium data.shares=1,1",
        "dataset=medium,switching data.shares=1,0",
        "dataset=medium,nosuch",
        "dataset=medium,",
        "dataset=,",
        &format!("dataset=medium,switching data.path={}", walker.display()),
        &format!("dataset=medium,{}", cart.display()),
        &format!("dataset=medium,{}", walker.display()),
    ] {
        desk.refuses(&format!("train {TINY} {words}"));
    }
}
