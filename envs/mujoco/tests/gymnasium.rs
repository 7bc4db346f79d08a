//! Step-by-step comparison with Gymnasium: starts, observations, rewards and ends of episodes.
//!
//! Gymnasium runs in its own process, with the same library file. The tolerance is zero. The tests
//! print the largest difference of all numbers, which is 0.

#![allow(clippy::unwrap_used)]

mod peer;

use overtone_core::seed::{Generator, generator};
use overtone_core::{Actions, Outcome};
use overtone_env::VectorEnv;
use overtone_mujoco::{MujocoVectorEnv, Revision, Robot, RobotSimulation, open};
use rand::RngExt;

use peer::Gymnasium;

fn robot(name: &str) -> &'static Robot {
    Robot::named(name).unwrap()
}

/// Gymnasium's own limit.
const MAX_STEPS: u32 = 1000;

/// An environment of this crate and the same environment in Gymnasium.
struct Pair {
    ours: MujocoVectorEnv,
    theirs: Gymnasium,
    largest_difference: f64,
}

impl Pair {
    fn new(robot: &'static Robot, revision: Revision) -> Self {
        let ours = open(robot, &RobotSimulation { revision, max_steps: MAX_STEPS }, 1).unwrap();
        Self { ours, theirs: Gymnasium::start(robot, revision, 1), largest_difference: 0.0 }
    }

    #[track_caller]
    fn reset(&mut self, seed: u64) {
        self.ours.reset(&[0], &[seed]).unwrap();
        let theirs = self.theirs.ask(&format!("reset {seed}"));
        self.compare(&theirs);
    }

    #[track_caller]
    fn reset_to(&mut self, positions: &[f64], velocities: &[f64]) {
        self.ours.reset_to(0, positions, velocities).unwrap();
        let theirs = self.theirs.ask(&line("reset_to", [positions, velocities].concat()));
        self.compare(&theirs);
    }

    /// Takes an action in both environments and returns the outcome.
    #[track_caller]
    fn step(&mut self, action: &[f32]) -> Option<Outcome> {
        let actions = Actions::Continuous { width: action.len(), values: action.to_vec() };
        let step = self.ours.step(&[0], &actions).unwrap()[0];
        let theirs = self.theirs.ask(&line("step", action.iter().copied().map(f64::from)));
        let reward_at = self.ours.observation(0).len();
        self.compare(&theirs[..=reward_at]);
        assert_eq!(step.reward, theirs[reward_at] as f32);
        let outcome = match theirs[reward_at + 1..] {
            [1.0, _] => Some(Outcome::Terminated),
            [_, 1.0] => Some(Outcome::Truncated),
            _ => None,
        };
        assert_eq!(step.outcome, outcome);
        outcome
    }

    /// Compares the observation, and the reward after a step.
    #[track_caller]
    fn compare(&mut self, theirs: &[f64]) {
        let ours = [self.ours.observation(0), &[self.ours.reward(0)]].concat();
        assert!(theirs.len() + 1 >= ours.len());
        for (a, b) in ours.iter().zip(theirs) {
            self.largest_difference = self.largest_difference.max((a - b).abs());
        }
        assert_eq!(ours[..theirs.len()], *theirs);
    }
}

/// A command with these numbers, in the fewest digits that round-trip.
fn line(command: &str, numbers: impl IntoIterator<Item = f64>) -> String {
    numbers.into_iter().fold(command.into(), |line, number| format!("{line} {number:?}"))
}

/// A random action. Some numbers exceed the motors' bounds, where the cost is still for the given
/// number.
fn action(robot: &'static Robot, generator: &mut Generator) -> Vec<f32> {
    (0..robot.action_width()).map(|_| generator.random_range(-1.5..1.5)).collect()
}

#[track_caller]
fn check_play(robot: &'static Robot, revision: Revision) {
    let mut pair = Pair::new(robot, revision);
    let mut generator = generator(5, "actions");
    let (mut seed, mut outcomes) = (40, Vec::new());
    pair.reset(seed);
    for _ in 0..MAX_STEPS {
        if let Some(outcome) = pair.step(&action(robot, &mut generator)) {
            outcomes.push(outcome);
            seed += 1;
            pair.reset(seed);
        }
    }
    let expected = match robot.task.name.as_str() {
        "halfcheetah" => Outcome::Truncated,
        _ => Outcome::Terminated,
    };
    assert!(!outcomes.is_empty() && outcomes.iter().all(|&outcome| outcome == expected));
    let (name, episodes) = (robot.gymnasium_id(revision), outcomes.len());
    let difference = pair.largest_difference;
    println!("{name}: {MAX_STEPS} steps, {episodes} episodes, largest difference {difference}");
}

#[test]
fn half_cheetah_v4_equals_gymnasium() {
    check_play(robot("halfcheetah"), Revision::V4);
}

#[test]
fn half_cheetah_v5_equals_gymnasium() {
    check_play(robot("halfcheetah"), Revision::V5);
}

#[test]
fn hopper_v4_equals_gymnasium() {
    check_play(robot("hopper"), Revision::V4);
}

#[test]
fn hopper_v5_equals_gymnasium() {
    check_play(robot("hopper"), Revision::V5);
}

#[test]
fn walker2d_v4_equals_gymnasium() {
    check_play(robot("walker2d"), Revision::V4);
}

#[test]
fn walker2d_v5_equals_gymnasium() {
    check_play(robot("walker2d"), Revision::V5);
}

/// 300 seeds for each robot. HalfCheetah samples 2,700 normal numbers, which cover nearly every layer
/// of the ziggurat.
#[test]
fn episodes_of_equal_seeds_start_like_gymnasium() {
    for robot in Robot::all() {
        let mut pair = Pair::new(robot, Revision::V5);
        (0..298).for_each(|seed| pair.reset(seed));
        pair.reset(1 << 32);
        pair.reset(u64::MAX);
    }
}

/// The states are in the air, rotated and fast, so landings, falls and clipped velocities occur.
#[test]
fn random_states_evolve_like_gymnasium() {
    let mut generator = generator(6, "states");
    for (robot, revision) in [
        (robot("halfcheetah"), Revision::V4),
        (robot("hopper"), Revision::V5),
        (robot("walker2d"), Revision::V5),
    ] {
        let mut pair = Pair::new(robot, revision);
        let mut cut = 0;
        for _ in 0..20 {
            let mut draw = |reach: f64, n: usize| -> Vec<f64> {
                (0..n).map(|_| generator.random_range(-reach..reach)).collect()
            };
            let mut positions = draw(0.15, robot.n_positions());
            positions[1] += 1.5;
            pair.reset_to(&positions, &draw(12.0, robot.n_velocities()));
            for _ in 0..20 {
                let ended = pair.step(&action(robot, &mut generator)).is_some();
                cut += usize::from(pair.ours.state(0).1.iter().any(|v| v.abs() > 10.0));
                if ended {
                    break;
                }
            }
        }
        assert!(cut > 0, "{robot}: some velocities are clipped in observations");
    }
}
