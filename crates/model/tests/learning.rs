//! Models of vectors learn: toy tasks with a known optimum.

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
        ActedRows, BinnedConfig, BinsHeadConfig, Domain, FourierHeadConfig, GaussianMixture,
        GmmHeadConfig, GmmLikelihoodConfig, LinearConfig, MixtureStd, MixtureWeights,
        PointwiseConfig,
    },
};
use rand::RngExt;

mod descent;

use descent::learn;

/// The two recorded actions of each token, equally frequent.
const SEEN: [[f64; 2]; 2] = [[-0.55, 0.55], [-0.35, 0.65]];

/// Alternating tokens, one-hot, and a recorded action for each.
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

/// Mean distance of sampled actions to the nearer recorded one.
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
        head.loss(tokens, ActedRows::Continuous(actions), None).rows.mean()
    });
    head.valid()
}

#[test]
fn bins_learn_two_humps_that_are_far_from_their_mean() {
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
        println!("{config:?}: {drawn} from the recorded actions");
        assert!(drawn < 0.1, "{config:?}: {drawn}");
        let tokens = Tensor::<2>::from_data([[1.0f32, 0.0], [0.0, 1.0]], &Device::flex());
        let modes = head.decide(tokens).numbers().unwrap().modes();
        for (mode, seen) in modes.iter().zip(SEEN) {
            assert!(seen.iter().any(|x| (x - mode).abs() < 0.051), "{config:?}: {mode}");
        }
    }
}

/// Both mixture heads, with these options and narrow at first.
fn mixtures(components: usize, weights: MixtureWeights, std: MixtureStd) -> [HeadConfig; 2] {
    let init_std = 0.1;
    let likelihood = GmmLikelihoodConfig { components, weights, std, init_std };
    let on_bins = GmmHeadConfig { components, weights, std, init_std, ..GmmHeadConfig::default() };
    let head = BinsHeadConfig::Gmm(on_bins);
    [HeadConfig::GmmLikelihood(likelihood), HeadConfig::Binned(BinnedConfig { bins: 80, head })]
}

/// Rows of each of two tokens, their actions at equal steps of its distribution.
const OF_EACH: usize = 200;

/// The quantiles of a distribution at equal steps, from its density at close points.
fn spread(distribution: &GaussianMixture) -> Vec<f32> {
    let (mut below, mut quantiles) = (0.0, Vec::new());
    for z in (0..400_000).map(|i| f64::from(i) * 1e-5 - 2.0) {
        below += distribution.pdf(z) * 1e-5;
        while quantiles.len() < OF_EACH && below > (quantiles.len() as f64 + 0.5) / OF_EACH as f64 {
            quantiles.push(z as f32);
        }
    }
    assert_eq!(quantiles.len(), OF_EACH);
    quantiles
}

/// A head that has learned two distributions, and its mean loss on them.
fn learned(config: &HeadConfig, distributions: [GaussianMixture; 2]) -> (f64, Head) {
    let device = Device::flex().autodiff();
    let (mut tokens, mut actions) = (Vec::new(), Vec::new());
    for (token, distribution) in distributions.iter().enumerate() {
        for action in spread(distribution) {
            tokens.extend([token == 0, token == 1].map(f32::from));
            actions.push(action);
        }
    }
    let rows = 2 * OF_EACH;
    let tensor = |values, width| Tensor::from_data(TensorData::new(values, [rows, width]), &device);
    let (tokens, actions): (Tensor<2>, Tensor<2>) = (tensor(tokens, 2), tensor(actions, 1));
    let loss = |head: &Head| {
        head.loss(tokens.clone(), ActedRows::Continuous(actions.clone()), None).rows.mean()
    };
    let init = &mut seed::generator(1, "init");
    let head = config.init(2, &ActionSpace::unit(1), &mut Init::drawn(&device, init));
    let head = learn(head, 600, 0.02, |head, _| loss(head));
    let least: f64 = loss(&head).inner().into_scalar();
    (least, head.valid())
}

/// The entropy of a Gaussian, in nats.
fn entropy(std: f64) -> f64 {
    0.5 * (std::f64::consts::TAU * std::f64::consts::E).ln() + std.ln()
}

/// The additional loss of a head on 80 bins: the logarithm of 1 / the width of a bin.
fn of_bins(config: &HeadConfig) -> f64 {
    match config {
        HeadConfig::Binned(BinnedConfig { bins, .. }) => (*bins as f64 / 2.0).ln(),
        _ => 0.0,
    }
}

/// If the noise depends on the state, deviations of the state reach the entropy. Shared ones only
/// reach the entropy of the mean variance.
#[test]
fn deviations_of_states_learn_noise_that_differs() {
    let noise = |std| GaussianMixture { means: vec![0.1], stds: vec![std], weights: None };
    let least = (entropy(0.05) + entropy(0.3)) / 2.0;
    let shared = entropy(((0.05f64.powi(2) + 0.3f64.powi(2)) / 2.0).sqrt());
    for (std, expected) in [(MixtureStd::State, least), (MixtureStd::Shared, shared)] {
        for config in mixtures(1, MixtureWeights::Equal, std) {
            let (loss, _) = learned(&config, [noise(0.05), noise(0.3)]);
            let loss = loss - of_bins(&config);
            println!("{config:?}: {loss} against {expected}");
            assert!((loss - expected).abs() < 0.05, "{config:?}: {loss} against {expected}");
        }
    }
}

/// If one of two humps is nine times as frequent, and the state decides which, learned weights
/// reach the entropy. They determine modes and samples.
#[test]
fn learned_weights_learn_which_hump_is_frequent() {
    let humps = |weights: [f64; 2]| GaussianMixture {
        means: vec![-0.5, 0.5],
        stds: vec![0.1, 0.1],
        weights: Some(weights.to_vec()),
    };
    let choice = -(0.9 * 0.9f64.ln() + 0.1 * 0.1f64.ln());
    let least = entropy(0.1) + choice;
    for config in mixtures(2, MixtureWeights::Learned, MixtureStd::Shared) {
        let (loss, head) = learned(&config, [humps([0.9, 0.1]), humps([0.1, 0.9])]);
        let loss = loss - of_bins(&config);
        println!("{config:?}: {loss} against {least}");
        assert!((loss - least).abs() < 0.05, "{config:?}: {loss} against {least}");
        let n = 1000;
        let tokens = Tensor::<2>::from_data([[1.0f32, 0.0], [0.0, 1.0]], &Device::flex());
        let decisions = head.decide(tokens.repeat_dim(0, n)).numbers().unwrap();
        let modes = decisions.modes();
        assert!((modes[0] + 0.5).abs() < 0.03 && (modes[1] - 0.5).abs() < 0.03, "{modes:?}");
        let mut generator = seed::generator(3, "policy");
        for (token, expected) in [0.1, 0.9].into_iter().enumerate() {
            let above = (0..n)
                .filter(|i| decisions.draw(2 * i + token, 1.0, &mut generator)[0] > 0.0)
                .count() as f64;
            // Five standard errors of 1000 draws: 0.047.
            assert!((above / n as f64 - expected).abs() < 0.05, "{config:?}: {above}");
        }
    }
    for config in mixtures(2, MixtureWeights::Equal, MixtureStd::Shared) {
        let (loss, _) = learned(&config, [humps([0.9, 0.1]), humps([0.1, 0.9])]);
        assert!(loss - of_bins(&config) > least + 0.25, "{config:?}: {loss}");
    }
}

const CONTEXT: usize = 3;

/// The optimal action of the toy task, from a normalized observation and a scaled return-to-go.
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
        step_weights: Vec::new(),
        penalties: None,
        top_percent_idx: Vec::new(),
        stored: None,
    }
}

/// Acts in 16 episodes of 8 steps of the toy task, in the environment's units. Returns the root
/// mean square of the actions' errors.
fn action_error(model: &Model) -> f64 {
    let normalization = Normalization { mean: vec![10.0, -3.0], std: vec![4.0, 0.25] };
    let protocol = Play {
        action_choice: ActionChoice::Mode,
        return_scale: 100.0,
        ..Play::matched(Simulation::default())
    };
    let mut policy = ModelPolicy::new(model, None, Some(&normalization), &protocol).unwrap();
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
    println!("error of the actions taken: {before} before, {after} after");
    assert!(before > 0.3, "{before}");
    assert!(after < at_most, "{after}");
}

#[test]
fn a_policy_learns_the_action_of_observation_and_return() {
    let config = DecisionTransformerConfig {
        n_layers: 1,
        d_model: 32,
        context_length: CONTEXT,
        ..DecisionTransformerConfig::gym(10)
    };
    check_learning(&ModelConfig::Transformer(config), 400, 0.06);
}

/// This perceptron is not conditioned on the return. The part of the action that depends on it, up
/// to 0.3 in one of two dimensions, remains as an error.
#[test]
fn a_perceptron_learns_from_observations() {
    let gym = PerceptronConfig::gym();
    let config = PerceptronConfig { width: 32, context_length: CONTEXT, ..gym };
    check_learning(&ModelConfig::Perceptron(config), 400, 0.15);
}

/// Conditioned on the average return, which is the return far from the horizon, it learns that part
/// too.
#[test]
fn a_perceptron_conditioned_on_returns_learns_their_effect() {
    let config = PerceptronConfig { width: 32, dropout: 0.1, ..PerceptronConfig::rvs(1000) };
    check_learning(&ModelConfig::Perceptron(config), 400, 0.06);
}
