//! A top percent of episodes conditions a model in place of returns.

#![allow(clippy::unwrap_used, reason = "a test's helpers may")]

use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};
use overtone_core::{ActingMode, ActionSpace, ObservationSpace, Play, Simulation, seed};
use overtone_model::{
    Acted, Conditioner, ConditionerConfig, Contexts, DecisionTransformerConfig, Init, Model,
    ModelConfig, ModelError, ModelPolicy, Observed, PerceptronConfig,
};
use overtone_testkit::check_error;

mod descent;

const OBSERVATIONS: ObservationSpace = ObservationSpace::Vectors { width: 2 };

fn config(top_percents: Vec<f32>) -> DecisionTransformerConfig {
    DecisionTransformerConfig {
        d_model: 16,
        n_layers: 1,
        context_length: 3,
        dropout: 0.0,
        conditioning: Some(ConditionerConfig {
            return_range: Some([0.0, 10.0]),
            top_percents,
            ..ConditionerConfig::default()
        }),
        ..DecisionTransformerConfig::gym(20)
    }
}

fn perceptron(top_percents: Vec<f32>) -> PerceptronConfig {
    let rvs = PerceptronConfig::rvs(20);
    let conditioning =
        rvs.conditioning.clone().map(|rvs| ConditionerConfig { top_percents, ..rvs });
    PerceptronConfig { width: 32, conditioning, ..rvs }
}

fn both_with(percents: &[f32]) -> [ModelConfig; 2] {
    let percents = || percents.to_vec();
    [ModelConfig::Transformer(config(percents())), ModelConfig::Perceptron(perceptron(percents()))]
}

fn both() -> [ModelConfig; 2] {
    both_with(&[10.0, 100.0])
}

fn model(config: &ModelConfig, device: &Device) -> Model {
    let generator = &mut seed::generator(5, "init");
    let init = &mut Init::drawn(device, generator);
    Model::init(config, &OBSERVATIONS, &ActionSpace::unit(1), init).unwrap()
}

/// One context for each entry of `best`, all with the same observations and the target `target`.
/// Every action of a context is the context's entry in `actions`.
fn contexts(target: f32, best: &[Option<u8>], actions: &[f32], device: &Device) -> Contexts {
    let n = actions.len();
    let seen = [0.3f32, -1.0, 0.1, 0.2, 1.5, 0.4].repeat(n);
    let acted: Vec<f32> = actions.iter().flat_map(|&action| [action; 3]).collect();
    Contexts {
        observations: Observed::Vectors(Tensor::from_data(
            TensorData::new(seen, [n, 3, 2]),
            device,
        )),
        returns_to_go: Tensor::full([n, 3], target, device),
        actions: Acted::Continuous(Tensor::from_data(TensorData::new(acted, [n, 3, 1]), device)),
        timesteps: [0, 1, 2].repeat(n),
        n_padding: vec![0; n],
        step_weights: Vec::new(),
        penalties: None,
        top_percent_idx: best.to_vec(),
        stored: None,
    }
}

fn play(top_percent: f32) -> Play {
    let acting = ActingMode { top_percent, ..ActingMode::default() };
    Play { acting, ..Play::matched(Simulation::default()) }
}

/// The contexts with the inputs of an agent with this top percent.
fn conditioned(model: &Model, percent: f32, contexts: Contexts) -> Contexts {
    let config = model.config();
    let config = config.conditioning().unwrap();
    let conditioner = Conditioner::new(Some(config), None, &play(percent)).unwrap().unwrap();
    conditioner.condition(contexts)
}

fn newest(model: &Model, percent: f32, target: f32, best: &[Option<u8>]) -> Vec<Vec<f32>> {
    let n = best.len().max(1);
    let contexts = contexts(target, best, &vec![0.0; n], &Device::flex());
    let read = model.newest(&conditioned(model, percent, contexts));
    let read: Vec<f32> = read.into_data().iter().collect();
    read.chunks(read.len() / n).map(<[f32]>::to_vec).collect()
}

#[test]
fn a_top_percent_replaces_the_return() {
    both().iter().for_each(check_replaced);
}

fn check_replaced(config: &ModelConfig) {
    let model = model(config, &Device::flex());
    let [free, tenth, all] = [0.0, 10.0, 100.0];
    let newest = |percent, target| newest(&model, percent, target, &[]);
    assert_eq!(newest(tenth, 1.0), newest(tenth, 9.0));
    assert_ne!(newest(free, 1.0), newest(free, 9.0));
    assert_ne!(newest(tenth, 1.0), newest(all, 1.0));
    assert_ne!(newest(tenth, 1.0), newest(free, 1.0));
    // Contexts of a training batch equal those of acting agents.
    let mixed = self::newest(&model, free, 4.0, &[Some(1), None, Some(0)]);
    let alone = [all, free, tenth].map(|percent| newest(percent, 4.0).remove(0));
    for (row, (together, alone)) in mixed.iter().zip(&alone).enumerate() {
        let distance = together.iter().zip(alone).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(distance < 1e-5, "context {row}: {distance}");
    }
}

/// The observations and targets of all contexts are the same; contexts of the top episodes have
/// other actions.
#[test]
fn each_top_percent_is_cloned() {
    both().iter().for_each(check_cloned);
}

fn check_cloned(config: &ModelConfig) {
    let device = Device::flex().autodiff();
    let best = [Some(0), Some(0), Some(1), Some(1), None, None];
    let actions = [0.5, 0.5, 0.5, -0.5, -0.8, -0.2];
    // No earlier action reveals the kind of the episode.
    let first =
        |contexts: Contexts| Contexts { n_padding: vec![2; contexts.dims()[0]], ..contexts };
    let model = model(config, &device);
    let batch = first(contexts(4.0, &best, &actions, &device));
    let batch = config.conditioning().unwrap().condition(batch);
    let learned = descent::learn(model, 400, 3e-3, |model, _| model.loss(&batch, None).total);
    let learned = learned.valid();
    let act = |percent: f32| {
        let seen = first(contexts(4.0, &[], &[0.0], &Device::flex()));
        learned.decide(&conditioned(&learned, percent, seen)).numbers().unwrap().mode(0)[0]
    };
    for (percent, expected) in [(10.0, 0.5), (100.0, 0.0), (0.0, -0.5)] {
        let acted = act(percent);
        assert!((acted - expected).abs() < 0.15, "{percent} %: {acted} for {expected}");
    }
}

#[test]
fn a_top_percent_that_was_not_trained_with_is_refused() {
    let refused = |config: &ModelConfig, percent| {
        let model = model(config, &Device::flex());
        ModelPolicy::new(&model, None, None, &play(percent)).err().unwrap()
    };
    for config in both() {
        assert!(
            ModelPolicy::new(&model(&config, &Device::flex()), None, None, &play(10.0)).is_ok()
        );
        let error = refused(&config, 20.0);
        check_error!(error, ModelError::Config { key, .. } if key == "top_percent");
    }
    let cloning = PerceptronConfig { conditioning: None, ..perceptron(Vec::new()) };
    for config in both_with(&[]).into_iter().chain([ModelConfig::Perceptron(cloning)]) {
        let error = refused(&config, 10.0).to_string();
        assert!(error.contains("model.top_percents"), "{error}");
    }
}
