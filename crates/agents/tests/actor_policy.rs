//! Agents that act with an actor: each alone and in any batch, after a start, within [-1, 1].

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use burn::tensor::{Device, TensorData};
use overtone_agents::{
    ActingNetwork, PolicyParts,
    acting::Draw,
    value::{Mlp, StepPolicy, network::Hidden, policy::Actor, steps::Rescaling},
};
use overtone_core::{
    ActionSpace, Actions, Normalization, ObservationSpace, Observations, Policy, Task, Turn,
    policy::EpisodeStart, seed,
};
use overtone_model::{
    contexts::Observed,
    head::{Decisions, LogitsDecisions},
    init::Init,
    weights::{self, NamedTensors},
};
use overtone_testkit::sentences;

const WIDTH: usize = 11;
const ACTION: usize = 3;
const HIDDEN: Hidden = Hidden { n_layers: 2, width: 256, has_norms: false };

fn weights() -> NamedTensors {
    weights_of(ACTION)
}

fn weights_of(width: usize) -> NamedTensors {
    let mut generator = seed::generator(1, "init");
    let mut init = Init::drawn(&Device::flex(), &mut generator);
    weights::export(&Mlp::init([WIDTH, width], HIDDEN, &mut init))
}

fn policy(weights: &NamedTensors) -> Result<Box<dyn Policy>, String> {
    policy_of(weights, ACTION, 1)
}

/// A policy of `width` numbers, chosen in chunks.
fn policy_of(
    weights: &NamedTensors,
    width: usize,
    chunk_size: usize,
) -> Result<Box<dyn Policy>, String> {
    let normalization = Normalization { mean: vec![0.5; WIDTH], std: vec![2.0; WIDTH] };
    let task =
        Task::own("actor", ObservationSpace::Vectors { width: WIDTH }, ActionSpace::unit(width));
    let parts = PolicyParts {
        task: &task,
        weights,
        normalization: Some(&normalization),
        play: &task.matched(None),
        device: &Device::flex(),
    };
    let network =
        ActingNetwork::Tanh { prefix: "", hidden: HIDDEN, is_normalized: true, chunk_size };
    network.policy(&parts).map_err(|error| error.to_string())
}

fn turn(agent: usize, is_first: bool) -> Turn {
    let start = is_first.then_some(EpisodeStart { seed: agent as u64, target_return: 0.0 });
    Turn { agent, reward: 0.0, start }
}

fn observation(agent: usize) -> Vec<f32> {
    (0..WIDTH).map(|i| ((agent * WIDTH + i) as f32 * 0.7).sin() * 3.0).collect()
}

fn numbers(actions: Actions) -> Vec<f32> {
    match actions {
        Actions::Continuous { width, values } => {
            assert_eq!(width, ACTION);
            values
        }
        Actions::Discrete(_) => panic!("real-valued actions"),
    }
}

#[test]
fn an_agent_takes_the_same_actions_in_any_batch() {
    let n = 150;
    let turns: Vec<Turn> = (0..n).map(|agent| turn(agent, true)).collect();
    let all: Vec<f32> = (0..n).flat_map(observation).collect();
    let together =
        numbers(policy(&weights()).unwrap().act(&turns, Observations::Vectors(&all)).unwrap());
    assert!(together.iter().all(|number| number.abs() <= 1.0));
    for companions in [1, 2, 7, 64, 65] {
        for first in [0, 70] {
            let turns: Vec<Turn> = (first..first + companions).map(|a| turn(a, true)).collect();
            let seen: Vec<f32> = (first..first + companions).flat_map(observation).collect();
            let mut policy = policy(&weights()).unwrap();
            let few = numbers(policy.act(&turns, Observations::Vectors(&seen)).unwrap());
            let expected = &together[first * ACTION..][..companions * ACTION];
            assert!(few == expected, "{companions} agents from {first}");
        }
    }
}

/// Two agents of which one starts a step later, and starts again within its second chunk.
#[test]
fn a_chunk_is_played_one_action_at_a_time() {
    let weights = weights_of(3 * ACTION);
    let mut at_once = policy_of(&weights, 3 * ACTION, 1).unwrap();
    let mut chunk = |seen: usize| match at_once
        .act(&[turn(0, true)], Observations::Vectors(&observation(seen)))
        .unwrap()
    {
        Actions::Continuous { values, .. } => values,
        Actions::Discrete(_) => panic!("real-valued actions"),
    };
    let mut one_by_one = policy_of(&weights, ACTION, 3).unwrap();
    // For each step the agents with their starts, and where each reads: the observation of which
    // step, and the place in its chunk.
    let steps: [&[(usize, bool, usize, usize)]; 6] = [
        &[(0, true, 0, 0)],
        &[(1, true, 1, 0), (0, false, 0, 1)],
        &[(0, false, 0, 2), (1, false, 1, 1)],
        &[(0, false, 3, 0), (1, false, 1, 2)],
        &[(1, false, 4, 0), (0, false, 3, 1)],
        &[(0, true, 5, 0), (1, false, 4, 1)],
    ];
    for (step, agents) in steps.iter().enumerate() {
        let turns: Vec<Turn> =
            agents.iter().map(|&(agent, first, ..)| turn(agent, first)).collect();
        let seen: Vec<f32> =
            agents.iter().flat_map(|&(agent, ..)| observation(10 * step + agent)).collect();
        // A call that fails plays nothing.
        let wrong = vec![f32::NAN; seen.len()];
        assert!(one_by_one.act(&turns, Observations::Vectors(&wrong)).is_err());
        let got = numbers(one_by_one.act(&turns, Observations::Vectors(&seen)).unwrap());
        for (action, &(agent, _, of, place)) in got.chunks_exact(ACTION).zip(*agents) {
            assert_eq!(action, &chunk(10 * of + agent)[place * ACTION..][..ACTION], "{step}");
        }
    }
    let error = one_by_one.act(&[turn(2, false)], Observations::Vectors(&observation(0)));
    assert!(error.is_err(), "agent 2 has no episode");
}

#[test]
fn what_cannot_be_played_is_refused() {
    let mut policy = policy(&weights()).unwrap();
    let seen = observation(0);
    let mut act = |turns: &[Turn], seen: &[f32]| {
        policy.act(turns, Observations::Vectors(seen)).map(numbers).map_err(|e| e.to_string())
    };
    let error = act(&[turn(0, false)], &seen).unwrap_err();
    sentences::check(&error);
    assert!(act(&[turn(0, true)], &seen[1..]).is_err());
    assert_eq!(act(&[], &[]).unwrap(), Vec::<f32>::new());
    assert_eq!(act(&[turn(0, true)], &seen), act(&[turn(0, false)], &seen));
}

/// Scores each action by a number of the observation; large ones overflow.
struct Echo;

impl Actor for Echo {
    fn decide(&self, observed: &Observed) -> Decisions {
        let Observed::Vectors(vectors) = observed else { panic!("vectors") };
        Decisions::Actions(LogitsDecisions::of(vectors.clone().flatten(0, 1) * 4.0))
    }
}

/// The second of two agents fails in every second call. Neither draw changes, and no episode starts.
#[test]
fn a_failed_call_draws_nothing() {
    let task = Task::own("echo", ObservationSpace::Vectors { width: 3 }, ActionSpace::numbered(3));
    let weights = NamedTensors::new();
    let parts = PolicyParts {
        task: &task,
        weights: &weights,
        normalization: None,
        play: &task.matched(None),
        device: &Device::flex(),
    };
    for draw in [Draw::Greedy { epsilon: 0.7 }, Draw::Softmax { temperature: 1.0 }] {
        let new = || StepPolicy::new(Echo, &parts, Rescaling::new(None, true), Some(draw));
        let (mut plain, mut disturbed) = (new(), new());
        let seen = Observations::Vectors(&[0.0, 0.5, 0.2, 0.1, 0.0, 0.4]);
        let huge = Observations::Vectors(&[0.0, 0.5, 0.2, 0.1, f32::MAX, 0.4]);
        for step in 0..40 {
            let turns = [0, 1].map(|agent| turn(agent, step % 10 == 0));
            let error = disturbed.act(&turns, huge).unwrap_err().to_string();
            assert!(error.contains("the scores for agent 1"), "{error}");
            assert_eq!(disturbed.act(&turns, seen).unwrap(), plain.act(&turns, seen).unwrap());
            assert_eq!(disturbed.played(), plain.played());
        }
    }
}

#[test]
fn weights_of_another_actor_are_refused() {
    let mut others = weights();
    others.insert("another".into(), TensorData::from([1.0f32]));
    assert!(policy(&others).err().unwrap().contains("another"));
    let mut others = weights();
    others.remove("layers.0.bias");
    assert!(policy(&others).err().unwrap().contains("layers.0.bias"));
    let mut others = weights();
    let nan = vec![f32::NAN; ACTION];
    others.insert("layers.2.bias".into(), TensorData::new(nan, [ACTION]));
    let mut policy = policy(&others).unwrap();
    let error = policy.act(&[turn(0, true)], Observations::Vectors(&observation(0))).unwrap_err();
    sentences::check(&error.to_string());
}
