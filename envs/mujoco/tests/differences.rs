//! All sentences about differences from training for a robot.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use overtone_core::Task;
use overtone_core::protocol::{ActionChoice, Play, Trained};
use overtone_env::Suite;
use overtone_mujoco::{Mujoco, Revision, Robot, RobotSimulation, SETTINGS};

fn task(name: &str) -> Task {
    Robot::named(name).unwrap().task.clone()
}

/// Two protocols that differ in every setting.
fn protocols() -> [Play; 2] {
    let matched = Play { return_scale: 1000.0, ..task("hopper").matched(None) };
    let simulation = RobotSimulation { revision: Revision::V5, max_steps: 10 };
    let other = Play {
        name: "other".into(),
        simulation: simulation.to_simulation(),
        action_choice: ActionChoice::Sample,
        return_scale: 300.0,
        delayed_reward: true,
        ..matched.clone()
    };
    [matched, other]
}

/// The sentences for an agent that uses every setting (`all_matter`), or only the settings that all
/// agents use.
fn sentences(trained: &Play, played: &Play, all_matter: bool, targets: &[f32]) -> String {
    let agent = Trained {
        play: trained.clone(),
        // HalfCheetah cannot fall, so its revisions are equal.
        task: task(if all_matter { "hopper" } else { "halfcheetah" }),
        settings: SETTINGS,
        returns: Some([0.0, 40.5]),
        reads_returns: all_matter,
        own_action_order: all_matter,
        has_density: all_matter,
        reads_global_timestep: all_matter,
    };
    let deviations = agent.deviations(played, targets).into_iter().map(|deviation| {
        let idle = deviation.idle.map(|idle| format!("  changes nothing: {idle}\n"));
        format!("{}\n{}", deviation.difference, idle.unwrap_or_default())
    });
    let targets = agent.differences(trained, targets).into_iter().map(|found| format!("{found}\n"));
    deviations.chain(targets).collect()
}

#[test]
fn all_sentences_match_the_file() {
    let [one, other] = protocols();
    let mut text = format!("{} to {}\n", one.name, other.name);
    text += &sentences(&one, &other, true, &[32.5, 41.0, -1.0]);
    text += &format!("\n{} to {}\n", other.name, one.name);
    text += &sentences(&other, &one, true, &[32.5]);
    text += "\nwhole numbers\n";
    text += &sentences(&one, &other, true, &[32.0]);
    text += "\nan agent that few settings matter to\n";
    text += &sentences(&one, &other, false, &[32.0, 41.0]);
    text += "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differences.txt");
    overtone_testkit::sentences::check_file(&text, &path);
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
