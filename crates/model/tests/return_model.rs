//! What may be earned from a state is learned, and no more than that is asked for.

#![allow(clippy::unwrap_used, reason = "a test's helpers may")]

use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};
use overtone_core::{ActionSpace, ObservationSpace, Play, Simulation, seed};
use overtone_model::{
    Acted, Contexts, DecisionTransformerConfig, HeadConfig, Init, Model, ModelConfig, ModelPolicy,
    Observed, ReturnModel, ReturnModelConfig,
    head::{BinnedConfig, BinsHeadConfig, Domain, FourierHeadConfig, FourierLikelihoodConfig},
    init::standard_normal,
};

mod descent;

const OBSERVATIONS: ObservationSpace = ObservationSpace::Vectors { width: 2 };

fn fourier() -> ReturnModelConfig {
    let head =
        FourierLikelihoodConfig { domain: Domain::HalfRange, ..FourierLikelihoodConfig::new(12) };
    ReturnModelConfig::new(HeadConfig::FourierLikelihood(head))
}

/// Two arms, one-hot: mean and standard deviation of the normal returns that each pays.
const ARMS: [[f64; 2]; 2] = [[-0.4, 0.15], [0.5, 0.1]];

fn pulled(step: u64, device: &Device) -> (Tensor<3>, Tensor<2>) {
    let generator = &mut seed::generator(step, "batch");
    let (mut seen, mut paid) = (Vec::new(), Vec::new());
    for row in 0..256 {
        seen.extend([row % 2 == 0, row % 2 == 1].map(f32::from));
        let [mean, std] = ARMS[row % 2];
        paid.push((mean + std * standard_normal(generator)) as f32);
    }
    let seen = Tensor::from_data(TensorData::new(seen, [128, 2, 2]), device);
    (seen, Tensor::from_data(TensorData::new(paid, [128, 2]), device))
}

#[test]
fn quantiles_of_two_arms_are_learned() {
    for config in [fourier(), ReturnModelConfig::hl_gauss()] {
        check_quantiles(&ReturnModelConfig { width: 32, ..config });
    }
}

fn check_quantiles(config: &ReturnModelConfig) {
    let device = Device::flex().autodiff();
    let generator = &mut seed::generator(3, "init");
    let model =
        ReturnModel::init(config, &OBSERVATIONS, &mut Init::drawn(&device, generator)).unwrap();
    let model = descent::learn(model, 2000, 1e-3, |model, step| {
        let (seen, paid) = pulled(step, &device);
        model.loss(seen, paid).mean()
    });
    let model = model.valid();
    let both = Tensor::from_data([[[1.0f32, 0.0], [0.0, 1.0]]], &Device::flex());
    let mut before = [-1.0; 2];
    // Quantiles of the normal distribution.
    let normal = [-1.6449, -0.6745, 0.0, 0.6745, 1.6449];
    for (q, deviations) in [0.05, 0.25, 0.5, 0.75, 0.95].into_iter().zip(normal) {
        let got: Vec<f64> = model.quantiles(both.clone(), q).into_data().iter().collect();
        for arm in 0..2 {
            let [mean, std] = ARMS[arm];
            let expected = mean + std * deviations;
            let error = (got[arm] - expected).abs();
            let head = config.head.name();
            assert!(error < 0.02, "{head}, {q} of arm {arm}: {} for {expected}", got[arm]);
            assert!(got[arm] > before[arm], "quantiles rise with q");
            before[arm] = got[arm];
        }
    }
}

#[test]
fn a_head_s_regulariser_is_part_of_the_loss() {
    let likelihood = |gamma| {
        let head = FourierLikelihoodConfig { gamma, ..FourierLikelihoodConfig::new(3) };
        HeadConfig::FourierLikelihood(head)
    };
    let binned = |gamma| {
        let head = FourierHeadConfig { gamma, ..FourierHeadConfig::new(3) };
        HeadConfig::Binned(BinnedConfig { bins: 8, head: BinsHeadConfig::Fourier(head) })
    };
    let device = Device::flex();
    let loss = |head, smoothing| {
        let config = ReturnModelConfig { width: 8, smoothing, ..ReturnModelConfig::new(head) };
        let generator = &mut seed::generator(3, "init");
        let init = &mut Init::drawn(&device, generator);
        let model = ReturnModel::init(&config, &OBSERVATIONS, init).unwrap();
        let (seen, paid) = pulled(1, &device);
        model.loss(seen, paid).mean().into_scalar::<f64>()
    };
    for smoothing in [0.0, 0.75] {
        assert!(loss(binned(1e6), smoothing) > loss(binned(0.0), smoothing), "{smoothing}");
    }
    assert!(loss(likelihood(1e6), 0.0) > loss(likelihood(0.0), 0.0));
}

fn transformer() -> ModelConfig {
    ModelConfig::Transformer(DecisionTransformerConfig {
        d_model: 16,
        n_layers: 1,
        context_length: 3,
        return_range: Some([0.0, 10.0]),
        return_model: Some(fourier()),
        ..DecisionTransformerConfig::gym(20)
    })
}

fn contexts(asked: f32) -> Contexts {
    let device = Device::flex();
    let observations = [[[0.3f32, -1.0], [0.1, 0.2], [1.5, 0.4]]];
    Contexts {
        observations: Observed::Vectors(Tensor::from_data(observations, &device)),
        returns_to_go: Tensor::full([1, 3], asked, &device),
        actions: Acted::Continuous(Tensor::zeros([1, 3, 1], &device)),
        timesteps: vec![0, 1, 2],
        n_padding: vec![0],
        best: Vec::new(),
    }
}

fn model() -> Model {
    let generator = &mut seed::generator(5, "init");
    let init = &mut Init::drawn(&Device::flex(), generator);
    Model::init(&transformer(), &OBSERVATIONS, &ActionSpace::unit(1), init).unwrap()
}

fn newest(model: &Model, asked: f32) -> Vec<f32> {
    model.newest(&contexts(asked)).into_data().iter().collect()
}

#[test]
fn what_is_beyond_a_state_is_not_asked_for() {
    let free = model();
    let bound = model().asking_at_most(0.5).unwrap();
    assert_ne!(newest(&free, 9.0), newest(&free, 10.0));
    assert_eq!(newest(&bound, 9.0), newest(&bound, 10.0), "both are the state's median");
    assert_ne!(newest(&bound, 10.0), newest(&free, 10.0));
    // Far below the median of any state: what is asked for.
    assert_eq!(newest(&bound, 0.5), newest(&free, 0.5));
    assert_ne!(newest(&bound, 0.5), newest(&bound, 0.0));
    let higher = model().asking_at_most(0.9).unwrap();
    assert_ne!(newest(&bound, 10.0), newest(&higher, 10.0));
    // Beyond the range no state has a quantile: its ends are told.
    assert_eq!(newest(&free, 100.0), newest(&free, 10.0));
    assert_eq!(newest(&free, -100.0), newest(&free, 0.0));
}

#[test]
fn the_loss_is_of_actions_and_of_what_is_left_to_earn() {
    let device = Device::flex().autodiff();
    let generator = &mut seed::generator(5, "init");
    let init = &mut Init::drawn(&device, generator);
    let model = Model::init(&transformer(), &OBSERVATIONS, &ActionSpace::unit(1), init).unwrap();
    let at = |asked: f32| {
        let Contexts { timesteps, n_padding, returns_to_go, .. } = contexts(asked);
        let inside = |tensor: Tensor<2>| Tensor::from_data(tensor.into_data(), &device);
        let seen = Tensor::<2>::from_data([[0.3f32, -1.0], [0.1, 0.2], [1.5, 0.4]], &device);
        Contexts {
            observations: Observed::Vectors(seen.reshape([1, 3, 2])),
            returns_to_go: inside(returns_to_go),
            actions: Acted::Continuous(Tensor::zeros([1, 3, 1], &device)),
            timesteps,
            n_padding,
            best: Vec::new(),
        }
    };
    let loss = model.loss(&at(4.0), None);
    let more: f64 = (loss.total - loss.action).into_scalar();
    let Model::Transformer(transformer) = &model else { unreachable!() };
    let returns = transformer.return_model.as_ref().unwrap();
    let Observed::Vectors(seen) = at(4.0).observations else { unreachable!() };
    // 4 of 0 to 10 is told as -0.2.
    let alone = returns.loss(seen, Tensor::full([1, 3], -0.2, &device)).mean();
    let expected = 1e-3 * alone.into_scalar::<f64>();
    assert!((more - expected).abs() < 1e-3 * expected.abs(), "{more} for {expected}");
    // What is told in training lies where quantiles do.
    let of_actions = |asked| model.loss(&at(asked), None).action.into_scalar::<f64>();
    assert_eq!(of_actions(1000.0), of_actions(10.0));
    assert_ne!(of_actions(10.0), of_actions(9.0));
}

#[test]
fn quantiles_are_for_agents_that_know_returns() {
    for wrong in [0.0, 1.0, -0.5, f64::NAN] {
        let error = model().asking_at_most(wrong).unwrap_err().to_string();
        assert!(error.starts_with("return_quantile = "), "{error}");
    }
    let ModelConfig::Transformer(config) = transformer() else { unreachable!() };
    let without =
        ModelConfig::Transformer(DecisionTransformerConfig { return_model: None, ..config });
    let generator = &mut seed::generator(5, "init");
    let init = &mut Init::drawn(&Device::flex(), generator);
    let without = Model::init(&without, &OBSERVATIONS, &ActionSpace::unit(1), init).unwrap();
    let play = Play { return_quantile: 0.9, ..Play::matched(Simulation::default()) };
    assert!(ModelPolicy::new(&model(), None, &play).is_ok());
    let error = ModelPolicy::new(&without, None, &play).err().unwrap().to_string();
    assert!(error.contains("model.return_head"), "{error}");
}
