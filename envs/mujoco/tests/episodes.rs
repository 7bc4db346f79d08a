//! Episodes without Python: batches, limits, falls and errors.

#![allow(clippy::unwrap_used)]

use overtone_core::{Actions, Observations, Outcome};
use overtone_env::{ActionSpace, EnvError, ObservationSpace, VectorEnv};
use overtone_mujoco::{MujocoError, MujocoVectorEnv, Revision, Robot, RobotSimulation, open};
use overtone_testkit::sentences;

fn robot(name: &str) -> &'static Robot {
    Robot::named(name).unwrap()
}

/// A step's reward, how it ended, and the observation after it.
type Seen = (f32, Option<Outcome>, Vec<f32>);

fn simulation(max_steps: u32) -> RobotSimulation {
    RobotSimulation { revision: Revision::V4, max_steps }
}

fn observation(env: &MujocoVectorEnv, slot: usize) -> Vec<f32> {
    let Observations::Vectors(rows) = env.observations() else { unreachable!() };
    let width = env.robot().observation_width();
    rows[slot * width..(slot + 1) * width].to_vec()
}

/// A fixed action for each step.
fn action(robot: &'static Robot, step_idx: usize) -> Vec<f32> {
    (0..robot.action_width()).map(|i| ((step_idx * 7 + i * 3) as f32).sin()).collect()
}

fn actions(robot: &'static Robot, rows: &[Vec<f32>]) -> Actions {
    Actions::Continuous { width: robot.action_width(), values: rows.concat() }
}

/// Plays an episode of at most `steps` steps in `slot`.
fn play(env: &mut MujocoVectorEnv, slot: usize, seed: u64, steps: usize) -> Vec<Seen> {
    let robot = env.robot();
    env.reset(&[slot], &[seed]).unwrap();
    let mut seen = vec![(0.0, None, observation(env, slot))];
    for step_idx in 0..steps {
        let step = env.step(&[slot], &actions(robot, &[action(robot, step_idx)])).unwrap()[0];
        seen.push((step.reward, step.outcome, observation(env, slot)));
        if step.outcome.is_some() {
            break;
        }
    }
    seen
}

#[test]
fn seed_and_actions_determine_an_episode() {
    for robot in Robot::all() {
        let mut one = open(robot, &simulation(1000), 1).unwrap();
        let alone = play(&mut one, 0, 9, 60);
        assert!(alone.len() > 5);
        assert_eq!(play(&mut one, 0, 9, 60), alone, "again in the same environment");
        assert_ne!(play(&mut one, 0, 10, 60), alone, "another seed is another episode");

        // Other environments start at other times, use other actions, and fall in between.
        let mut many = open(robot, &simulation(1000), 7).unwrap();
        many.reset(&[0, 1, 2, 3, 4, 5, 6], &[1, 2, 3, 4, 5, 6, 7]).unwrap();
        many.step(&[0, 2], &actions(robot, &[action(robot, 50), action(robot, 60)])).unwrap();
        many.reset(&[2, 0], &[9, 5]).unwrap();
        assert_eq!(observation(&many, 2), alone[0].2);
        for (step_idx, expected) in alone[1..].iter().enumerate() {
            many.reset(&[1, 4], &[step_idx as u64, 9]).unwrap();
            let envs = if step_idx % 3 == 0 { vec![4, 2] } else { vec![1, 2, 4] };
            let chosen = |env: &usize| action(robot, if *env == 2 { step_idx } else { 100 + env });
            let rows: Vec<Vec<f32>> = envs.iter().map(chosen).collect();
            let steps = many.step(&envs, &actions(robot, &rows)).unwrap();
            let mine = steps[envs.iter().position(|&env| env == 2).unwrap()];
            assert_eq!((mine.reward, mine.outcome), (expected.0, expected.1), "step {step_idx}");
            assert_eq!(observation(&many, 2), expected.2, "step {step_idx}");
        }
    }
}

#[test]
fn the_limit_truncates_and_then_a_reset_is_needed() {
    let mut env = open(robot("halfcheetah"), &simulation(12), 1).unwrap();
    for seed in [1, 2] {
        let seen = play(&mut env, 0, seed, 100);
        assert_eq!(seen.len() - 1, 12);
        assert_eq!(seen.last().unwrap().1, Some(Outcome::Truncated));
        let error = env.step(&[0], &actions(robot("halfcheetah"), &[vec![0.0; 6]])).unwrap_err();
        assert!(matches!(error, EnvError::NoEpisode { env: 0 }));
    }
    assert!(matches!(open(robot("hopper"), &simulation(0), 1), Err(MujocoError::NoSteps)));
}

#[test]
fn a_fall_terminates_even_at_the_limit() {
    let mut env = open(robot("hopper"), &simulation(1000), 1).unwrap();
    let seen = play(&mut env, 0, 3, 1000);
    assert_eq!(seen.last().unwrap().1, Some(Outcome::Terminated));
    let steps = seen.len() - 1;
    let mut env = open(robot("hopper"), &simulation(steps as u32), 1).unwrap();
    assert_eq!(play(&mut env, 0, 3, 1000), seen);
}

#[test]
fn spaces_match_the_task() {
    for (robot, observation, action) in
        [(robot("halfcheetah"), 17, 6), (robot("hopper"), 11, 3), (robot("walker2d"), 17, 6)]
    {
        let env = open(robot, &simulation(10), 2).unwrap();
        assert_eq!(env.n_envs(), 2);
        assert_eq!(env.observation_space(), &ObservationSpace::Vectors { width: observation });
        assert_eq!(env.action_space(), &ActionSpace::unit(action));
        let Observations::Vectors(rows) = env.observations() else { unreachable!() };
        assert_eq!(rows, vec![0.0; 2 * observation]);
    }
}

#[track_caller]
fn rejected<T>(result: Result<T, EnvError>, message: &str) {
    let error = result.map(drop).unwrap_err().to_string();
    assert!(error.contains(message), "{error}");
}

#[test]
fn invalid_calls_are_errors_and_change_nothing() {
    let mut env = open(robot("hopper"), &simulation(10), 3).unwrap();
    let still = |n: usize| actions(robot("hopper"), &vec![vec![0.0; 3]; n]);
    rejected(env.step(&[0], &still(1)), "environment 0 has no active episode");
    rejected(env.reset(&[0, 3], &[1, 2]), "environment 3 does not exist");
    rejected(env.reset(&[0, 0], &[1, 2]), "environment 0 is named twice");
    rejected(env.reset(&[0], &[1, 2]), "2 seeds for 1 environments");
    env.reset(&[0, 1], &[1, 2]).unwrap();
    let before = env.state(0).0.to_vec();
    rejected(env.step(&[0, 1], &still(1)), "1 actions for 2 environments");
    rejected(env.step(&[0], &Actions::Discrete(vec![1])), "the environment takes vectors of 3");
    let wide = Actions::Continuous { width: 6, values: vec![0.0; 6] };
    rejected(env.step(&[0], &wide), "the actions are vectors of 6 numbers");
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let rows = [vec![0.0; 3], vec![0.0, bad, 0.0]];
        let result = env.step(&[0, 1], &actions(robot("hopper"), &rows));
        rejected(result, "the action for environment 1 has a number that is not finite");
    }
    assert_eq!(env.state(0).0, before);
    env.step(&[0, 1], &still(2)).unwrap();
}

#[test]
fn an_episode_starts_in_a_given_state() {
    let mut env = open(robot("walker2d"), &simulation(10), 2).unwrap();
    let positions = [3.0, 1.3, 0.1, -0.2, -0.3, 0.4, -0.5, -0.6, 0.7];
    let velocities = [1.0, 0.0, 0.0, 0.0, 20.0, 0.0, 0.0, 0.0, -0.5];
    env.reset_to(1, &positions, &velocities).unwrap();
    assert_eq!(env.state(1), (&positions[..], &velocities[..]));
    assert_eq!(env.observation(1)[..2], [1.3, 0.1]);
    assert_eq!(env.observation(1)[12], 10.0, "velocities are clipped in observations");
    env.step(&[1], &actions(robot("walker2d"), &[vec![0.0; 6]])).unwrap();
    assert!(env.state(1).0[0] > 3.0);

    rejected(env.reset_to(2, &positions, &velocities), "environment 2");
    rejected(env.reset_to(0, &positions[1..], &velocities), "got 8 and 9 numbers");
    rejected(env.reset_to(0, &[f64::NAN; 9], &velocities), "a number that is not finite");
}

/// MuJoCo resets such a robot, and Gymnasium continues.
#[test]
fn a_diverging_simulation_ends_only_its_own_episode() {
    for robot in Robot::all() {
        let mut env = open(robot, &simulation(100), 3).unwrap();
        let mut alone = open(robot, &simulation(100), 1).unwrap();
        env.reset(&[0, 2], &[1, 2]).unwrap();
        alone.reset(&[0], &[2]).unwrap();
        let mut positions = vec![0.0; robot.n_positions()];
        positions[1] = 1.25;
        env.reset_to(1, &positions, &vec![1e11; robot.n_velocities()]).unwrap();
        let row = action(robot, 4);
        let all = |n| Actions::Continuous { width: row.len(), values: row.repeat(n) };
        let error = env.step(&[0, 1, 2], &all(3)).unwrap_err();
        sentences::check(&error.to_string());
        let EnvError::Partly { failures, steps } = error else { panic!("{error}") };
        assert_eq!(failures.iter().map(|failure| failure.env).collect::<Vec<_>>(), [1]);

        // The other environments took their step and return its result.
        let step = alone.step(&[0], &all(1)).unwrap()[0];
        assert_eq!(steps.iter().map(|(env, _)| *env).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(steps[1].1, step);
        assert_eq!(env.reward(2) as f32, step.reward);
        assert_eq!(observation(&env, 2), observation(&alone, 0));
        rejected(env.step(&[0, 1], &all(2)), "environment 1 has no active episode");
        env.step(&[0, 2], &all(2)).unwrap();
        env.reset(&[1], &[2]).unwrap();
        env.step(&[1], &all(1)).unwrap();
        assert_eq!(observation(&env, 1), observation(&alone, 0), "no state of it remains");
    }
}
