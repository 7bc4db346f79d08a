//! ReBRAC on a chain of five states with known values (`chain`): the optimum is to walk right,
//! `Q*(s, right) = γ^(4 − s)`.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod chain;

use chain::{
    GAMMA, STATES, check_optimal, check_resuming, config, learned, numbers, observations, played,
    real_valued,
};
use overtone_agents::{AlgorithmOptions, Rebrac, RebracConfig};

fn algorithm(config: RebracConfig) -> Rebrac {
    Rebrac::new(config, &observations(), &numbers())
}

fn small(actor_penalty: f64, critic_penalty: f64) -> RebracConfig {
    RebracConfig {
        actor_penalty,
        critic_penalty,
        gamma: GAMMA,
        target_rate: 0.02,
        target_noise: 0.05,
        hidden: 32,
        normalize: false,
        ..RebracConfig::default()
    }
}

#[test]
fn with_small_penalties_the_actor_walks_right_and_its_values_are_the_optimum() {
    let data = real_valued(0.0);
    let state = learned(&algorithm(small(1e-3, 0.0)), &data, config(3000));
    check_optimal(played(&state, &data, false), 0.05);
}

/// Recorded actions are spread evenly over [-1, 1]: the closest to all of them is 0.
#[test]
fn with_a_large_penalty_the_actor_takes_the_recorded_actions() {
    let data = real_valued(0.0);
    let state = learned(&algorithm(small(100.0, 0.0)), &data, config(1000));
    let [actions, _] = played(&state, &data, false);
    assert!(actions.iter().all(|action| action.abs() < 0.2), "{actions:?}");
}

/// A penalty on next actions lowers values if the actor's actions differ from the recorded ones.
#[test]
fn the_critics_penalty_lowers_values() {
    let data = real_valued(0.0);
    let values = |penalty| {
        let state = learned(&algorithm(small(1e-3, penalty)), &data, config(1000));
        let [_, values] = played(&state, &data, false);
        values
    };
    let (without, with) = (values(0.0), values(0.1));
    // After state 4's step to the right, the task has ended.
    assert!((0..STATES - 1).all(|s| with[s] < without[s] - 0.02), "{with:?} {without:?}");
}

#[test]
fn targets_are_longer_where_rewards_are_rare() {
    for (n_steps, are_rare, expected) in [(0, true, 5), (0, false, 1), (3, true, 3), (1, true, 1)] {
        let config = RebracConfig { n_steps, ..RebracConfig::default() };
        let fitted = config.for_rewards(are_rare);
        assert_eq!(fitted.n_steps, expected, "{n_steps}, rare: {are_rare}");
        assert_eq!(RebracConfig { n_steps, ..fitted }, config);
    }
}

#[test]
fn resuming_is_never_having_stopped() {
    check_resuming(&algorithm(small(0.01, 0.01)), &real_valued(0.0));
}

#[test]
fn other_options_are_refused() {
    for (key, config) in [
        ("actor_penalty", small(-1.0, 0.0)),
        ("critic_penalty", small(0.0, f64::NAN)),
        ("gamma", RebracConfig { gamma: 1.5, ..small(0.0, 0.0) }),
    ] {
        let error = config.validate(&observations(), &numbers()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("rebrac.{key} = ")), "{error}");
    }
}
