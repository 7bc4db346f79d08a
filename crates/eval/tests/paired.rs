//! Paired differences of two protocols.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::ops::ControlFlow;

use overtone_ale::Game;
use overtone_core::Task;
use overtone_core::protocol::ReturnUnits;
use overtone_env::{Corridor, VectorEnv};
use overtone_eval::statistics::Bootstrap;
use overtone_eval::{
    Evaluation, Plan, RandomPolicy, Setting, UsedSettings, paired_difference, rollout,
};

fn game(name: &str) -> Task {
    Game::named(name).unwrap().task.clone()
}

const QUICK: Bootstrap = Bootstrap { replications: 2000, level: 0.95, seed: 1 };

const TARGET: f32 = 32.0;

/// An evaluation of random actions in a corridor, with its returns replaced by `returns`.
fn evaluation(returns: &[f64]) -> Evaluation {
    let plan = Plan::new(returns.len(), vec![TARGET], 1, ReturnUnits::Clipped);
    let mut env = Corridor::new(4, 6, 12, 0.2);
    let mut policy = RandomPolicy::new(env.action_space().clone(), 4);
    let mut played =
        rollout(&mut env, &mut policy, &plan, &mut |_| ControlFlow::Continue(())).unwrap();
    for (episode, raw_return) in played.episodes.iter_mut().zip(returns) {
        episode.raw_return = *raw_return;
    }
    let setting = Setting {
        task: Task { reference: None, ..game("seaquest") },
        simulator: "a corridor".into(),
        rom_md5: None,
        policy: "uniform random".into(),
        protocol: game("seaquest").matched(None),
        differences: Vec::new(),
        used_settings: UsedSettings::ALL,
        choice: None,
        checkpoint: None,
        dataset_hash: None,
        command: "overtone evaluate rollouts".into(),
    };
    Evaluation::new(setting, &plan, played).unwrap()
}

fn difference(before: &Evaluation, now: &Evaluation) -> Option<String> {
    paired_difference(before, now, TARGET, &QUICK).unwrap()
}

/// A target whose episodes all failed is not in the statistics.
#[test]
fn targets_are_paired_by_their_place_in_the_plan() {
    let mut before = evaluation(&[1.0, 2.0]);
    let mut now = evaluation(&[11.0, 12.0]);
    for evaluation in [&mut before, &mut now] {
        evaluation.target_returns = vec![8.0, TARGET];
    }
    assert!(difference(&before, &now).unwrap().starts_with("+10.0 ["));
    // Of `before`, only another target finished.
    before.episodes.iter_mut().for_each(|episode| episode.target_return = 8.0);
    before.targets[0].target_return = 8.0;
    assert_eq!(difference(&before, &now), None);
    // In another protocol's units.
    before.target_returns = vec![4.0, 8.0];
    assert!(difference(&before, &now).unwrap().starts_with("+10.0 ["));
}

#[test]
fn differences_are_paired_by_episode() {
    // The returns vary widely, but each is higher by 10 or 20: a small interval around 15.
    let matched = evaluation(&[0.0, 1000.0, 500.0, 9000.0]);
    let other = evaluation(&[10.0, 1020.0, 510.0, 9020.0]);
    let text = difference(&matched, &other).unwrap();
    let numbers: Vec<f64> =
        text.split([' ', '[', ',', ']']).filter_map(|number| number.parse().ok()).collect();
    let [value, low, high] = numbers[..] else { panic!("{text}") };
    assert_eq!(value, 15.0);
    assert!((10.0..15.0).contains(&low) && high > 15.0 && high <= 20.0, "{text}");

    // An episode that finished under only one protocol is not in a pair: (10 + 20 + 10) / 3.
    let mut cut = other;
    cut.episodes.remove(3);
    assert!(difference(&matched, &cut).unwrap().starts_with("+13.3 ["));
    cut.episodes.retain(|episode| episode.episode == 0);
    let mut rest = matched;
    rest.episodes.remove(0);
    assert_eq!(difference(&rest, &cut), None);
}

#[test]
fn identical_episodes_are_recognized() {
    let matched = evaluation(&[20.0, 40.0, 0.0]);
    assert_eq!(difference(&matched, &matched).unwrap(), "0: the same episodes");
    let mut longer = matched.clone();
    longer.episodes[1].length += 1;
    assert_eq!(difference(&matched, &longer).unwrap(), "+0.0 [+0.0, +0.0]");
}

#[test]
fn small_differences_keep_their_digits() {
    let [before, now] = [[0.0, 0.0], [0.00002, 0.00002]].map(|returns| evaluation(&returns));
    assert_eq!(difference(&before, &now).unwrap(), "+2.00e-5 [+2.00e-5, +2.00e-5]");
}
