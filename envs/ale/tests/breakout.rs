//! Breakout: a game whose four actions are not the emulator's first four.

#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;

use overtone_ale::{Ale, Emulation, Game, open};
use overtone_core::{ActionSpace, Actions, Observations};
use overtone_env::{EnvError, Suite, VectorEnv};
use overtone_eval::{Plan, Player, RandomPolicy, rollout_together};

fn breakout() -> &'static Game {
    Game::named("breakout").unwrap()
}

fn screen(env: &dyn VectorEnv) -> Vec<u8> {
    let Observations::Pixels(pixels) = env.observations() else { unreachable!() };
    pixels[3 * 84 * 84..].to_vec()
}

/// Mean column of the pixels in the paddle's row that are brighter than the background.
fn paddle(screen: &[u8]) -> f64 {
    // The paddle is in raw rows 189 to 192 of 210, between the walls.
    let row = &screen[76 * 84..77 * 84];
    let bright: Vec<f64> = (6..78).filter(|&x| row[x] > 40).map(|x| x as f64).collect();
    assert!(!bright.is_empty(), "no paddle in {row:?}");
    bright.iter().sum::<f64>() / bright.len() as f64
}

#[test]
fn the_four_actions_match_their_names() {
    assert_eq!(breakout().action_ids, [0, 1, 3, 4]);
    let ActionSpace::Discrete { names } = &breakout().task.actions else { panic!("discrete") };
    assert_eq!(names, &["NOOP", "FIRE", "RIGHT", "LEFT"]);
    let exact = Emulation { sticky_probability: 0.0, ..Emulation::dqn_replay() };
    let released = Emulation { max_noops: 0, ..Emulation::released() };
    for emulation in [exact, released] {
        let mut places = [0.0; 3];
        for (place, action) in places.iter_mut().zip([3, 0, 2]) {
            let mut env = open(breakout(), &emulation, 1).unwrap();
            env.reset(&[0], &[1]).unwrap();
            for _ in 0..8 {
                env.step(&[0], &Actions::Discrete(vec![action])).unwrap();
            }
            *place = paddle(&screen(&*env));
        }
        let [left, still, right] = places;
        let shown = format!("{left} {still} {right}, {:?}", emulation.resize);
        assert!(left + 5.0 < still && still + 5.0 < right, "{shown}");
        let mut env = open(breakout(), &emulation, 1).unwrap();
        env.reset(&[0], &[1]).unwrap();
        let error = env.step(&[0], &Actions::Discrete(vec![4])).unwrap_err();
        assert!(matches!(error, EnvError::ActionOutOfRange { n_actions: 4, .. }), "{error}");
    }
}

#[test]
fn random_play_scores_are_near_the_published_score() {
    let task = Ale.task("BreakOut").unwrap();
    let mut env = Ale.open(task, &task.simulation, 10).unwrap();
    env.reset(&[0], &[1]).unwrap();
    for step in 0..50 {
        env.step(&[0], &Actions::Discrete(vec![step % 4])).unwrap();
    }
    let mut policy = RandomPolicy::new(env.action_space().clone(), 10);
    let return_units = task.return_units;
    let plan = Plan::new(20, vec![1.0], 1, return_units);
    let mut players = [Player { policy: &mut policy, plan: &plan }];
    let mut go = |_: &overtone_eval::Progress| ControlFlow::Continue(());
    let played = rollout_together(&mut [env.as_mut()], &mut players, &mut go).unwrap();
    let scores: Vec<f64> = played[0].episodes.iter().map(|e| e.raw_return).collect();
    let mean = scores.iter().sum::<f64>() / scores.len() as f64;
    // Wang et al. report 1.7, without sticky actions. Twenty episodes have an error of 0.3.
    assert!((0.5..3.0).contains(&mean), "a mean of {mean}: {scores:?}");
    let reference = task.reference.as_ref().unwrap();
    assert_eq!((reference.normalize(1.7), reference.normalize(30.5)), (0.0, 100.0));
    let normalized = reference.normalize(mean);
    assert!(normalized.abs() < 5.0, "{normalized}");
}
