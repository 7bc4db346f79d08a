//! That a context is of the best episodes is told in place of its returns.

#![allow(clippy::unwrap_used, reason = "a test's helpers may")]

use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};
use overtone_core::{ActionSpace, ObservationSpace, Play, Simulation, seed};
use overtone_model::{
    Acted, Conditioning, Contexts, DecisionTransformerConfig, Init, Model, ModelConfig,
    ModelPolicy, Observed, PerceptronConfig, ReturnModelConfig,
};

mod descent;

const OBSERVATIONS: ObservationSpace = ObservationSpace::Vectors { width: 2 };

fn config() -> DecisionTransformerConfig {
    DecisionTransformerConfig {
        d_model: 16,
        n_layers: 1,
        context_length: 3,
        dropout: 0.0,
        return_range: Some([0.0, 10.0]),
        best_percents: vec![10.0, 100.0],
        ..DecisionTransformerConfig::gym(20)
    }
}

fn perceptron() -> PerceptronConfig {
    let best_percents = config().best_percents;
    PerceptronConfig { width: 32, best_percents, ..PerceptronConfig::rvs(20) }
}

fn both() -> [ModelConfig; 2] {
    [ModelConfig::Transformer(config()), ModelConfig::Perceptron(perceptron())]
}

fn model(config: &ModelConfig, device: &Device) -> Model {
    let generator = &mut seed::generator(5, "init");
    let init = &mut Init::drawn(device, generator);
    Model::init(config, &OBSERVATIONS, &ActionSpace::unit(1), init).unwrap()
}

/// As many contexts as `best` says, all of the same observations, asked for `asked`, in which each
/// action was the number of its context.
fn contexts(asked: f32, best: &[Option<u8>], actions: &[f32], device: &Device) -> Contexts {
    let n = actions.len();
    let seen = [0.3f32, -1.0, 0.1, 0.2, 1.5, 0.4].repeat(n);
    let acted: Vec<f32> = actions.iter().flat_map(|&action| [action; 3]).collect();
    Contexts {
        observations: Observed::Vectors(Tensor::from_data(
            TensorData::new(seen, [n, 3, 2]),
            device,
        )),
        returns_to_go: Tensor::full([n, 3], asked, device),
        actions: Acted::Continuous(Tensor::from_data(TensorData::new(acted, [n, 3, 1]), device)),
        timesteps: [0, 1, 2].repeat(n),
        n_padding: vec![0; n],
        best: best.to_vec(),
    }
}

fn newest(model: &Model, asked: f32, best: &[Option<u8>]) -> Vec<Vec<f32>> {
    let n = best.len().max(1);
    let read = model.newest(&contexts(asked, best, &vec![0.0; n], &Device::flex()));
    let read: Vec<f32> = read.into_data().iter().collect();
    read.chunks(read.len() / n).map(<[f32]>::to_vec).collect()
}

#[test]
fn an_agent_that_is_told_a_share_is_told_no_return() {
    both().iter().for_each(check_told);
}

fn check_told(config: &ModelConfig) {
    let free = model(config, &Device::flex());
    let best = |percent| model(config, &Device::flex()).acting_as_best(percent).unwrap();
    let [tenth, all] = [best(10.0), best(100.0)];
    assert_eq!(newest(&tenth, 1.0, &[]), newest(&tenth, 9.0, &[]));
    assert_ne!(newest(&free, 1.0, &[]), newest(&free, 9.0, &[]));
    assert_ne!(newest(&tenth, 1.0, &[]), newest(&all, 1.0, &[]));
    assert_ne!(newest(&tenth, 1.0, &[]), newest(&free, 1.0, &[]));
    // What contexts of a batch are told in training is what agents are told at play.
    let mixed = newest(&free, 4.0, &[Some(1), None, Some(0)]);
    let alone = [&all, &free, &tenth].map(|model| newest(model, 4.0, &[]).remove(0));
    for (row, (together, alone)) in mixed.iter().zip(&alone).enumerate() {
        let distance = together.iter().zip(alone).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(distance < 1e-5, "context {row}: {distance}");
    }
}

/// The same is seen and asked for in all contexts; those of the best episodes acted otherwise.
#[test]
fn each_share_is_cloned() {
    both().iter().for_each(check_cloned);
}

fn check_cloned(config: &ModelConfig) {
    let device = Device::flex().autodiff();
    let best = [Some(0), Some(0), Some(1), Some(1), None, None];
    let actions = [0.5, 0.5, 0.5, -0.5, -0.8, -0.2];
    // No action came before that would tell what kind of episode it is.
    let first =
        |contexts: Contexts| Contexts { n_padding: vec![2; contexts.dims()[0]], ..contexts };
    let told = first(contexts(4.0, &best, &actions, &device));
    let learned =
        descent::learn(model(config, &device), 400, 3e-3, |model, _| model.loss(&told, None).total);
    let learned = learned.valid();
    let act = |percent: f32| {
        let play = match percent {
            0.0 => learned.clone(),
            _ => learned.clone().acting_as_best(percent).unwrap(),
        };
        let seen = first(contexts(4.0, &[], &[0.0], &Device::flex()));
        play.decide(&seen).numbers().unwrap().mode(0)[0]
    };
    for (percent, expected) in [(10.0, 0.5), (100.0, 0.0), (0.0, -0.5)] {
        let acted = act(percent);
        assert!((acted - expected).abs() < 0.15, "{percent} %: {acted} for {expected}");
    }
}

#[test]
fn what_may_be_earned_is_learned_from_all_episodes() {
    let device = Device::flex().autodiff();
    let with_returns =
        DecisionTransformerConfig { return_model: Some(ReturnModelConfig::hl_gauss()), ..config() };
    let model = model(&ModelConfig::Transformer(with_returns), &device);
    let more = |best: &[Option<u8>]| -> f64 {
        let loss = model.loss(&contexts(4.0, best, &[0.5; 2], &device), None);
        (loss.total - loss.action).into_scalar()
    };
    let both = more(&[None, None]);
    assert!(both > 0.0);
    assert!((more(&[Some(0), None]) - both / 2.0).abs() < 1e-3 * both);
    assert_eq!(more(&[Some(0), Some(1)]), 0.0);
    assert_eq!(more(&[]), both);
}

#[test]
fn a_share_that_was_not_told_is_refused() {
    let play = |best_percent| Play { best_percent, ..Play::matched(Simulation::default()) };
    let refused = |config: &ModelConfig, percent| {
        let model = model(config, &Device::flex());
        ModelPolicy::new(&model, None, &play(percent)).err().unwrap().to_string()
    };
    for config in both() {
        assert!(ModelPolicy::new(&model(&config, &Device::flex()), None, &play(10.0)).is_ok());
        let error = refused(&config, 20.0);
        assert!(error.starts_with("best_percent = 20: 0, or one that"), "{error}");
    }
    let without = DecisionTransformerConfig { best_percents: Vec::new(), ..config() };
    for config in [
        ModelConfig::Transformer(without),
        ModelConfig::Perceptron(PerceptronConfig { best_percents: Vec::new(), ..perceptron() }),
    ] {
        let error = refused(&config, 10.0);
        assert!(error.contains("model.best_percents"), "{error}");
    }
    let cloning = PerceptronConfig { average_return: None, ..perceptron() };
    let error = cloning.validate(&OBSERVATIONS, &ActionSpace::unit(1)).unwrap_err().to_string();
    assert!(error.starts_with("model.best_percents = [10.0, 100.0]: none"), "{error}");
    let wrong = |change: fn(&mut DecisionTransformerConfig)| {
        let mut config = config();
        change(&mut config);
        config.validate(&OBSERVATIONS, &ActionSpace::unit(1)).unwrap_err().to_string()
    };
    for error in [
        wrong(|config| config.best_percents = vec![0.0]),
        wrong(|config| config.best_percents = vec![10.0, 10.0]),
        wrong(|config| config.best_percents = vec![101.0]),
        wrong(|config| config.conditioning = Conditioning::None),
    ] {
        assert!(error.starts_with("model.best_percents = "), "{error}");
    }
}
