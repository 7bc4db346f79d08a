//! Learning of a toy task with a known optimum.
//!
//! One timestep, one observation that shows a bright left or right half, a return-to-go of 0 or 1.
//! The logged action is `2·side + return` with probability 0.9, else the next action. So the best
//! cross-entropy is the entropy of (0.9, 0.1), 0.325 nats, and a higher target return selects the
//! action that achieves it.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use overtone_core::{ActionSpace, ObservationSpace, seed};
use overtone_model::{
    Acted, ConditionerConfig, Contexts, DecisionTransformer, DecisionTransformerConfig,
    DropoutSeed, HeadConfig, Init, Observed,
    head::{FourierHeadConfig, InitialCoefficients, LinearConfig},
};
use overtone_train::{AdamW, AdamWConfig, optimizer::scalar};
use rand::RngExt;

const BATCH: usize = 40;
const N_ACTIONS: usize = 6;

/// The bright side and the target return of row `i`: all four combinations.
fn case(row: usize) -> (usize, usize) {
    (row % 2, row / 2 % 2)
}

fn batch(device: &Device, actions: Vec<i32>) -> Contexts {
    let rows = actions.len();
    let mut pixels = Vec::with_capacity(rows * 4 * 84 * 84);
    for row in 0..rows {
        let (side, _) = case(row);
        for pixel in 0..4 * 84 * 84 {
            pixels.push(if usize::from(pixel % 84 >= 42) == side { 255u8 } else { 0 });
        }
    }
    let returns: Vec<f32> = (0..rows).map(|row| case(row).1 as f32).collect();
    let frames = Tensor::<4, Int>::from_data(
        TensorData::new(pixels, [rows, 4, 84, 84]),
        (device, DType::U8),
    );
    let actions = TensorData::new(actions, [rows, 1]);
    Contexts {
        observations: Observed::Frames(frames),
        actions: Acted::Discrete(Tensor::from_data(actions, device)),
        returns_to_go: Tensor::from_data(TensorData::new(returns, [rows, 1]), device),
        timesteps: vec![0; rows],
        n_padding: vec![0; rows],
        step_weights: Vec::new(),
        penalties: None,
        top_percent_idx: Vec::new(),
        stored: None,
    }
}

fn learn(head: HeadConfig, conditioning: Option<ConditionerConfig>) -> (f64, Vec<usize>) {
    let device = Device::flex().autodiff();
    let config = DecisionTransformerConfig {
        n_layers: 1,
        n_heads: 2,
        d_model: 32,
        context_length: 1,
        dropout: 0.0,
        conditioning,
        head,
        ..DecisionTransformerConfig::atari(1)
    };
    let observations = ObservationSpace::Pixels { shape: vec![4, 84, 84] };
    let generator = &mut seed::generator(1, "init");
    let init = &mut Init::drawn(&device, generator);
    let actions = ActionSpace::numbered(N_ACTIONS);
    let mut model = DecisionTransformer::init(&config, &observations, &actions, init).unwrap();
    let mut adam = AdamW::new(AdamWConfig { beta_2: 0.95, ..AdamWConfig::default() });
    // Exactly one row in ten of each case is the other action.
    let actions: Vec<i32> = (0..BATCH)
        .map(|row| {
            let (side, to_go) = case(row);
            (2 * side + to_go + usize::from(row < 4)) as i32
        })
        .collect();
    let contexts = batch(&device, actions);
    let mut order = seed::generator(2, "rate");
    for step in 0..150 {
        let loss = model.loss(&contexts, Some(DropoutSeed::new(order.random(), &device))).total;
        let rate = 5e-3 * (1.0 - f64::from(step) / 150.0);
        let (moved, _) = adam.step(model.clone(), loss.backward(), rate);
        model = moved;
    }
    let last = scalar(model.loss(&contexts, None).action.inner());
    let best = model.logits(&batch(&device, vec![0; 4])).unwrap().inner().argmax(2).into_data();
    (last, best.iter::<i64>().map(|action| action as usize).collect())
}

/// Entropy of (0.9, 0.1) in nats.
const OPTIMUM: f64 = 0.325_083;

#[track_caller]
fn check_return_conditioned(head: HeadConfig) {
    let (loss, best) = learn(head, Some(ConditionerConfig::default()));
    assert!(loss > OPTIMUM - 1e-4, "below the entropy of the data: {loss}");
    assert!(loss < OPTIMUM + 0.02, "not learned: {loss}");
    let expected: Vec<usize> = (0..4).map(case).map(|(side, to_go)| 2 * side + to_go).collect();
    assert_eq!(best, expected, "the action for the target of each case");
}

#[test]
fn a_linear_head_reaches_the_optimum() {
    check_return_conditioned(HeadConfig::Linear(LinearConfig {}));
}

#[test]
fn a_fourier_head_reaches_the_optimum() {
    check_return_conditioned(HeadConfig::Fourier(FourierHeadConfig::new(5)));
}

/// Its first step moves the head alone; then the rest follows.
#[test]
fn a_fourier_head_reaches_the_optimum_from_the_uniform_density() {
    check_return_conditioned(HeadConfig::Fourier(FourierHeadConfig {
        initial: InitialCoefficients::UniformDensity,
        ..FourierHeadConfig::new(5)
    }));
}

/// Without return tokens, the model cannot distinguish the returns: each side's actions have the
/// probabilities 0.45, 0.5, 0.05 (or the mirror image), 0.856 nats.
#[test]
fn behaviour_cloning_cannot_distinguish_returns() {
    let (loss, _) = learn(HeadConfig::Linear(LinearConfig {}), None);
    let entropy: f64 = [0.45f64, 0.5, 0.05].iter().map(|p| -p * p.ln()).sum();
    assert!((loss - entropy).abs() < 0.03, "{loss} against {entropy}");
}
