//! ReBRAC on a chain of five states with known values (`chain`): the optimum is to walk right,
//! `Q*(s, right) = γ^(4 − s)`.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod chain;

use burn::{module::Module, tensor::Tensor};
use chain::{GAMMA, STATES, check_resuming, config, learned, numbers, observations, real_valued};
use overtone_agents::{
    AlgorithmOptions, Rebrac, RebracConfig,
    value::{ActorCritic, Rescaling, twin::concat},
};
use overtone_data::Dataset;

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

/// The action in every state, and its value by the smaller critic.
fn played(state: &ActorCritic, data: &Dataset) -> (Vec<f64>, Vec<f64>) {
    let rescaling = Rescaling::new(data.normalization(), false);
    let states = chain::states(data, |states| rescaling.apply(states));
    let actions = state.actor.network.valid().act(states.clone());
    let values = state.critics.network.valid().smaller(concat(states, actions.clone()));
    let numbers = |tensor: Tensor<2>| tensor.into_data().iter::<f64>().collect();
    (numbers(actions), numbers(values))
}

#[test]
fn with_small_penalties_the_actor_walks_right_and_its_values_are_the_optimum() {
    let data = real_valued(0.0);
    let state = learned(&algorithm(small(1e-3, 0.0)), &data, config(3000));
    let (actions, values) = played(&state, &data);
    for (s, (action, value)) in actions.into_iter().zip(values).enumerate() {
        let expected = GAMMA.powi((STATES - 1 - s) as i32);
        println!("state {s}: action {action:.3}, value {value:.3}, optimum {expected:.3}");
        assert!(action > 0.0, "action {action} in state {s}");
        assert!((value - expected).abs() < 0.05, "Q({s}, right) = {value}, not {expected}");
    }
}

/// Recorded actions are spread evenly over [-1, 1]: the closest to all of them is 0.
#[test]
fn with_a_large_penalty_the_actor_takes_the_recorded_actions() {
    let data = real_valued(0.0);
    let state = learned(&algorithm(small(100.0, 0.0)), &data, config(1000));
    let (actions, _) = played(&state, &data);
    assert!(actions.iter().all(|action| action.abs() < 0.2), "{actions:?}");
}

/// A penalty on next actions lowers values if the actor's actions differ from the recorded ones.
#[test]
fn the_critics_penalty_lowers_values() {
    let data = real_valued(0.0);
    let values = |penalty| {
        let state = learned(&algorithm(small(1e-3, penalty)), &data, config(1000));
        played(&state, &data).1
    };
    let (without, with) = (values(0.0), values(0.1));
    // After state 4's step to the right, the task has ended.
    assert!((0..STATES - 1).all(|s| with[s] < without[s] - 0.02), "{with:?} {without:?}");
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
