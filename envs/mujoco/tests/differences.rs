//! Every sentence about what is played otherwise than trained, as users read it, of a robot.

#![allow(clippy::unwrap_used)]

use overtone_core::Task;
use overtone_core::protocol::{ActionChoice, Play, Trained};
use overtone_env::Suite;
use overtone_mujoco::{Mujoco, Revision, Robot, RobotSimulation, SETTINGS};

fn task(name: &str) -> Task {
    Robot::named(name).unwrap().task.clone()
}

/// Two protocols that have no setting in common.
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

/// What is said of an agent that every setting matters to, or of one that only those matter to
/// which matter to all.
fn told(trained: &Play, played: &Play, all_matter: bool, targets: &[f32]) -> String {
    let agent = Trained {
        play: trained.clone(),
        // HalfCheetah cannot fall: its revisions are the same.
        task: task(if all_matter { "hopper" } else { "halfcheetah" }),
        settings: SETTINGS,
        returns: Some([0.0, 40.5]),
        reads_returns: all_matter,
        own_action_order: all_matter,
        has_density: all_matter,
        reads_global_timestep: all_matter,
    };
    let told = agent.deviations(played, targets).into_iter().map(|deviation| {
        let idle = deviation.idle.map(|idle| format!("  changes nothing: {idle}\n"));
        format!("{}\n{}", deviation.difference, idle.unwrap_or_default())
    });
    let targets = agent.differences(trained, targets).into_iter().map(|found| format!("{found}\n"));
    told.chain(targets).collect()
}

#[test]
fn sentences_stay_what_they_are() {
    let [one, other] = protocols();
    let mut sentences = format!("{} to {}\n", one.name, other.name);
    sentences += &told(&one, &other, true, &[32.5, 41.0, -1.0]);
    sentences += &format!("\n{} to {}\n", other.name, one.name);
    sentences += &told(&other, &one, true, &[32.5]);
    sentences += "\nwhole numbers\n";
    sentences += &told(&one, &other, true, &[32.0]);
    sentences += "\nan agent that few settings matter to\n";
    sentences += &told(&one, &other, false, &[32.0, 41.0]);
    sentences += "\n";
    assert!(sentences == include_str!("differences.txt"), "now:\n{sentences}");
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
