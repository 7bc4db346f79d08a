//! Comparison of a figure's capsules with MuJoCo's kinematics.

#![allow(clippy::unwrap_used)]

mod peer;

use overtone_core::seed::generator;
use overtone_mujoco::{Figure, Revision, Robot};
use rand::RngExt;

use peer::Gymnasium;

fn robot(name: &str) -> &'static Robot {
    Robot::named(name).unwrap()
}

/// MuJoCo rotates by quaternions, and our code by angles. The largest difference seen is 2e-15.
const TOLERANCE: f64 = 1e-12;

#[track_caller]
fn check(robot: &'static Robot, revision: Revision) {
    let figure = Figure::load(robot, revision).unwrap();
    let mut theirs = Gymnasium::start(robot, revision, 1);
    let mut generator = generator(3, "positions");
    let mut largest = 0.0_f64;
    for _ in 0..20 {
        let n = robot.n_positions();
        let positions: Vec<f64> = (0..n).map(|_| generator.random_range(-2.0..2.0)).collect();
        let state = positions.iter().copied().chain((0..robot.n_velocities()).map(|_| 0.0));
        let order = state.fold("reset_to".to_owned(), |line, x| format!("{line} {x:?}"));
        theirs.ask(&order);
        let theirs = theirs.ask("capsules");
        let ours = figure.capsules(&positions);
        assert_eq!(ours.len() * 5, theirs.len());
        for (capsule, theirs) in ours.iter().zip(theirs.chunks_exact(5)) {
            let mut ends = capsule.ends;
            // The order of the two ends is up to MuJoCo.
            if (ends[0][0] - theirs[0]).abs() + (ends[0][1] - theirs[1]).abs() > TOLERANCE {
                ends.reverse();
            }
            let ours = [ends[0][0], ends[0][1], ends[1][0], ends[1][1], capsule.radius];
            for (a, b) in ours.iter().zip(theirs) {
                largest = largest.max((a - b).abs());
            }
        }
    }
    println!("{}: largest difference {largest:e}", robot.gymnasium_id(revision));
    assert!(largest < TOLERANCE, "{largest:e}");
}

#[test]
fn limb_positions_equal_mujoco() {
    for robot in [robot("halfcheetah"), robot("hopper"), robot("walker2d")] {
        check(robot, Revision::V4);
    }
    check(robot("walker2d"), Revision::V5);
}

#[test]
fn every_motor_has_a_name() {
    let names = |robot| Figure::load(robot, Revision::V4).unwrap().motors().join(", ");
    assert_eq!(names(robot("hopper")), "thigh, leg, foot");
    assert_eq!(names(robot("halfcheetah")), "bthigh, bshin, bfoot, fthigh, fshin, ffoot");
    assert_eq!(names(robot("walker2d")), "thigh, leg, foot, thigh left, leg left, foot left");
}
