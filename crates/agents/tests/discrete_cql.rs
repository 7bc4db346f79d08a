//! Conservative Q-learning on a chain of five states with known values.
//!
//! `left` goes one state down from state 0 to 4 (and stays in 0), `right` one up. `right` in state
//! 4 has the reward 1 and ends the task. With discount γ the optimum is to walk right:
//! `Q*(s, right) = γ^(4 − s)`. A step to the left costs two steps: `Q*(s, left) = γ^(6 − s)`,
//! except in state 0, where it costs one: `γ^5`.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod chain;

use burn::tensor::Device;
use chain::{GAMMA, STATES, check_resuming, config, learned, listed};
use overtone_agents::{
    AlgorithmOptions, DiscreteCql, DiscreteCqlConfig, PolicyParts, discrete_cql::DiscreteCqlState,
    value::QNetwork,
};
use overtone_core::{
    ActionSpace, Actions, Observations, Play, Task, Turn, policy::EpisodeStart,
    protocol::ActionChoice,
};
use overtone_data::Dataset;
use overtone_model::contexts::Observed;
use overtone_train::{Export, Precision, TrainConfig};

fn algorithm(config: DiscreteCqlConfig) -> DiscreteCql {
    DiscreteCql {
        config,
        observations: chain::observations(),
        actions: ActionSpace::Discrete { names: vec!["left".into(), "right".into()] },
    }
}

fn small(alpha: f64) -> DiscreteCqlConfig {
    let sizes = DiscreteCqlConfig { quantiles: 8, hidden: 32, ..DiscreteCqlConfig::default() };
    DiscreteCqlConfig { alpha, gamma: GAMMA, target_every: 50, ..sizes }
}

/// `Q(s, ·)` of every state.
fn values(state: &DiscreteCqlState, data: &Dataset) -> Vec<[f64; 2]> {
    let states = chain::states(data, |_| ()).reshape([STATES, 1, STATES]);
    let online = burn::module::Module::valid(&state.online.network);
    let values = online.values(&Observed::Vectors(states)).into_data();
    values.iter().collect::<Vec<f64>>().as_chunks::<2>().0.to_vec()
}

#[test]
fn without_conservatism_the_values_are_the_optimum() {
    let data = listed(0.5, 0.0);
    let state = learned(&algorithm(small(0.0)), &data, config(3000));
    for (s, [left, right]) in values(&state, &data).into_iter().enumerate() {
        let power = |n: usize| GAMMA.powi(n as i32);
        let expected = [power(if s == 0 { 5 } else { 6 - s }), power(4 - s)];
        assert!((left - expected[0]).abs() < 0.03, "Q({s}, left) = {left}, not {}", expected[0]);
        assert!((right - expected[1]).abs() < 0.03, "Q({s}, right) = {right}, not {}", expected[1]);
    }
}

#[test]
fn with_a_large_alpha_the_agent_takes_the_recorded_actions() {
    let data = listed(0.8, 0.0);
    let state = learned(&algorithm(small(100.0)), &data, config(300));
    for [left, right] in values(&state, &data) {
        assert!(left > right, "{left} {right}");
    }
}

/// Networks, target and moments.
#[test]
fn resuming_is_never_having_stopped() {
    let algorithm = algorithm(DiscreteCqlConfig { target_every: 5, ..small(1.0) });
    check_resuming(&algorithm, &listed(0.5, 0.0));
}

/// For importance weights and for recordings.
#[test]
fn the_probabilities_of_its_draws_are_known() {
    let data = listed(0.5, 0.0);
    let config = DiscreteCqlConfig { epsilon: 0.3, ..small(1.0) };
    let state = learned(&algorithm(config.clone()), &data, chain::config(50));
    let task = Task::own("chain", chain::observations(), ActionSpace::numbered(2));
    let weights = state.export_model();
    let parts = PolicyParts {
        task: &task,
        weights: &weights,
        normalization: data.normalization(),
        play: &Play { action_choice: ActionChoice::Sample, ..task.matched(None) },
        device: &Device::flex(),
    };
    let mut policy = config.network().policy(&parts).unwrap();
    assert!(policy.played().is_some(), "a recording asks before the first action");
    let n = 4000;
    let start = |agent| Some(EpisodeStart { seed: agent as u64, target_return: 0.0 });
    let turns: Vec<Turn> =
        (0..n).map(|agent| Turn { agent, reward: 0.0, start: start(agent) }).collect();
    let seen = [1.0, 0.0, 0.0, 0.0, 0.0].repeat(n);
    let Actions::Discrete(drawn) = policy.act(&turns, Observations::Vectors(&seen)).unwrap() else {
        panic!("discrete actions")
    };
    let played = policy.played().unwrap();
    assert_eq!((played.probs.len(), played.actions), (2 * n, &[0, 1][..]));
    let mut probs = played.probs[..2].to_vec();
    let share = drawn.iter().filter(|&&action| action == 1).count() as f64 / n as f64;
    // Four standard deviations.
    assert!((share - probs[1]).abs() < 0.023, "{share} {probs:?}");
    probs.sort_by(f64::total_cmp);
    assert!((probs[0] - 0.15).abs() < 1e-12 && (probs[1] - 0.85).abs() < 1e-12, "{probs:?}");
}

/// The target is the network at the time of the last copy, and changes with each copy.
#[test]
fn the_target_moves_every_n_steps() {
    let data = listed(0.5, 0.0);
    let every = |target_every| DiscreteCqlConfig { target_every, ..small(1.0) };
    let weights = |network: &QNetwork| overtone_model::weights::export(network);
    let after = |n, target_every| learned(&algorithm(every(target_every)), &data, config(n));
    let mut seen = Vec::new();
    // So long that 3 steps are no more than a tenth.
    for n in 27..=35 {
        let target = weights(&after(n, 3).target.network);
        let copied = n - n % 3;
        if copied > 0 {
            assert_eq!(target, weights(&after(copied, 3).online.network), "{n}");
        }
        if !seen.contains(&target) {
            seen.push(target);
        }
    }
    // The copies after 27, 30 and 33 steps.
    assert_eq!(seen.len(), 3);
    // A tenth of 9 updates is one.
    let short = after(9, 500);
    assert_eq!(weights(&short.target.network), weights(&short.online.network));
}

/// A copy is also due at a step whose batch has no target.
#[test]
fn the_target_moves_at_steps_that_learn_nothing() {
    let data = chain::cut_short(&listed(0.5, 0.0));
    let algorithm = algorithm(DiscreteCqlConfig { target_every: 3, ..small(1.0) });
    let weights = |network: &QNetwork| overtone_model::weights::export(network);
    let after = |n| learned(&algorithm, &data, TrainConfig { batch_size: 1, ..config(n) });
    let mut n_idle = 0;
    for n in (27..60).step_by(3) {
        let state = after(n);
        assert_eq!(weights(&state.target.network), weights(&state.online.network), "{n}");
        n_idle +=
            usize::from(weights(&after(n - 1).online.network) == weights(&state.target.network));
    }
    assert!(n_idle > 0, "every copy was due at a step with a target");
}

#[test]
fn no_checkpoint_is_the_best_by_errors_of_values() {
    chain::check_held_out(&algorithm(small(1.0)), &listed(0.5, 0.25));
}

#[test]
fn mixed_precision_applies_to_vectors_too() {
    let data = listed(0.5, 0.0);
    let [exact, mixed] = [Precision::F32, Precision::Bf16].map(|precision| {
        let config = TrainConfig { precision, ..config(1) };
        chain::first_loss(&algorithm(small(1.0)), &data, config)
    });
    assert_ne!(exact, mixed);
    assert!((exact - mixed).abs() < 0.02 * exact, "{exact} {mixed}");
}

#[test]
fn other_actions_and_options_are_refused() {
    let refused = |config: DiscreteCqlConfig, actions: &ActionSpace, expected: &str| {
        let error = config.validate(&chain::observations(), actions).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    let listed = algorithm(small(0.0)).actions;
    refused(
        small(0.0),
        &ActionSpace::unit(3),
        "algorithm = discrete_cql: the task's actions are continuous",
    );
    refused(small(-1.0), &listed, "discrete_cql.alpha = -1: ");
    refused(DiscreteCqlConfig { gamma: 1.5, ..small(0.0) }, &listed, "discrete_cql.gamma = 1.5: ");
    refused(DiscreteCqlConfig { epsilon: -0.5, ..small(0.0) }, &listed, "discrete_cql.epsilon = ");
    refused(
        DiscreteCqlConfig { quantiles: 0, ..small(0.0) },
        &listed,
        "discrete_cql.quantiles = 0",
    );
}
