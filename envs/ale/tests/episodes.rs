//! Episodes in the real emulator: seeds, limits, no-ops, lives, and random play.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use overtone_ale::{Ale, AleVectorEnv, ColourScreens, Emulation, Game, ReleasedAle, open};
use overtone_core::protocol::ReturnUnits;
use overtone_core::{Actions, Observations, Outcome, Simulation};
use overtone_env::{Camera, EnvError, Picture, Suite, VectorEnv};
use overtone_eval::{Plan, PlayedEpisode, Player, RandomPolicy, rollout_together};
use overtone_testkit::sentences;

fn game(name: &str) -> &'static Game {
    Game::named(name).unwrap()
}

const OBSERVATION: usize = 4 * 84 * 84;

/// A step's reward, how it ended, and the observation after it.
type Seen = (f32, Option<Outcome>, Vec<u8>);

fn observation(env: &dyn VectorEnv, slot: usize) -> Vec<u8> {
    let Observations::Pixels(pixels) = env.observations() else { unreachable!() };
    pixels[slot * OBSERVATION..(slot + 1) * OBSERVATION].to_vec()
}

/// A fixed sequence of actions: 0, 7, 14, 3, …
fn action(step_idx: usize) -> usize {
    step_idx * 7 % 18
}

/// Plays an episode of at most `steps` steps in `slot`.
fn play(env: &mut dyn VectorEnv, slot: usize, seed: u64, steps: usize) -> Vec<Seen> {
    env.reset(&[slot], &[seed]).unwrap();
    let mut seen = vec![(0.0, None, observation(env, slot))];
    for step_idx in 0..steps {
        let step = env.step(&[slot], &Actions::Discrete(vec![action(step_idx)])).unwrap()[0];
        seen.push((step.reward, step.outcome, observation(env, slot)));
        if step.outcome.is_some() {
            break;
        }
    }
    seen
}

#[track_caller]
fn check_seeds(emulation: &Emulation) {
    let mut one = open(game("seaquest"), emulation, 1).unwrap();
    let alone = play(&mut *one, 0, 9, 60);
    assert_eq!(play(&mut *one, 0, 9, 60), alone, "again in the same environment");
    assert_ne!(play(&mut *one, 0, 10, 60), alone, "another seed is another episode");

    // Other environments start at other times, use other actions, and are reset in between.
    let mut many = open(game("seaquest"), emulation, 4).unwrap();
    many.reset(&[0, 1, 2, 3], &[1, 2, 3, 4]).unwrap();
    many.step(&[0, 1, 2, 3], &Actions::Discrete(vec![1, 2, 3, 4])).unwrap();
    many.reset(&[2, 0], &[9, 5]).unwrap();
    assert_eq!(observation(&*many, 2), alone[0].2);
    for (step_idx, expected) in alone[1..].iter().enumerate() {
        if step_idx == 30 {
            many.reset(&[3], &[9]).unwrap();
        }
        let envs = if step_idx % 3 == 0 { vec![3, 2] } else { vec![0, 2, 3] };
        let actions = envs.iter().map(|&env| if env == 2 { action(step_idx) } else { 5 }).collect();
        let steps = many.step(&envs, &Actions::Discrete(actions)).unwrap();
        let mine = steps[envs.iter().position(|&env| env == 2).unwrap()];
        assert_eq!((mine.reward, mine.outcome), (expected.0, expected.1), "step {step_idx}");
        assert_eq!(observation(&*many, 2), expected.2, "step {step_idx}");
    }
}

#[test]
fn seed_and_actions_determine_an_episode() {
    check_seeds(&Emulation::dqn_replay());
    check_seeds(&Emulation { max_noops: 30, ..Emulation::dqn_replay() });
}

#[test]
fn seed_and_actions_determine_an_episode_from_raw_screens() {
    check_seeds(&Emulation::released());
}

#[test]
fn the_frame_limit_truncates_and_then_a_reset_is_needed() {
    for emulation in [Emulation::dqn_replay(), Emulation::released()] {
        let emulation = Emulation { max_frames: 40, max_noops: 0, ..emulation };
        let mut env = open(game("bank_heist"), &emulation, 1).unwrap();
        let seen = play(&mut *env, 0, 1, 100);
        assert_eq!(seen.len() - 1, 10, "40 raw frames are 10 actions");
        assert_eq!(seen.last().unwrap().1, Some(Outcome::Truncated));
        let error = env.step(&[0], &Actions::Discrete(vec![0])).unwrap_err();
        assert!(matches!(error, EnvError::NoEpisode { env: 0 }));
    }
}

/// The distinct first observations of many seeds.
fn starts(emulation: &Emulation, max_noops: u32) -> BTreeSet<Vec<u8>> {
    let emulation = Emulation { max_noops, ..emulation.clone() };
    let mut env = open(game("seaquest"), &emulation, 1).unwrap();
    let start = |seed| {
        env.reset(&[0], &[seed]).unwrap();
        observation(&*env, 0)
    };
    (0..16).map(start).collect()
}

/// 16 samples miss one of three numbers with a probability of 0.005. The seeds are fixed.
#[test]
fn the_number_of_no_ops_ranges_up_to_the_maximum() {
    for emulation in [Emulation::dqn_replay(), Emulation::released()] {
        let [none, one, two] = [0, 1, 2].map(|max_noops| starts(&emulation, max_noops));
        // Each frame differs from the previous frames, so each number has its own start.
        assert_eq!([none.len(), one.len(), two.len()], [1, 2, 3], "{:?}", emulation.resize);
        assert!(none.is_subset(&one) && one.is_subset(&two));
    }
}

#[test]
fn losing_a_life_ends_the_episode_only_if_set() {
    let emulation = Emulation { terminal_on_life_loss: true, ..Emulation::dqn_replay() };
    let mut short = AleVectorEnv::new(game("seaquest"), &emulation, 1).unwrap();
    let life = play(&mut short, 0, 3, 3000);
    assert_eq!(life.last().unwrap().1, Some(Outcome::Terminated));
    let mut long = AleVectorEnv::new(game("seaquest"), &Emulation::dqn_replay(), 1).unwrap();
    let game = play(&mut long, 0, 3, 3000);
    assert_eq!(game.last().unwrap().1, Some(Outcome::Terminated));
    assert!(game.len() > life.len());
    let n = life.len() - 1;
    assert_eq!(game[..n], life[..n]);
}

#[test]
fn unsupported_combinations_are_rejected() {
    let double = Emulation { double_reset: true, ..Emulation::dqn_replay() };
    let message = open(game("seaquest"), &double, 1).err().unwrap().to_string();
    sentences::check(&message);
    let bilinear = Emulation::released();
    assert!(AleVectorEnv::new(game("seaquest"), &bilinear, 1).is_err());
    assert!(ReleasedAle::new(game("seaquest"), &Emulation::dqn_replay(), 1).is_err());
    let still = Emulation { frame_skip: 0, ..Emulation::dqn_replay() };
    assert!(open(game("seaquest"), &still, 1).is_err());
}

/// Plays random actions in groups of environments with these sizes.
fn random_play(emulation: &Emulation, groups: &[usize], episodes: usize) -> Vec<PlayedEpisode> {
    let mut envs: Vec<_> =
        groups.iter().map(|&n| open(game("seaquest"), emulation, n).unwrap()).collect();
    let mut policy = RandomPolicy::new(envs[0].action_space().clone(), groups.iter().sum());
    let plan = Plan::new(episodes, vec![1.0], 1, ReturnUnits::Clipped);
    let mut go = |_: &overtone_eval::Progress| ControlFlow::Continue(());
    let mut groups: Vec<_> = envs.iter_mut().map(|env| &mut **env).collect();
    let mut players = [Player { policy: &mut policy, plan: &plan }];
    rollout_together(&mut groups, &mut players, &mut go).unwrap().swap_remove(0).episodes
}

#[test]
fn random_play_of_seaquest_scores_about_a_hundred() {
    let episodes = random_play(&Emulation::dqn_replay(), &[20], 40);
    let mean = episodes.iter().map(|e| e.raw_return).sum::<f64>() / 40.0;
    // Each of the first fish gives 20 points: scores are raw, not clipped.
    assert!(episodes.iter().all(|e| e.raw_return % 20.0 == 0.0), "{episodes:?}");
    // 240 episodes gave 79 ± 4 (standard error); these 40 have a standard error of 10.
    assert!((50.0..120.0).contains(&mean), "a mean of {mean}");
    assert!(episodes.iter().all(|e| e.raw_return >= e.clipped_return));
    assert!(episodes.iter().all(|e| e.outcome == Outcome::Terminated));
}

#[test]
fn random_play_does_not_depend_on_the_number_of_environments() {
    let emulation = Emulation { max_frames: 800, ..Emulation::dqn_replay() };
    let expected = random_play(&emulation, &[2], 5);
    // Two and three groups step in parallel.
    for groups in [&[7][..], &[2, 3], &[1, 1, 2]] {
        assert_eq!(random_play(&emulation, groups, 5), expected, "{groups:?}");
    }
}

/// The colour screens show the same episode as the agent's observations.
#[test]
fn colour_screens_follow_the_same_episode() {
    let emulation = Emulation::dqn_replay();
    let mut env = open(game("seaquest"), &emulation, 1).unwrap();
    let mut screens = ColourScreens::new(game("seaquest"), &emulation).unwrap();
    let mut rewards = 0.0;
    for seed in [9, 10, 11] {
        let seen = play(&mut *env, 0, seed, 400);
        screens.reset(seed).unwrap();
        let mut brightness = Vec::new();
        for (step_idx, (reward, outcome, frames)) in seen[1..].iter().enumerate() {
            let step = screens.step(action(step_idx)).unwrap();
            assert_eq!((step.reward, step.outcome), (*reward, *outcome), "step {step_idx}");
            rewards += reward;
            let mean = |bytes: &[u8]| {
                bytes.iter().map(|&byte| f64::from(byte)).sum::<f64>() / bytes.len() as f64
            };
            // The luminance of the whole screen is compared with the grey frame.
            let Picture::Screen { rgb, .. } = screens.picture() else { panic!("no screen") };
            let luminance: Vec<u8> = rgb
                .chunks_exact(3)
                .map(|p| {
                    (0.299 * f64::from(p[0]) + 0.587 * f64::from(p[1]) + 0.114 * f64::from(p[2]))
                        as u8
                })
                .collect();
            brightness.push((mean(&luminance) - mean(&frames[3 * 84 * 84..])).abs());
        }
        let furthest = brightness.into_iter().fold(0.0, f64::max);
        assert!(furthest < 3.0, "{furthest}");
    }
    assert!(rewards > 0.0, "something happened");
    // With an invalid action the emulator would never answer.
    let result = screens.step(18);
    assert!(matches!(result, Err(EnvError::ActionOutOfRange { n_actions: 18, .. })), "{result:?}");
}

/// The file of a checkpoint can contain such settings.
#[test]
fn settings_out_of_range_are_errors() {
    let game = game("seaquest");
    for base in [Emulation::dqn_replay(), Emulation::released()] {
        for (wrong, expected) in [
            (Emulation { max_frames: 0, ..base.clone() }, "a limit of 0 raw frames"),
            (Emulation { frame_skip: 0, ..base.clone() }, "0 raw frames per action"),
            (Emulation { max_noops: u32::MAX, ..base.clone() }, "4294967295 no-ops"),
            (Emulation { sticky_probability: 1.5, ..base.clone() }, "a sticky probability of 1.5"),
        ] {
            let error = open(game, &wrong, 1).err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}

/// If the limit is not a multiple of the frame skip, the last action is cut short but still counts.
#[test]
fn the_horizon_includes_the_action_that_the_limit_cuts_short() {
    let game = game("seaquest");
    for max_frames in [8, 10, 13] {
        let emulation = Emulation { max_frames, ..Emulation::dqn_replay() };
        let horizon = Ale.horizon(&game.task, &Simulation::of(&emulation)).unwrap();
        let mut env = open(game, &emulation, 1).unwrap();
        let seen = play(&mut *env, 0, 1, 20);
        assert_eq!((seen.len() - 1, seen.last().unwrap().1), (horizon, Some(Outcome::Truncated)));
    }
}
