//! A return model learns the distribution of returns from a state, and bounds an agent's target by it.

#![allow(clippy::unwrap_used, reason = "a test's helpers may")]

use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData},
};
use overtone_core::{ActingMode, ActionSpace, ObservationSpace, Play, Simulation, seed};
use overtone_model::{
    Acted, Conditioner, ConditionerConfig, Contexts, DecisionTransformerConfig, Init, Model,
    ModelConfig, ModelError, ModelPolicy, Observed, ReturnModel, ReturnModelConfig,
    init::standard_normal,
};
use overtone_testkit::check_error;

mod descent;

const OBSERVATIONS: ObservationSpace = ObservationSpace::Vectors { width: 2 };

/// Two arms, one-hot: mean and standard deviation of their normal returns.
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
    let config = ReturnModelConfig { width: 32, ..ReturnModelConfig::hl_gauss() };
    let device = Device::flex().autodiff();
    let generator = &mut seed::generator(3, "init");
    let model =
        ReturnModel::init(&config, &OBSERVATIONS, &mut Init::drawn(&device, generator)).unwrap();
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
            assert!(error < 0.02, "{q} of arm {arm}: {} for {expected}", got[arm]);
            assert!(got[arm] > before[arm], "quantiles rise with q");
            before[arm] = got[arm];
        }
    }
}

fn conditioning() -> ConditionerConfig {
    let (return_range, return_model) = (Some([0.0, 10.0]), Some(ReturnModelConfig::hl_gauss()));
    ConditionerConfig { return_range, return_model, ..ConditionerConfig::default() }
}

fn transformer() -> ModelConfig {
    ModelConfig::Transformer(DecisionTransformerConfig {
        d_model: 16,
        n_layers: 1,
        context_length: 3,
        conditioning: Some(conditioning()),
        ..DecisionTransformerConfig::gym(20)
    })
}

fn contexts(target: f32, device: &Device) -> Contexts {
    let observations = [[[0.3f32, -1.0], [0.1, 0.2], [1.5, 0.4]]];
    Contexts {
        observations: Observed::Vectors(Tensor::from_data(observations, device)),
        returns_to_go: Tensor::full([1, 3], target, device),
        actions: Acted::Continuous(Tensor::zeros([1, 3, 1], device)),
        timesteps: vec![0, 1, 2],
        n_padding: vec![0],
        step_weights: Vec::new(),
        penalties: None,
        top_percent_idx: Vec::new(),
        stored: None,
    }
}

fn models(config: &ModelConfig, device: &Device) -> (Model, ReturnModel) {
    let generator = &mut seed::generator(5, "init");
    let init = &mut Init::drawn(device, generator);
    let model = Model::init(config, &OBSERVATIONS, &ActionSpace::unit(1), init).unwrap();
    (model, ReturnModel::init(&ReturnModelConfig::hl_gauss(), &OBSERVATIONS, init).unwrap())
}

fn play(return_quantile: f32) -> Play {
    let acting = ActingMode { return_quantile, ..ActingMode::default() };
    Play { acting, ..Play::matched(Simulation::default()) }
}

/// The model's input at the newest step of an agent with this quantile.
fn newest(target: f32, return_quantile: f32) -> Vec<f32> {
    let (model, returns) = models(&transformer(), &Device::flex());
    let play = play(return_quantile);
    let conditioner = Conditioner::new(Some(&conditioning()), Some(&returns), &play).unwrap();
    let conditioner = conditioner.unwrap();
    let contexts = conditioner.condition(contexts(target, &Device::flex()));
    model.newest(&contexts).into_data().iter().collect()
}

#[test]
fn a_target_beyond_a_state_becomes_its_quantile() {
    assert_ne!(newest(9.0, 1.0), newest(10.0, 1.0));
    assert_eq!(newest(9.0, 0.5), newest(10.0, 0.5), "both are the state's median");
    assert_ne!(newest(10.0, 0.5), newest(10.0, 1.0));
    // Far below the median of any state, the target stays.
    assert_eq!(newest(0.5, 0.5), newest(0.5, 1.0));
    assert_ne!(newest(0.5, 0.5), newest(0.0, 0.5));
    assert_ne!(newest(10.0, 0.5), newest(10.0, 0.9));
    // Beyond the range, states have no quantile: the ends replace it.
    assert_eq!(newest(100.0, 1.0), newest(10.0, 1.0));
    assert_eq!(newest(-100.0, 1.0), newest(0.0, 1.0));
}

/// Padding and contexts of a top percent are not in any mean.
#[test]
fn the_mean_loss_covers_real_timesteps_of_all_episodes() {
    let device = Device::flex();
    let (_, returns) = models(&transformer(), &device);
    // 4 of 0 to 10 is -0.2.
    let conditioned = conditioning().condition(contexts(4.0, &device));
    let Observed::Vectors(observations) = &conditioned.observations else { unreachable!() };
    let rows: Vec<f64> = returns
        .loss(observations.clone(), Tensor::full([1, 3], -0.2, &device))
        .into_data()
        .iter()
        .collect();
    let mean = |contexts: Contexts| returns.mean_loss(&contexts).into_scalar::<f64>();
    let all = mean(conditioned.clone());
    assert!((all - rows.iter().sum::<f64>() / 3.0).abs() < 1e-6, "{all}, {rows:?}");
    let padded = mean(Contexts { n_padding: vec![1], ..conditioned.clone() });
    assert!((padded - (rows[1] + rows[2]) / 2.0).abs() < 1e-6, "{padded}, {rows:?}");
    assert_eq!(mean(Contexts { top_percent_idx: vec![Some(0)], ..conditioned }), 0.0);
}

#[test]
fn quantiles_are_for_agents_with_a_return_model() {
    let (model, returns) = models(&transformer(), &Device::flex());
    let refused = |model: &Model, returns: Option<&ReturnModel>, quantile| {
        let policy = ModelPolicy::new(model, returns, None, &play(quantile));
        policy.err().unwrap()
    };
    for wrong in [0.0, 1.5, -0.5, f32::NAN] {
        let error = refused(&model, Some(&returns), wrong);
        check_error!(error, ModelError::Config { key, .. } if key == "return_quantile");
    }
    assert!(ModelPolicy::new(&model, Some(&returns), None, &play(0.9)).is_ok());
    // A target without quantile does not need one.
    assert!(ModelPolicy::new(&model, None, None, &play(1.0)).is_ok());
    let error = refused(&model, None, 0.9);
    check_error!(error, ModelError::Config { key, .. } if key == "return_quantile");
    let ModelConfig::Transformer(config) = transformer() else { unreachable!() };
    let conditioning = Some(ConditionerConfig { return_model: None, ..conditioning() });
    let without = ModelConfig::Transformer(DecisionTransformerConfig { conditioning, ..config });
    let (without, _) = models(&without, &Device::flex());
    let error = refused(&without, None, 0.9).to_string();
    assert!(error.contains("model.return_head"), "{error}");
}
