//! Observation, reward and health of a robot, as Gymnasium 1.4.0 computes them.
//!
//! A state is the positions, then the velocities. Position 0 is where the robot is along the
//! track, 1 its height, 2 its torso's angle.

use overtone_core::protocol::Revision;

use crate::Task;

/// What being healthy earns in each step.
const HEALTHY_REWARD: f64 = 1.0;
/// Velocities are shown within these bounds, but HalfCheetah's, which are shown as they are.
const SHOWN_VELOCITY: f64 = 10.0;

/// Writes the observation of `state`: the positions but the first, then the velocities.
///
/// # Shapes
/// - `state`: `[n_positions + n_velocities]`
/// - `row`: `[observation_width]`
pub(crate) fn observe(task: Task, state: &[f64], row: &mut [f64]) {
    row.copy_from_slice(&state[1..]);
    if task != Task::HalfCheetah {
        for velocity in &mut row[task.n_positions() - 1..] {
            *velocity = velocity.clamp(-SHOWN_VELOCITY, SHOWN_VELOCITY);
        }
    }
}

/// Whether the robot has not fallen. Comparisons with a number that is not finite fail, as in
/// Gymnasium.
pub(crate) fn is_healthy(task: Task, state: &[f64]) -> bool {
    let within = |low: f64, value: f64, high: f64| low < value && value < high;
    let (height, angle) = (state[1], state[2]);
    match task {
        Task::HalfCheetah => true,
        Task::Hopper => {
            within(0.7, height, f64::INFINITY)
                && within(-0.2, angle, 0.2)
                && state[2..].iter().all(|&value| within(-100.0, value, 100.0))
        }
        Task::Walker2d => within(0.8, height, 2.0) && within(-1.0, angle, 1.0),
    }
}

/// The reward of one action: the forward speed in m/s, plus 1 for being healthy, minus what
/// the torques cost.
///
/// The cost is of the action as given, even where the motors cut it to [-1, 1]. It is computed
/// in 32 bits: so does Gymnasium, given actions of 32 bits and NumPy 2.
///
/// # Shapes
/// - `before`, `after`: position 0 before and after the action
/// - `action`: `[action_width]`
pub(crate) fn reward(
    task: Task,
    revision: Revision,
    (before, after): (f64, f64),
    action: &[f32],
    healthy: bool,
) -> f64 {
    let seconds = task.timestep() * task.frame_skip() as f64;
    let forward = (after - before) / seconds;
    let cost = cost_weight(task) * action.iter().map(|torque| torque * torque).sum::<f32>();
    forward + healthy_reward(task, revision, healthy) - f64::from(cost)
}

/// Weight of the squared action.
fn cost_weight(task: Task) -> f32 {
    match task {
        Task::HalfCheetah => 0.1,
        Task::Hopper | Task::Walker2d => 1e-3,
    }
}

/// `-v4` rewards every step, the one that ends in a fall too; `-v5` healthy ones.
fn healthy_reward(task: Task, revision: Revision, healthy: bool) -> f64 {
    let rewarded = match (task, revision) {
        (Task::HalfCheetah, _) => false,
        (Task::Hopper | Task::Walker2d, Revision::V4) => true,
        (Task::Hopper | Task::Walker2d, Revision::V5) => healthy,
    };
    if rewarded { HEALTHY_REWARD } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hopper, upright at 1.25 m, with these numbers changed.
    fn hopper(changes: &[(usize, f64)]) -> Vec<f64> {
        let mut state = vec![0.0; 12];
        state[1] = 1.25;
        for &(i, value) in changes {
            state[i] = value;
        }
        state
    }

    #[test]
    fn the_first_position_is_hidden_and_velocities_are_cut() {
        let state = hopper(&[(0, 7.0), (5, 3.0), (6, -12.0), (11, 10.5)]);
        let mut row = vec![0.0; 11];
        observe(Task::Hopper, &state, &mut row);
        assert_eq!(row, [1.25, 0.0, 0.0, 0.0, 3.0, -10.0, 0.0, 0.0, 0.0, 0.0, 10.0]);
        let state: Vec<f64> = (0..18).map(|i| f64::from(i) * 2.0).collect();
        let mut row = vec![0.0; 17];
        observe(Task::HalfCheetah, &state, &mut row);
        assert_eq!(row, state[1..], "HalfCheetah's are shown as they are");
    }

    #[track_caller]
    fn check_health(task: Task, changes: &[(usize, f64)], healthy: bool) {
        assert_eq!(is_healthy(task, &hopper(changes)), healthy, "{task} {changes:?}");
    }

    #[test]
    fn bounds_of_health_are_open() {
        check_health(Task::Hopper, &[], true);
        check_health(Task::Hopper, &[(1, 0.7)], false);
        check_health(Task::Hopper, &[(2, 0.2)], false);
        check_health(Task::Hopper, &[(11, -100.0)], false);
        check_health(Task::Hopper, &[(11, -99.0)], true);
        check_health(Task::Hopper, &[(0, 1e6)], true);
        check_health(Task::Walker2d, &[(1, 0.8)], false);
        check_health(Task::Walker2d, &[(1, 2.0)], false);
        check_health(Task::Walker2d, &[(2, -1.0)], false);
        check_health(Task::Walker2d, &[(11, 1e3)], true);
        check_health(Task::HalfCheetah, &[(1, -9.0), (2, 50.0)], true);
    }

    #[test]
    fn a_state_that_is_not_finite_is_not_healthy() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            check_health(Task::Hopper, &[(1, bad)], false);
            check_health(Task::Hopper, &[(9, bad)], false);
            check_health(Task::Walker2d, &[(1, bad)], false);
            check_health(Task::Walker2d, &[(2, bad)], false);
        }
    }

    #[test]
    fn revisions_differ_in_the_step_of_a_fall() {
        // 0.016 m in 4 · 0.002 s; torques 1, -2, 0 cost 1e-3 · 5.
        let of = |revision, healthy| {
            let action = [1.0, -2.0, 0.0];
            reward(Task::Hopper, revision, (1.0, 1.016), &action, healthy)
        };
        let near = |got: f64, expected: f64| assert!((got - expected).abs() < 1e-9, "{got}");
        near(of(Revision::V4, true), 2.995);
        near(of(Revision::V4, false), 2.995);
        near(of(Revision::V5, true), 2.995);
        near(of(Revision::V5, false), 1.995);
        // 0.5 m in 5 · 0.01 s; 0.1 · 0.25.
        let action = [0.5, 0.0, 0.0, 0.0, 0.0, 0.0];
        near(reward(Task::HalfCheetah, Revision::V5, (-0.5, 0.0), &action, true), 9.975);
    }
}
