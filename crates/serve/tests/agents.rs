//! Exported agents against the policies of the library: the same actions and draws.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use overtone_agents::{
    ActingNetwork, Agent as Described, AlgorithmConfig, BehaviorCloningConfig,
    DecisionTransformerOptions, DiscreteCqlConfig, IqlConfig, IqlOptions, RebracConfig, RvsConfig,
    Td3BcConfig,
    acting::Draw,
    iql::CategoricalActor,
    value::{Mlp, QNetwork},
};
use overtone_core::{
    ActionSpace, Actions, Normalization, ObservationSpace, Observations, Play, Task, Turn,
    policy::EpisodeStart, protocol::ActionChoice, seed,
};
use overtone_model::{
    AttentionConfig, ConditionerConfig, DecisionTransformerConfig, FourierKernel, Init, Model,
    ModelConfig, PerceptronConfig,
    burn::tensor::{Device, TensorData},
    head::{FourierHeadConfig, HeadConfig, LinearConfig, TanhConfig},
    weights::{self, NamedTensors},
};
use overtone_serve::{Action, Agent, Error};
use rand::RngExt;

const WIDTH: usize = 5;
const STEPS: usize = 30;

/// Bounds of every kind: usual, wide, without one or both ends, and equal.
fn continuous() -> ActionSpace {
    ActionSpace::Continuous {
        low: vec![-1.0, -2.0, 0.0, f32::NEG_INFINITY, 3.0],
        high: vec![1.0, 6.0, f32::MAX, f32::INFINITY, 3.0],
    }
}

fn drawn<T>(draw: impl FnOnce(&mut Init<'_>) -> T) -> T {
    let mut generator = seed::generator(4, "init");
    draw(&mut Init::drawn(&Device::flex(), &mut generator))
}

/// An agent with the weights of its initialisation.
fn described(actions: &ActionSpace, algorithm: AlgorithmConfig) -> (Described, NamedTensors) {
    let observations = ObservationSpace::Vectors { width: WIDTH };
    let sizes = (&observations, actions);
    let weights = drawn(|init| match algorithm.network() {
        ActingNetwork::Sequence(model) => {
            weights::export(&Model::init(&model, sizes.0, actions, init).unwrap())
        }
        ActingNetwork::Tanh { prefix, hidden, chunk_size, .. } => {
            let widths = [WIDTH, actions.size() * chunk_size];
            let actor = weights::export(&Mlp::init(widths, hidden, init));
            actor.into_iter().map(|(name, data)| (format!("{prefix}{name}"), data)).collect()
        }
        ActingNetwork::Categorical { hidden, head, .. } => {
            weights::export(&CategoricalActor::init(sizes, hidden, head, init).unwrap())
        }
        ActingNetwork::Quantiles { hidden, n_quantiles, .. } => {
            let outputs = [actions.size(), n_quantiles];
            weights::export(&QNetwork::init(sizes.0, hidden, outputs, init).unwrap())
        }
    });
    let agent = Described {
        task: Task::own("served", observations, actions.clone()),
        dataset: String::new(),
        algorithm,
        normalization: Some(Normalization { mean: vec![0.3; WIDTH], std: vec![2.0; WIDTH] }),
        return_scale: 7.0,
        delayed_reward: false,
        recording: None,
        needs_action_mask: false,
    };
    (agent, weights)
}

fn about(play: &Play, is_discrete: bool, greedy: f64) -> String {
    about_chunks(play, is_discrete, greedy, 1)
}

fn about_chunks(play: &Play, is_discrete: bool, greedy: f64, chunk_size: usize) -> String {
    let choice = match (is_discrete, play.action_choice) {
        (true, ActionChoice::Sample) => "sample",
        _ => "mode",
    };
    let temperature = if greedy > 0.0 { 1e30 } else { play.acting.temperature };
    format!(
        r#"{{"format": 1, "target_return": 20, "delayed_reward": {}, "clip_rewards": false,
        "choice": "{choice}", "greedy": {greedy}, "temperature": {temperature},
        "chunk_size": {chunk_size}}}"#,
        play.delayed_reward
    )
}

/// Two episodes by both, in which another action is taken at every third step.
#[track_caller]
fn check(actions: &ActionSpace, algorithm: AlgorithmConfig, play: impl FnOnce(Play) -> Play) {
    let (agent, weights) = described(actions, algorithm);
    let is_discrete = matches!(actions, ActionSpace::Discrete { .. });
    let matched = Play { return_scale: agent.return_scale, ..agent.task.matched(None) };
    let play = play(if is_discrete {
        matched
    } else {
        Play { action_choice: ActionChoice::Mode, ..matched }
    });
    let greedy = match agent.algorithm.network().draw(&play) {
        Some(Draw::Greedy { epsilon }) => 1.0 - epsilon,
        _ => 0.0,
    };
    let graph = overtone_onnx::export(&agent, &weights, &play, "test").unwrap();
    let chunk_size = agent.algorithm.network().chunk_size();
    let about = about_chunks(&play, is_discrete, greedy, chunk_size);
    let mut served = Agent::load(&graph, &about).unwrap();
    let mut policy = agent.policy(&weights, &play, &Device::flex()).unwrap();
    let what = agent.algorithm.describe();
    for episode in [3u64, 8] {
        served.begin(episode, None).unwrap();
        for step in 0..STEPS {
            let number =
                |i: usize| (((step * WIDTH + i) as f32 + episode as f32) * 0.7).sin() * 2.0;
            let observation: Vec<f32> = (0..WIDTH).map(number).collect();
            let reward = (step as f32 * 0.3).cos();
            let start = EpisodeStart { seed: episode, target_return: 20.0 };
            let turn = Turn { agent: 0, reward, start: (step == 0).then_some(start) };
            // A mask at every other step: the actions but one or two.
            let is_allowed = |action: usize| action % 3 != step % 3;
            let mask: Vec<bool> = (0..actions.size()).map(is_allowed).collect();
            let is_masked = is_discrete && step % 2 == 1;
            if is_masked {
                policy.allow(mask.clone()).unwrap();
                served.allow(&mask).unwrap();
            }
            let ours = policy.act(&[turn], Observations::Vectors(&observation)).unwrap();
            // Calls that fail leave nothing behind.
            served.act(&observation, f32::NAN).unwrap_err();
            served.act(&[f32::NAN; WIDTH], reward).unwrap_err();
            served.begin(7, Some(f32::NAN)).unwrap_err();
            served.took(&Action::Index(99)).unwrap_err();
            served.took(&Action::Numbers(vec![3e38; actions.size()])).unwrap_err();
            let theirs = served.act(&observation, reward).unwrap();
            let other = match (&ours, &theirs) {
                (Actions::Discrete(ours), Action::Index(theirs)) => {
                    assert_eq!(ours[0], *theirs, "{what}: step {step}");
                    assert!(!is_masked || mask[*theirs], "{what}: step {step}");
                    Action::Index(step % actions.size())
                }
                (Actions::Continuous { values, .. }, Action::Numbers(theirs)) => {
                    for (ours, theirs) in values.iter().zip(theirs) {
                        assert!((ours - theirs).abs() <= 1e-5, "{what}: {ours} {theirs}");
                    }
                    Action::Numbers(values.iter().map(|x| x * 0.9).collect())
                }
                _ => panic!("{what}: actions of two kinds"),
            };
            let taken = match &other {
                Action::Index(index) => Actions::Discrete(vec![*index]),
                Action::Numbers(values) => {
                    Actions::Continuous { width: values.len(), values: values.clone() }
                }
            };
            if step % 3 == 0 {
                policy.took(&[turn], &taken).unwrap();
                served.took(&other).unwrap();
            }
        }
    }
}

fn transformer(head: HeadConfig, attention: AttentionConfig) -> AlgorithmConfig {
    AlgorithmConfig::DecisionTransformer(DecisionTransformerOptions(DecisionTransformerConfig {
        n_layers: 2,
        n_heads: 2,
        d_model: 16,
        context_length: 4,
        head,
        attention,
        ..DecisionTransformerConfig::gym(100)
    }))
}

fn fourier() -> AttentionConfig {
    AttentionConfig::Fourier(FourierKernel::default())
}

#[test]
fn every_head_and_attention_of_continuous_actions() {
    for bins in [0, 11] {
        for head in HeadConfig::choices(&continuous(), bins) {
            for attention in [AttentionConfig::SOFTMAX, fourier()] {
                check(&continuous(), transformer(head.config.clone(), attention), |play| play);
            }
        }
    }
}

#[test]
fn every_head_of_discrete_actions_draws_the_same() {
    let actions = ActionSpace::numbered(4);
    for head in HeadConfig::choices(&actions, 0) {
        for temperature in [1.0, 0.25] {
            let algorithm = transformer(head.config.clone(), AttentionConfig::SOFTMAX);
            check(&actions, algorithm, |mut play| {
                play.acting.temperature = temperature;
                play
            });
        }
    }
}

#[test]
fn every_algorithm() {
    let (numbers, list) = (continuous(), ActionSpace::numbered(4));
    let cloning = PerceptronConfig { context_length: 3, width: 16, ..PerceptronConfig::gym() };
    let rvs = RvsConfig(PerceptronConfig { width: 16, ..PerceptronConfig::rvs(100) });
    let iql = |head| AlgorithmConfig::Iql(IqlOptions { config: IqlConfig::default(), head });
    let in_chunks = IqlConfig { chunk_size: 3, ..IqlConfig::default() };
    for algorithm in [
        AlgorithmConfig::BehaviorCloning(BehaviorCloningConfig(ModelConfig::Perceptron(cloning))),
        AlgorithmConfig::Rvs(rvs),
        AlgorithmConfig::Td3Bc(Td3BcConfig::default()),
        AlgorithmConfig::Rebrac(RebracConfig::default()),
        iql(None),
        AlgorithmConfig::Iql(IqlOptions { config: in_chunks, head: None }),
    ] {
        check(&numbers, algorithm, |play| play);
    }
    let often = DiscreteCqlConfig { epsilon: 0.3, ..DiscreteCqlConfig::default() };
    for algorithm in [
        AlgorithmConfig::DiscreteCql(often),
        iql(Some(HeadConfig::Linear(LinearConfig {}))),
        iql(Some(HeadConfig::Fourier(FourierHeadConfig::new(2)))),
    ] {
        check(&list, algorithm, |play| play);
    }
}

#[test]
fn a_top_percent_replaces_the_return() {
    let AlgorithmConfig::DecisionTransformer(mut options) =
        transformer(HeadConfig::Tanh(TanhConfig {}), fourier())
    else {
        unreachable!()
    };
    options.0.conditioning =
        Some(ConditionerConfig { top_percents: vec![10.0, 100.0], ..ConditionerConfig::default() });
    for percent in [0.0, 100.0] {
        check(&continuous(), AlgorithmConfig::DecisionTransformer(options.clone()), |mut play| {
            play.acting.top_percent = percent;
            play
        });
    }
}

/// The files of an agent.
fn files() -> (Vec<u8>, String) {
    let algorithm = transformer(HeadConfig::Linear(LinearConfig {}), AttentionConfig::SOFTMAX);
    let (agent, weights) = described(&ActionSpace::numbered(3), algorithm);
    let play = agent.task.matched(None);
    let graph = overtone_onnx::export(&agent, &weights, &play, "test").unwrap();
    (graph, about(&play, true, 0.0))
}

/// A model that overflows: nothing of the failed step is left, and no number is drawn.
#[test]
fn a_failed_step_changes_nothing() {
    let actions = ActionSpace::numbered(4);
    let algorithm = transformer(HeadConfig::Linear(LinearConfig {}), AttentionConfig::SOFTMAX);
    let (agent, mut weights) = described(&actions, algorithm);
    for (_, data) in weights.iter_mut().filter(|(name, _)| name.contains("encoder.")) {
        let scaled: Vec<f32> = data.iter::<f32>().map(|weight| 100.0 * weight).collect();
        *data = TensorData::new(scaled, data.shape().to_vec());
    }
    let play = Play { return_scale: agent.return_scale, ..agent.task.matched(None) };
    let graph = overtone_onnx::export(&agent, &weights, &play, "test").unwrap();
    let [mut plain, mut disturbed] =
        [0, 1].map(|_| Agent::load(&graph, &about(&play, true, 0.0)).unwrap());
    plain.begin(1, None).unwrap();
    disturbed.begin(1, None).unwrap();
    for step in 0..12 {
        let error = disturbed.act(&[f32::MAX; WIDTH], 1.0).unwrap_err();
        assert!(matches!(error, Error::NotFinite(_)), "{error}");
        let seen: [f32; WIDTH] = std::array::from_fn(|i| ((step * WIDTH + i) as f32).sin());
        assert_eq!(disturbed.act(&seen, 1.0).unwrap(), plain.act(&seen, 1.0).unwrap(), "{step}");
    }
}

/// Wrong calls are refused with a sentence, and the agent stays usable.
#[test]
fn wrong_calls_are_refused() {
    let (graph, about) = files();
    let mut agent = Agent::load(&graph, &about).unwrap();
    let refused = |result: Result<Action, Error>, expected: &str| {
        assert_eq!(result.unwrap_err().to_string(), expected);
    };
    let seen = [0.5; WIDTH];
    refused(agent.act(&seen, 0.0), "begin() starts an episode; call it first");
    assert!(agent.begin(1, Some(f32::NAN)).is_err());
    agent.begin(1, None).unwrap();
    refused(agent.act(&seen[1..], 0.0), "an observation of 4 numbers, expected 5");
    let not_finite = "the observation or the reward is not a finite number";
    refused(agent.act(&[f32::NAN; WIDTH], 0.0), not_finite);
    refused(agent.act(&seen, f32::INFINITY), not_finite);
    let error = agent.took(&Action::Index(0)).unwrap_err();
    assert_eq!(error.to_string(), "act() chooses an action; call it before took()");
    assert!(agent.took(&Action::Index(3)).is_err());
    assert!(agent.took(&Action::Numbers(vec![0.0])).is_err());
    for mask in [&[true; 2][..], &[false; 3]] {
        assert!(agent.allow(mask).is_err());
    }
    let action = agent.act(&seen, 0.0).unwrap();
    agent.begin(1, None).unwrap();
    assert_eq!(agent.act(&seen, 0.0).unwrap(), action, "nothing of the wrong calls is left");
}

/// An agent that was trained with masks acts only with them, and each holds for one step.
#[test]
fn needed_masks_hold_for_one_step() {
    let (graph, about) = files();
    let about = about.replacen('{', r#"{"needs_action_mask": true, "#, 1);
    let mut agent = Agent::load(&graph, &about).unwrap();
    agent.begin(1, None).unwrap();
    let seen = [0.5; WIDTH];
    for action in [2, 0, 1] {
        let error = agent.act(&seen, 0.0).unwrap_err().to_string();
        let expected =
            "this agent was trained with masks of actions; call allow() before each act()";
        assert_eq!(error, expected);
        let only: [bool; 3] = std::array::from_fn(|other| other == action);
        agent.allow(&only).unwrap();
        assert_eq!(agent.act(&seen, 0.0).unwrap(), Action::Index(action));
    }
}

/// A damaged file is refused or plays. It never panics.
#[test]
fn damaged_files_never_panic() {
    let (graph, about) = files();
    for text in ["", "{", "[1", r#"{"format": 2}"#, r#"{"format": 1}"#, "\"\\u", &about[..60]] {
        assert!(Agent::load(&graph, text).is_err(), "{text}");
    }
    for n in (0..graph.len()).step_by(97) {
        drop(Agent::load(&graph[..n], &about).map(|mut agent| agent.begin(1, None)));
    }
    let mut generator = seed::generator(1, "damage");
    for _ in 0..2000 {
        let mut damaged = graph.clone();
        for _ in 0..generator.random_range(1..4) {
            let at = generator.random_range(0..graph.len());
            damaged[at] = generator.random();
        }
        if let Ok(mut agent) = Agent::load(&damaged, &about)
            && agent.begin(1, None).is_ok()
        {
            let seen = vec![0.5; agent.observation_size().min(1000)];
            drop(agent.act(&seen, 0.0));
        }
    }
}
