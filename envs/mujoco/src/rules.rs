//! Observation, reward and health of a robot, computed as in Gymnasium 1.4.0.
//!
//! A state contains the positions, then the velocities. Position 0 is the position along the track,
//! 1 the height, and 2 the angle of the torso.

use crate::robot::Healthy;
use crate::{Revision, Robot};

/// Reward of each healthy step.
const HEALTHY_REWARD: f64 = 1.0;

/// Writes the observation of `state`: all positions except the first, then the velocities.
///
/// # Shapes
/// - `state`: `[n_positions + n_velocities]`
/// - `row`: `[observation_width]`
pub(crate) fn observe(robot: &Robot, state: &[f64], row: &mut [f64]) {
    row.copy_from_slice(&state[1..]);
    if let Some(bound) = robot.facts().shown_velocity {
        for velocity in &mut row[robot.n_positions() - 1..] {
            *velocity = velocity.clamp(-bound, bound);
        }
    }
}

/// Whether the robot has not fallen. A non-finite number is not healthy, as in Gymnasium.
pub(crate) fn is_healthy(robot: &Robot, state: &[f64]) -> bool {
    let Some(Healthy { height, angle, others }) = robot.facts().healthy else { return true };
    let within = |[low, high]: [f64; 2], value: f64| low < value && value < high;
    within(height, state[1])
        && within(angle, state[2])
        && others.is_none_or(|bounds| state[2..].iter().all(|&value| within(bounds, value)))
}

/// The reward of one action: the forward speed in m/s, plus 1 if healthy, minus the cost of the
/// torques.
///
/// The cost uses the given action, although the motors clip it to [-1, 1]. It is computed in 32 bits,
/// like Gymnasium with 32-bit actions and NumPy 2.
///
/// # Shapes
/// - `before`, `after`: position 0 before and after the action
/// - `action`: `[action_width]`
pub(crate) fn reward(
    robot: &Robot,
    revision: Revision,
    (before, after): (f64, f64),
    action: &[f32],
    healthy: bool,
) -> f64 {
    let seconds = robot.step_seconds() * robot.action_steps() as f64;
    let forward = (after - before) / seconds;
    let cost = robot.facts().cost_weight * action.iter().map(|torque| torque * torque).sum::<f32>();
    forward + healthy_reward(robot, revision, healthy) - f64::from(cost)
}

/// The reward for health. `-v4` rewards every step of a robot that can fall, including the step of
/// the fall. `-v5` rewards only healthy steps.
fn healthy_reward(robot: &Robot, revision: Revision, healthy: bool) -> f64 {
    let rewarded = robot.facts().healthy.is_some() && (revision == Revision::V4 || healthy);
    if rewarded { HEALTHY_REWARD } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn robot(name: &str) -> &'static Robot {
        Robot::named(name).unwrap()
    }

    /// The state of an upright Hopper at 1.25 m, with these numbers changed.
    fn hopper(changes: &[(usize, f64)]) -> Vec<f64> {
        let mut state = vec![0.0; 12];
        state[1] = 1.25;
        for &(i, value) in changes {
            state[i] = value;
        }
        state
    }

    #[test]
    fn the_first_position_is_hidden_and_velocities_are_clipped() {
        let state = hopper(&[(0, 7.0), (5, 3.0), (6, -12.0), (11, 10.5)]);
        let mut row = vec![0.0; 11];
        observe(robot("hopper"), &state, &mut row);
        assert_eq!(row, [1.25, 0.0, 0.0, 0.0, 3.0, -10.0, 0.0, 0.0, 0.0, 0.0, 10.0]);
        let state: Vec<f64> = (0..18).map(|i| f64::from(i) * 2.0).collect();
        let mut row = vec![0.0; 17];
        observe(robot("halfcheetah"), &state, &mut row);
        assert_eq!(row, state[1..], "HalfCheetah's velocities are not clipped");
    }

    #[track_caller]
    fn check_health(robot: &Robot, changes: &[(usize, f64)], healthy: bool) {
        assert_eq!(is_healthy(robot, &hopper(changes)), healthy, "{robot} {changes:?}");
    }

    #[test]
    fn health_bounds_are_open() {
        check_health(robot("hopper"), &[], true);
        check_health(robot("hopper"), &[(1, 0.7)], false);
        check_health(robot("hopper"), &[(2, 0.2)], false);
        check_health(robot("hopper"), &[(11, -100.0)], false);
        check_health(robot("hopper"), &[(11, -99.0)], true);
        check_health(robot("hopper"), &[(0, 1e6)], true);
        check_health(robot("walker2d"), &[(1, 0.8)], false);
        check_health(robot("walker2d"), &[(1, 2.0)], false);
        check_health(robot("walker2d"), &[(2, -1.0)], false);
        check_health(robot("walker2d"), &[(11, 1e3)], true);
        check_health(robot("halfcheetah"), &[(1, -9.0), (2, 50.0)], true);
    }

    #[test]
    fn a_non_finite_state_is_not_healthy() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            check_health(robot("hopper"), &[(1, bad)], false);
            check_health(robot("hopper"), &[(9, bad)], false);
            check_health(robot("walker2d"), &[(1, bad)], false);
            check_health(robot("walker2d"), &[(2, bad)], false);
        }
    }

    #[test]
    fn revisions_differ_in_the_step_of_a_fall() {
        // 0.016 m in 4 · 0.002 s; torques 1, -2, 0 cost 1e-3 · 5.
        let hopper = |revision, healthy| {
            let action = [1.0, -2.0, 0.0];
            reward(robot("hopper"), revision, (1.0, 1.016), &action, healthy)
        };
        let near = |got: f64, expected: f64| assert!((got - expected).abs() < 1e-9, "{got}");
        near(hopper(Revision::V4, true), 2.995);
        near(hopper(Revision::V4, false), 2.995);
        near(hopper(Revision::V5, true), 2.995);
        near(hopper(Revision::V5, false), 1.995);
        // 0.5 m in 5 · 0.01 s; 0.1 · 0.25.
        let action = [0.5, 0.0, 0.0, 0.0, 0.0, 0.0];
        near(reward(robot("halfcheetah"), Revision::V5, (-0.5, 0.0), &action, true), 9.975);
    }
}
