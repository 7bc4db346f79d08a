//! All sentences about differences from training for a robot.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use overtone_core::protocol::{ActionChoice, Play};
use overtone_core::{Simulation, Task};
use overtone_env::Suite;
use overtone_mujoco::{Mujoco, Revision, Robot, RobotSimulation, SETTINGS};
use overtone_testkit::{differences, sentences};

fn task(name: &str) -> Task {
    Robot::named(name).unwrap().task.clone()
}

/// Two protocols that differ in every setting.
fn protocols() -> [Play; 2] {
    let matched = Play { return_scale: 1000.0, ..task("hopper").matched(None) };
    let simulation = RobotSimulation { revision: Revision::V5, max_steps: 10 };
    let other = Play {
        name: "other".into(),
        simulation: Simulation::of(&simulation),
        action_choice: ActionChoice::Sample,
        return_scale: 300.0,
        delayed_reward: true,
        ..matched.clone()
    };
    [matched, other]
}

#[test]
fn all_sentences_match_the_file() {
    // HalfCheetah cannot fall, so its revisions are equal.
    let robot = |all_matter| task(if all_matter { "hopper" } else { "halfcheetah" });
    let text = differences::text(&protocols(), robot, SETTINGS);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differences.txt");
    sentences::check_file(&text, &path);
}

#[test]
fn protocols_are_revisions() {
    let matched = task("hopper").matched(None);
    let v5 = Mujoco.protocol("v5", &matched).unwrap();
    assert_eq!((v5.name.as_str(), v5.simulation.get("revision")), ("v5", Some(&"v5".into())));
    assert_eq!(Mujoco.protocol("v4", &matched).unwrap(), matched, "as recorded");
    assert!(Mujoco.protocol("released", &matched).is_none());
    let drawn = Mujoco.contrast(&matched);
    assert_eq!(Play { action_choice: ActionChoice::Sample, ..v5 }, drawn);
}
