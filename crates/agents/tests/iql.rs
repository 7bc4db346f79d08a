//! Implicit Q-learning on a chain of five states with known values (`chain`).

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod chain;

use burn::{module::Module, tensor::Device};
use chain::{
    GAMMA, STATES, check_optimal, check_resuming, config, learned, numbers, observations,
    real_valued,
};
use overtone_agents::{AlgorithmOptions, Iql, IqlConfig, iql::IqlState, value::Rescaling};
use overtone_core::seed;
use overtone_data::Dataset;
use overtone_train::{Algorithm, optimizer::scalar};

fn algorithm(config: IqlConfig) -> Iql {
    Iql::new(config, &observations(), &numbers())
}

fn small(expectile: f64, beta: f64) -> IqlConfig {
    IqlConfig {
        expectile,
        beta,
        gamma: GAMMA,
        target_rate: 0.02,
        hidden: 32,
        scale_rewards: false,
        ..IqlConfig::default()
    }
}

/// The action in every state, and the state's value.
fn played(state: &IqlState, data: &Dataset) -> [Vec<f64>; 2] {
    let rescaling = Rescaling::new(data.normalization(), true);
    let states = chain::states(data, |states| rescaling.apply(states));
    let actions = state.actor.network.mean.valid().act(states.clone());
    let values = state.critics.network.value.valid().forward(states);
    [actions, values].map(|tensor| tensor.into_data().iter::<f64>().collect())
}

/// Towards 1, the expectile is the value of the best recorded action, `γ^(4 − s)`.
#[test]
fn with_a_high_expectile_the_actor_walks_right_and_values_are_the_optimum() {
    let data = real_valued(0.0);
    let state = learned(&algorithm(small(0.98, 30.0)), &data, config(4000));
    check_optimal(played(&state, &data), 0.08);
}

/// With τ = ½, a state has the value of the recorded policy, which goes left and right with equal
/// probability: `V(s) = ½ γ V(s − 1) + ½ γ V(s + 1)`. In state 0, V(0) replaces V(−1); in state 4,
/// 1 replaces the value after the step to the right. With β = 0 the actor clones the policy: the
/// mean of [-1, 1] is 0.
#[test]
fn with_expectile_one_half_values_equal_the_recorded_policys() {
    let data = real_valued(0.0);
    let state = learned(&algorithm(small(0.5, 0.0)), &data, config(4000));
    let [actions, values] = played(&state, &data);
    let mut expected = [0.0f64; STATES];
    for _ in 0..1000 {
        let before = expected;
        for s in 0..STATES {
            let left = GAMMA * before[s.saturating_sub(1)];
            let right = if s + 1 == STATES { 1.0 } else { GAMMA * before[s + 1] };
            expected[s] = 0.5 * (left + right);
        }
    }
    for (s, (action, value)) in actions.into_iter().zip(values).enumerate() {
        println!("state {s}: action {action:.3}, value {value:.3}, exact {:.3}", expected[s]);
        assert!(action.abs() < 0.2, "action {action} in state {s}");
        assert!((value - expected[s]).abs() < 0.05, "V({s}) = {value}, not {}", expected[s]);
    }
}

/// The chain's episodes have returns 0 or 1, so rewards are multiplied by a thousand.
#[test]
fn rewards_are_scaled_by_the_returns_of_the_data() {
    let data = real_valued(0.0);
    assert_eq!(data.episode_returns().ends(), Some([0.0, 1.0]));
    let scaled = IqlConfig { scale_rewards: true, ..small(0.7, 0.0) };
    let short = config(1);
    let loss = |config: IqlConfig| chain::first_loss(&algorithm(config), &data, short.clone());
    let (plain, scaled) = (loss(small(0.7, 0.0)), loss(scaled));
    // Before the first step, values are near zero: the loss is nearly the square of the rewards.
    assert!(scaled / plain > 1e5 && scaled / plain < 1e6 * 1.5, "{scaled} {plain}");
}

/// The training loop checks only the critics' loss and gradient norm.
#[test]
fn a_broken_actor_is_reported_in_the_same_step() {
    let (data, algorithm) = (real_valued(0.0), algorithm(small(0.7, 3.0)));
    let (device, steps) = (Device::flex().autodiff(), chain::steps(&data));
    let mut whole = algorithm.init(&config(1), &device, &mut seed::generator(5, "init")).unwrap();
    let mut broken = whole.clone();
    broken.actor.network = chain::broken(broken.actor.network);
    let figures = algorithm.learn(&mut broken, &steps, [1e-3, 1e-3]);
    assert!(scalar(figures.loss).is_finite() && scalar(figures.grad_norm).is_nan());
    let figures = algorithm.learn(&mut whole, &steps, [1e-3, 1e-3]);
    assert!(scalar(figures.loss).is_finite() && scalar(figures.grad_norm).is_finite());
}

#[test]
fn no_checkpoint_is_the_best_by_errors_of_values() {
    chain::check_held_out(&algorithm(small(0.7, 3.0)), &real_valued(0.25));
}

#[test]
fn resuming_is_never_having_stopped() {
    let options = IqlConfig { scale_rewards: true, ..small(0.7, 3.0) };
    check_resuming(&algorithm(options), &real_valued(0.0));
}

#[test]
fn other_options_are_refused() {
    for (key, config) in [
        ("beta", small(0.7, -1.0)),
        ("expectile", small(1.2, 1.0)),
        ("gamma", IqlConfig { gamma: f64::NAN, ..small(0.7, 1.0) }),
        ("hidden", IqlConfig { hidden: 0, ..small(0.7, 1.0) }),
    ] {
        let error = config.validate(&observations(), &numbers()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("iql.{key} = ")), "{error}");
    }
}
