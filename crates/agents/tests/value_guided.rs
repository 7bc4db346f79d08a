//! A Decision Transformer that values guide, on a chain of five states whose values are known
//! (`chain`), and what guides it against PyTorch (`scripts/peers/value_golden.py`).

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod chain;

use std::path::Path;

use burn::{
    module::Module,
    tensor::{DType, Device, Tensor, TensorData},
};
use chain::{GAMMA, STATES, check_resuming, config, learned, numbers, observations, real_valued};
use overtone_agents::{
    Agent, AlgorithmConfig, GuideConfig, SequenceModel, ValueGuided, ValueGuidedOptions,
    options::AlgorithmOptions,
    value::{Twin, network::Hidden},
    value_guided::{ValueGuidedState, Verdict},
};
use overtone_core::{Task, seed};
use overtone_data::Dataset;
use overtone_model::{
    Conditioning, DecisionTransformerConfig, ModelConfig,
    contexts::{Acted, Contexts, Observed},
    head::{FourierLikelihoodConfig, HeadConfig, PointwiseConfig},
    init::Init,
    weights::{self, NamedTensors},
};
use overtone_testkit::{Golden, assert_close};
use overtone_train::{TrainConfig, optimizer::scalar};

fn options(guidance: f64) -> ValueGuidedOptions {
    ValueGuidedOptions {
        model: DecisionTransformerConfig {
            n_layers: 1,
            d_model: 16,
            context_length: 3,
            dropout: 0.0,
            ..DecisionTransformerConfig::gym(20)
        },
        guide: GuideConfig {
            guidance,
            critic_learning_rate: 2e-3,
            expectile: 0.9,
            gamma: GAMMA,
            target_rate: 0.02,
            hidden: 32,
            ..GuideConfig::default()
        },
    }
}

fn algorithm(guidance: f64) -> ValueGuided {
    ValueGuided::new(options(guidance), &observations(), &numbers())
}

/// What the transformer does at the beginning of an episode in every state, asked for what the
/// best earn.
fn played(state: &ValueGuidedState, data: &Dataset) -> Vec<f64> {
    let device = Device::flex();
    let states = chain::states(data, |_| {}).reshape([STATES, 1, STATES]);
    let contexts = Contexts {
        observations: Observed::Vectors(states),
        returns_to_go: Tensor::ones([STATES, 1], &device),
        actions: Acted::Continuous(Tensor::zeros([STATES, 1, 1], &device)),
        timesteps: vec![0; STATES],
        n_padding: vec![0; STATES],
        best: Vec::new(),
    };
    let (_, actions) = state.actor.network.valid().loss_and_points(&contexts, None);
    actions.unwrap().into_data().iter::<f64>().collect()
}

/// The recorded policy draws from [-1, 1] everywhere, the mean of which is 0, and nearly all of its
/// episodes that earn anything do so by luck. Going right is the optimum.
#[test]
fn values_lead_to_the_optimum_that_recorded_actions_are_not() {
    let data = real_valued(0.0);
    let guided = played(&learned(&algorithm(3.0), &data, config(1500)), &data);
    let cloned = played(&learned(&algorithm(0.0), &data, config(1500)), &data);
    println!("guided {guided:.3?}, not guided {cloned:.3?}");
    for (s, (guided, cloned)) in guided.into_iter().zip(cloned).enumerate() {
        assert!(guided > 0.1, "action {guided} in state {s}");
        assert!(guided > cloned + 0.05, "actions {guided} and {cloned} in state {s}");
    }
}

/// Critics take no part in what the transformer is then, not even in how it begins.
#[test]
fn without_guidance_it_is_the_decision_transformer_to_the_bit() {
    let data = real_valued(0.0);
    let model = ModelConfig::Transformer(options(0.0).model);
    let plain = SequenceModel { model, observations: observations(), actions: numbers() };
    let short = || TrainConfig { updates: 5, ..config(5) };
    let plain = learned(&plain, &data, short());
    let guided = learned(&algorithm(0.0), &data, short());
    let bytes = |tensors: NamedTensors| -> Vec<(String, Vec<u8>)> {
        tensors.into_iter().map(|(name, data)| (name, data.as_bytes().to_vec())).collect()
    };
    assert_eq!(
        bytes(weights::export(&guided.actor.network)),
        bytes(weights::export(&plain.network))
    );
    let led = learned(&algorithm(1.0), &data, short());
    assert_ne!(
        bytes(weights::export(&led.actor.network)),
        bytes(weights::export(&guided.actor.network))
    );
}

#[test]
fn resuming_is_never_having_stopped() {
    check_resuming(&algorithm(1.0), &real_valued(0.0));
}

/// Value and gradient of every action, in double precision.
#[test]
fn the_relative_value_is_pytorch_s() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let golden = Golden::read(&folder.join("relative_value.safetensors"));
    let device = Device::flex();
    let batch = |name: &str| {
        golden.get(&format!("batch/{name}")).tensor::<3>(&device, DType::F64).squeeze_dim::<2>(0)
    };
    let hidden = Hidden { n_layers: 2, width: 32, has_norms: false };
    let critics = Twin::init([11, 3], hidden, &mut Init::shapes(&device));
    let stored = golden.iter().filter_map(|(name, array)| {
        Some((name.strip_prefix("initial/critics.")?.to_owned(), array.data(DType::F64)))
    });
    let critics = weights::import(critics, &stored.collect()).unwrap();
    let actions = batch("actions").autodiff().require_grad();
    let shares = batch("shares").squeeze_dim::<1>(1).autodiff();
    let both = [actions.clone(), actions.clone()];
    let Verdict { relative, gain } = Verdict::of(&critics, batch("observations"), both, shares);
    assert_eq!(scalar(gain.inner()), 0.0, "of actions over themselves");
    let gradient = actions.grad(&relative.backward()).unwrap();
    let close = |what: &str, got: Vec<f64>| {
        assert_close(what, &got, &golden.get(what).values, 1e-9, 1e-12);
    };
    close("loss/relative", vec![scalar(relative.inner())]);
    close("gradient/actions", gradient.into_data().iter::<f64>().collect());
}

/// What lies in padding, and beyond the ends of the actions, is no way to a higher value.
#[test]
fn padding_and_actions_beyond_their_ends_have_no_gradient() {
    let device = Device::flex();
    let hidden = Hidden { n_layers: 1, width: 8, has_norms: false };
    let mut generator = seed::generator(4, "critics");
    let critics = Twin::init([1, 1], hidden, &mut Init::drawn(&device, &mut generator));
    let rows = |of: [f32; 3]| Tensor::<2>::from_data(TensorData::new(of.to_vec(), [3, 1]), &device);
    let actions = rows([0.5, 0.5, 1.5]).autodiff().require_grad();
    let shares = Tensor::<1>::from_data([0.5f32, 0.0, 0.5], &device).autodiff();
    let both = [actions.clone(), rows([0.0; 3]).autodiff()];
    let Verdict { relative, .. } = Verdict::of(&critics, rows([0.1, 0.2, 0.3]), both, shares);
    let gradient = actions.grad(&relative.backward()).unwrap();
    let gradient: Vec<f64> = gradient.into_data().iter().collect();
    assert!(gradient[0] != 0.0, "{gradient:?}");
    assert_eq!(gradient[1..], [0.0, 0.0]);
}

#[test]
fn other_options_are_refused() {
    let task = Task::own("chain", observations(), numbers());
    let refused = |key: &str, change: fn(&mut ValueGuidedOptions)| {
        let mut options = options(1.0);
        change(&mut options);
        let error = options.validate(&task.observations, &task.actions).unwrap_err().to_string();
        assert!(error.starts_with(key), "{key}: {error}");
        // So they are where weights are read.
        let agent = Agent {
            task: task.clone(),
            dataset: String::new(),
            algorithm: AlgorithmConfig::ValueGuided(options),
            normalization: None,
            return_scale: 1.0,
            delayed_reward: false,
            recording: None,
        };
        let read = agent.policy(&NamedTensors::new(), &agent.matched(), &Device::flex());
        assert_eq!(read.err().unwrap().to_string(), error);
    };
    refused("value_guided.guidance = ", |options| options.guide.guidance = -1.0);
    refused("value_guided.critic_updates = ", |options| options.guide.critic_updates = 0);
    refused("value_guided.critic_learning_rate = ", |options| {
        options.guide.critic_learning_rate = f64::NAN
    });
    refused("value_guided.expectile = ", |options| options.guide.expectile = 1.2);
    refused("value_guided.hidden = ", |options| options.guide.hidden = 0);
    refused("model.conditioning = none: ", |options| {
        options.model.conditioning = Conditioning::None
    });
    refused("model.best_percents = [10.0]: ", |options| options.model.best_percents = vec![10.0]);
    refused("head = fourier3: values lead one action", |options| {
        options.model.head = HeadConfig::FourierLikelihood(FourierLikelihoodConfig::new(3));
    });
    let mut pointwise = options(1.0);
    pointwise.model.head = HeadConfig::Pointwise(PointwiseConfig {});
    pointwise.validate(&task.observations, &task.actions).unwrap();
}
