//! Implicit Q-learning on a chain of five states with known values (`chain`).

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod chain;

use burn::{module::Module, tensor::Device};
use chain::{
    GAMMA, RIGHT, STATES, check_optimal, check_resuming, config, learned, listed, numbers,
    observations, real_valued,
};
use overtone_agents::{
    AlgorithmOptions, Iql, IqlConfig, IqlOptions,
    iql::{Continuous, Discrete, GaussianActor, InChunks, StateOf},
    value::{Mlp, Rescaling, policy::Actor},
};
use overtone_core::{ActionSpace, seed};
use overtone_data::Dataset;
use overtone_model::{
    contexts::Observed,
    head::{HeadConfig, LinearConfig},
};
use overtone_train::{Algorithm, optimizer::scalar};

fn algorithm(config: IqlConfig) -> Iql<Continuous> {
    Iql::new(config, Continuous::new(&observations(), &numbers()))
}

fn discrete(config: IqlConfig) -> Iql<Discrete> {
    let head = HeadConfig::Linear(LinearConfig {});
    Iql::new(config, Discrete::new(&observations(), &ActionSpace::numbered(2), head))
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
fn played(actor: &GaussianActor, value: &Mlp, data: &Dataset) -> [Vec<f64>; 2] {
    let rescaling = Rescaling::new(data.normalization(), true);
    let states = chain::states(data, |states| rescaling.apply(states));
    let actions = actor.mean.valid().act(states.clone());
    let values = value.valid().forward(states);
    [actions, values].map(|tensor| tensor.into_data().iter::<f64>().collect())
}

fn of_single(state: &StateOf<Continuous>, data: &Dataset) -> [Vec<f64>; 2] {
    played(&state.actor.network, &state.critics.network.value, data)
}

/// Towards 1, the expectile is the value of the best recorded action, `γ^(4 − s)`.
#[test]
fn with_a_high_expectile_the_actor_walks_right_and_values_are_the_optimum() {
    let data = real_valued(0.0);
    let state = learned(&algorithm(small(0.98, 30.0)), &data, config(4000));
    check_optimal(of_single(&state, &data), 0.08);
}

/// Trajectories that go on after the end of the task have the same values where masks stop backups.
#[test]
fn values_do_not_look_behind_a_mask() {
    let data = chain::going_on(&real_valued(0.0));
    let state = learned(&algorithm(small(0.98, 30.0)), &data, config(4000));
    check_optimal(of_single(&state, &data), 0.08);
}

/// Where the task ends with a chunk's first action, the second one does not matter.
#[test]
fn chunks_of_actions_have_the_same_values() {
    let config_of_two = IqlConfig { chunk_size: 2, ..small(0.98, 30.0) };
    let networks = InChunks::new(&observations(), &numbers().in_chunks(2));
    let data = real_valued(0.0);
    let state = learned(&Iql::new(config_of_two, networks), &data, config(4000));
    let [actions, values] = played(&state.actor.network, &state.critics.network.value, &data);
    let first: Vec<f64> = actions.iter().copied().step_by(2).collect();
    check_optimal([first, values], 0.08);
    let second = actions.iter().skip(1).step_by(2).take(STATES - 1);
    // The mean of the actions in (0, 1), which go right.
    assert!(second.clone().all(|action| (action - 0.5).abs() < 0.1), "{actions:?}");
}

#[test]
fn chunks_are_for_rare_rewards_and_continuous_actions() {
    let chosen = |chunk_size, head, are_rare| {
        let config = IqlConfig { chunk_size, ..IqlConfig::default() };
        IqlOptions { config, head }.for_run(are_rare, 100).config.chunk_size
    };
    let head = || Some(HeadConfig::Linear(LinearConfig {}));
    for (chunk_size, head, are_rare, expected) in [
        (0, None, true, 5),
        (0, None, false, 1),
        (3, None, false, 3),
        (1, None, true, 1),
        (0, head(), true, 1),
    ] {
        assert_eq!(chosen(chunk_size, head, are_rare), expected, "{chunk_size}, rare: {are_rare}");
    }
    for (chunk_size, head, actions) in
        [(2, head(), ActionSpace::numbered(2)), (101, None, numbers())]
    {
        let config = IqlConfig { chunk_size, ..IqlConfig::default() };
        let error = IqlOptions { config, head }.validate(&observations(), &actions).unwrap_err();
        assert!(error.to_string().starts_with("iql.chunk_size = "), "{error}");
    }
}

/// With τ = ½, a state has the value of the recorded policy, which goes left and right with equal
/// probability: `V(s) = ½ γ V(s − 1) + ½ γ V(s + 1)`. In state 0, V(0) replaces V(−1); in state 4,
/// 1 replaces the value after the step to the right. With β = 0 the actor clones the policy: the
/// mean of [-1, 1] is 0.
#[test]
fn with_expectile_one_half_values_equal_the_recorded_policys() {
    let data = real_valued(0.0);
    let state = learned(&algorithm(small(0.5, 0.0)), &data, config(4000));
    let [actions, values] = of_single(&state, &data);
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

/// The probability of walking right in every state, and the state's value.
fn probabilities(state: &StateOf<Discrete>, data: &Dataset) -> [Vec<f64>; 2] {
    let rescaling = Rescaling::new(data.normalization(), true);
    let states = chain::states(data, |states| rescaling.apply(states));
    let states = Observed::Vectors(states.reshape([STATES, 1, STATES]));
    let decisions = state.actor.network.valid().decide(&states).actions().unwrap();
    let values = state.critics.network.value.valid().values(&states);
    let right = (0..STATES).map(|s| decisions.probs(s, 1.0)[usize::from(RIGHT)]).collect();
    [right, values.into_data().iter::<f64>().collect()]
}

/// The recorded policy goes left four times out of five, and left costs two steps.
#[test]
fn discrete_actions_walk_right_and_values_are_the_optimum() {
    let data = listed(0.8, 0.0);
    let state = learned(&discrete(small(0.98, 30.0)), &data, config(4000));
    let [right, values] = probabilities(&state, &data);
    check_optimal([right.into_iter().map(|right| right - 0.5).collect(), values], 0.08);
}

/// With β = 0 the actor clones the recorded policy.
#[test]
fn without_beta_probabilities_equal_the_recorded_policys() {
    let data = listed(0.7, 0.0);
    let state = learned(&discrete(small(0.5, 0.0)), &data, config(2000));
    for (s, right) in probabilities(&state, &data)[0].iter().enumerate() {
        assert!((right - 0.3).abs() < 0.1, "probability {right} of right in state {s}");
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
fn no_checkpoint_of_discrete_actions_is_the_best_either() {
    chain::check_held_out(&discrete(small(0.7, 3.0)), &listed(0.5, 0.25));
}

#[test]
fn resuming_is_never_having_stopped() {
    let options = IqlConfig { scale_rewards: true, ..small(0.7, 3.0) };
    check_resuming(&algorithm(options.clone()), &real_valued(0.0));
    check_resuming(&discrete(options), &listed(0.5, 0.0));
}

#[test]
fn other_options_are_refused() {
    for (key, config) in [
        ("beta", small(0.7, -1.0)),
        ("expectile", small(1.2, 1.0)),
        ("gamma", IqlConfig { gamma: f64::NAN, ..small(0.7, 1.0) }),
        ("hidden", IqlConfig { hidden: 0, ..small(0.7, 1.0) }),
    ] {
        let options = IqlOptions { config, head: None };
        let error = options.validate(&observations(), &numbers()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("iql.{key} = ")), "{error}");
    }
    let linear = || Some(HeadConfig::Linear(LinearConfig {}));
    for (head, actions, expected) in [
        (
            linear(),
            numbers(),
            "head = linear: must not be set, because the task's actions are continuous",
        ),
        (
            None,
            ActionSpace::numbered(2),
            "head = none: must be set, because the task's actions are discrete",
        ),
    ] {
        let options = IqlOptions { config: small(0.7, 1.0), head };
        let error = options.validate(&observations(), &actions).unwrap_err().to_string();
        assert_eq!(error, expected);
    }
}
