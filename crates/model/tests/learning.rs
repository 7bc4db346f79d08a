//! Models of vectors learn: toy tasks whose best answer is known.

#![allow(clippy::unwrap_used, reason = "a test's helpers may")]

use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};
use overtone_core::{
    ActionSpace, Actions, Normalization, ObservationSpace, Observations, Play, Policy, Simulation,
    Turn,
    policy::EpisodeStart,
    protocol::ActionChoice,
    seed::{self, Generator},
};
use overtone_model::{
    Acted, Contexts, DecisionTransformerConfig, Head, HeadConfig, Init, Model, ModelConfig,
    ModelPolicy, Observed, PerceptronConfig,
    head::{
        ActedRows, BinnedConfig, BinsHeadConfig, Domain, FourierHeadConfig, GmmHeadConfig,
        LinearConfig, PointwiseConfig,
    },
};
use rand::RngExt;

mod descent;

use descent::learn;

/// Of each token the two actions that are seen, equally often.
const SEEN: [[f64; 2]; 2] = [[-0.55, 0.55], [-0.35, 0.65]];

/// Tokens by turns, one-hot, and an action seen with each.
fn two_humps(generator: &mut Generator, device: &Device) -> (Tensor<2>, Tensor<2>) {
    let rows = 64;
    let (mut tokens, mut actions) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let token = row % 2;
        tokens.extend([token == 0, token == 1].map(f32::from));
        actions.push(SEEN[token][usize::from(generator.random_bool(0.5))] as f32);
    }
    let tensor = |values, width| Tensor::from_data(TensorData::new(values, [rows, width]), device);
    (tensor(tokens, 2), tensor(actions, 1))
}

/// How far actions drawn for each token are from the nearer one seen, on average.
fn distance(head: &Head) -> f64 {
    let draws = 500;
    let tokens = Tensor::<2>::from_data([[1.0f32, 0.0], [0.0, 1.0]], &Device::flex());
    let tokens = tokens.repeat_dim(0, draws);
    let decisions = head.decide(tokens).numbers().unwrap();
    let draw = |row: usize| decisions.draw(row, 1.0, &mut seed::generator(row as u64, "policy"));
    let actions: Vec<f64> = (0..2 * draws).flat_map(draw).collect();
    let off = actions.iter().zip(SEEN.iter().cycle()).map(|(action, seen)| {
        seen.iter().map(|x| (x - action).abs()).fold(f64::INFINITY, f64::min)
    });
    off.sum::<f64>() / actions.len() as f64
}

fn learned_from_two_humps(config: &HeadConfig) -> Head {
    let device = Device::flex().autodiff();
    let head = config.init(
        2,
        &ActionSpace::unit(1),
        &mut Init::drawn(&device, &mut seed::generator(1, "init")),
    );
    let head = learn(head, 300, 0.05, |head, step| {
        let (tokens, actions) = two_humps(&mut seed::generator(step, "batch"), &device);
        head.loss(tokens, ActedRows::Continuous(actions)).rows.mean()
    });
    head.valid()
}

#[test]
fn bins_learn_two_humps_where_their_mean_is_far_from_both() {
    let mean = distance(&learned_from_two_humps(&HeadConfig::Pointwise(PointwiseConfig {})));
    // The means 0 and 0.15 are 0.55 and 0.5 away.
    assert!((mean - 0.525).abs() < 0.03, "{mean}");
    let half_range = FourierHeadConfig { domain: Domain::HalfRange, ..FourierHeadConfig::new(16) };
    for head in [
        BinsHeadConfig::Linear(LinearConfig {}),
        BinsHeadConfig::Fourier(FourierHeadConfig::new(10)),
        BinsHeadConfig::Fourier(half_range),
        BinsHeadConfig::Gmm(GmmHeadConfig { components: 2, ..Default::default() }),
    ] {
        let config = HeadConfig::Binned(BinnedConfig { bins: 20, head });
        let head = learned_from_two_humps(&config);
        let drawn = distance(&head);
        println!("{config:?}: {drawn} from the actions seen");
        assert!(drawn < 0.1, "{config:?}: {drawn}");
        let tokens = Tensor::<2>::from_data([[1.0f32, 0.0], [0.0, 1.0]], &Device::flex());
        let modes = head.decide(tokens).numbers().unwrap().modes();
        for (mode, seen) in modes.iter().zip(SEEN) {
            assert!(seen.iter().any(|x| (x - mode).abs() < 0.051), "{config:?}: {mode}");
        }
    }
}

const CONTEXT: usize = 3;

/// What is played in the toy task, of a normalized observation and a scaled return-to-go.
fn right_action(observation: &[f32], return_to_go: f32) -> [f32; 2] {
    [0.4 * observation[0] + 0.3 * (return_to_go - 1.0), -0.5 * observation[1]]
}

/// Contexts of the toy task on a device.
fn batch(generator: &mut Generator, device: &Device) -> Contexts {
    let rows = 32;
    let mut random = |n: usize, low: f32, high: f32| -> Vec<f32> {
        (0..n).map(|_| generator.random_range(low..high)).collect()
    };
    let observations = random(rows * CONTEXT * 2, -1.5, 1.5);
    let returns_to_go = random(rows * CONTEXT, 0.0, 2.0);
    let actions = observations
        .chunks_exact(2)
        .zip(&returns_to_go)
        .flat_map(|(observation, &to_go)| right_action(observation, to_go))
        .collect();
    let begins = random(rows, 0.0, 8.0);
    let timesteps = begins.iter().flat_map(|&t| (0..CONTEXT as i32).map(move |k| t as i32 + k));
    let pairs = |values| Tensor::from_data(TensorData::new(values, [rows, CONTEXT, 2]), device);
    Contexts {
        observations: Observed::Vectors(pairs(observations)),
        actions: Acted::Continuous(pairs(actions)),
        returns_to_go: Tensor::from_data(TensorData::new(returns_to_go, [rows, CONTEXT]), device),
        timesteps: timesteps.collect(),
        n_padding: (0..rows).map(|row| row % CONTEXT).collect(),
        best: Vec::new(),
    }
}

/// Plays 16 episodes of 8 steps of the toy task, in the environment's units: root mean square
/// of the actions' errors.
fn action_error(model: &Model) -> f64 {
    let normalization = Normalization { mean: vec![10.0, -3.0], std: vec![4.0, 0.25] };
    let protocol = Play {
        action_choice: ActionChoice::Mode,
        return_scale: 100.0,
        ..Play::matched(Simulation::default())
    };
    let mut policy = ModelPolicy::new(model, Some(&normalization), &protocol).unwrap();
    let mut generator = seed::generator(7, "episode");
    let n = 16;
    let mut left: Vec<f32> = (0..n).map(|_| generator.random_range(150.0..200.0)).collect();
    let (mut squares, mut count) = (0.0, 0);
    for t in 0..8 {
        let (mut turns, mut raw, mut right) = (Vec::new(), Vec::new(), Vec::new());
        for (agent, left) in left.iter_mut().enumerate() {
            let start = EpisodeStart { seed: agent as u64, target_return: *left };
            let start = (t == 0).then_some(start);
            let reward = if t == 0 { 0.0 } else { generator.random_range(0.0..20.0) };
            *left -= reward;
            let x: [f32; 2] = std::array::from_fn(|_| generator.random_range(-1.5..1.5));
            right.extend(right_action(&x, *left / 100.0));
            raw.extend([10.0 + 4.0 * x[0], -3.0 + 0.25 * x[1]]);
            turns.push(Turn { agent, reward, start });
        }
        let actions = policy.act(&turns, Observations::Vectors(&raw)).unwrap();
        let Actions::Continuous { values, .. } = actions else { panic!("{actions:?}") };
        for (action, right) in values.iter().zip(right) {
            squares += f64::from(action - right).powi(2);
            count += 1;
        }
    }
    (squares / f64::from(count)).sqrt()
}

#[track_caller]
fn check_learning(config: &ModelConfig, steps: u64, at_most: f64) {
    let device = Device::flex().autodiff();
    let generator = &mut seed::generator(1, "init");
    let init = &mut Init::drawn(&device, generator);
    let observations = ObservationSpace::Vectors { width: 2 };
    let model = Model::init(config, &observations, &ActionSpace::unit(2), init).unwrap();
    let before = action_error(&model);
    let model = learn(model, steps, 3e-3, |model, step| {
        model.loss(&batch(&mut seed::generator(step, "batch"), &device), None).total
    });
    let after = action_error(&model);
    println!("error of the actions played: {before} before, {after} after");
    assert!(before > 0.3, "{before}");
    assert!(after < at_most, "{after}");
}

#[test]
fn a_policy_learns_to_play_what_observation_and_return_ask_for() {
    let config = DecisionTransformerConfig {
        n_layers: 1,
        d_model: 32,
        context_length: CONTEXT,
        ..DecisionTransformerConfig::gym(10)
    };
    check_learning(&ModelConfig::Transformer(config), 400, 0.06);
}

/// The perceptron is not told the return: the part of the action that asks for it, up to 0.3 in
/// one of two numbers, is left as an error.
#[test]
fn a_perceptron_learns_what_observations_say() {
    let gym = PerceptronConfig::gym();
    let config = PerceptronConfig { width: 32, context_length: CONTEXT, ..gym };
    check_learning(&ModelConfig::Perceptron(config), 400, 0.15);
}

/// Told the average return, which far from the horizon is the return, it learns that part too.
#[test]
fn a_perceptron_that_is_told_returns_learns_what_they_ask_for() {
    let config = PerceptronConfig { width: 32, dropout: 0.1, ..PerceptronConfig::rvs(1000) };
    check_learning(&ModelConfig::Perceptron(config), 400, 0.06);
}
