//! Every head with every attention learns: a few steps on one batch lower its loss.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use overtone_core::seed;
use overtone_model::{
    AttentionConfig, Conditioning, DecisionTransformer, FourierAttentionConfig, HeadConfig, Inputs,
    ModelConfig, RShape,
    decision_transformer::{Form, Frames},
    head::{FourierHeadConfig, GmmHeadConfig},
    weights,
};
use overtone_train::{AdamW, AdamWConfig, Decayed, optimizer::scalar};
use rand::RngExt;

const BATCH: usize = 3;
const CONTEXT: usize = 4;
const N_ACTIONS: usize = 6;
const N_STEPS: usize = 8;

fn heads() -> [HeadConfig; 3] {
    let fourier = FourierHeadConfig { gamma: 1e-6, ..FourierHeadConfig::new(4) };
    let gmm = GmmHeadConfig { components: 2, action_order: None };
    [HeadConfig::Linear, HeadConfig::Fourier(fourier), HeadConfig::Gmm(gmm)]
}

fn attentions() -> Vec<AttentionConfig> {
    let mut attentions = vec![AttentionConfig::Softmax];
    for power in [2, 4, 6] {
        for r in [RShape::Scalar, RShape::PerHead, RShape::PerDimension] {
            for epsilon in [0.0, 1e-6] {
                let fourier = FourierAttentionConfig { power, r, initial: 1.0, epsilon };
                attentions.push(AttentionConfig::Fourier(fourier));
            }
        }
    }
    attentions
}

/// Random contexts, one of them padded.
fn batch(device: &Device) -> (Frames, Inputs) {
    let mut generator = seed::generator(7, "batch");
    let shape = [BATCH, CONTEXT + 3, 84, 84];
    let pixels: Vec<u8> =
        (0..shape.iter().product::<usize>()).map(|_| generator.random()).collect();
    let n = BATCH * CONTEXT;
    let actions: Vec<i32> = (0..n).map(|_| generator.random_range(0..N_ACTIONS as i32)).collect();
    let returns: Vec<f32> = (0..n).map(|i| (n - i) as f32 / n as f32).collect();
    let frames = Tensor::<4, Int>::from_data(TensorData::new(pixels, shape), (device, DType::U8));
    let inputs = Inputs {
        actions: Tensor::from_data(TensorData::new(actions, [BATCH, CONTEXT]), device),
        returns_to_go: Tensor::from_data(TensorData::new(returns, [BATCH, CONTEXT]), device),
        global_timesteps: Tensor::from_data([0i32, 3, 1], device),
        n_padding: vec![0, 2, 0],
    };
    (Frames::Windows(frames), inputs)
}

fn model(head: HeadConfig, attention: AttentionConfig, form: Form) -> DecisionTransformer {
    let config = ModelConfig {
        n_layers: 2,
        n_heads: 2,
        d_model: 32,
        context_length: CONTEXT,
        n_actions: N_ACTIONS,
        max_timestep: 10,
        dropout: 0.0,
        conditioning: Conditioning::Return,
        attention,
        head,
    };
    let device = Device::flex().autodiff();
    let mut generator = seed::generator(1, "init");
    let model = DecisionTransformer::init(&config, &device, &mut generator).unwrap();
    DecisionTransformer { form, ..model }
}

/// The loss before each step and after the last, and the trained model.
fn train(mut model: DecisionTransformer) -> (Vec<f64>, DecisionTransformer) {
    let mut adam = AdamW::new(AdamWConfig {
        beta_1: 0.9,
        beta_2: 0.95,
        epsilon: 1e-8,
        weight_decay: 0.1,
        decayed: Decayed::Matrices,
        clip_norm: 1.0,
    });
    let (frames, inputs) = batch(&Device::flex().autodiff());
    let mut losses = Vec::new();
    for _ in 0..N_STEPS {
        let loss = model.loss(frames.clone(), &inputs, None).total;
        losses.push(scalar(loss.clone().inner()));
        let (moved, norm) = adam.step(model, loss.backward(), 3e-3);
        assert!(scalar(norm).is_finite());
        model = moved;
    }
    losses.push(scalar(model.loss(frames, &inputs, None).total.inner()));
    (losses, model)
}

#[test]
fn every_head_learns_with_every_attention() {
    for head in heads() {
        for attention in attentions() {
            let (losses, trained) = train(model(head.clone(), attention, Form::Auto));
            let what = format!("{head:?}, {attention:?}: {losses:?}");
            assert!(losses.iter().all(|loss| loss.is_finite()), "{what}");
            assert!(losses[N_STEPS] < 0.9 * losses[0], "{what}");
            for (name, tensor) in weights::export(&trained) {
                assert!(tensor.iter::<f64>().all(f64::is_finite), "{name}: {what}");
            }
        }
    }
}

/// Every `R` of every layer has a gradient and moves.
#[test]
fn every_r_is_learned() {
    for attention in attentions() {
        let before = model(HeadConfig::Linear, attention, Form::Auto);
        let names = weights::export(&before);
        let names: Vec<_> = names.keys().filter(|name| name.ends_with("fourier_r")).collect();
        let AttentionConfig::Fourier(fourier) = attention else {
            assert!(names.is_empty(), "{names:?}");
            continue;
        };
        assert_eq!(names, ["blocks.0.fourier_r", "blocks.1.fourier_r"]);
        let (_, trained) = train(before);
        for (name, tensor) in weights::export(&trained) {
            if name.ends_with("fourier_r") {
                assert_eq!(tensor.shape()[..], fourier.r.dims(2, 16), "{name}");
                assert!(tensor.iter::<f64>().all(|r| r != fourier.initial), "{name}: {fourier:?}");
            }
        }
    }
}

/// The fused operations follow the plain ones.
#[test]
fn forms_learn_alike() {
    let attention = attentions()[7];
    let losses = |form| train(model(HeadConfig::Linear, attention, form)).0;
    let [fused, plain] = [Form::Auto, Form::Reference].map(losses);
    assert_ne!(fused, plain, "the fused form did not run");
    for (fused, plain) in fused.iter().zip(&plain) {
        assert!((fused - plain).abs() < 1e-3 * plain, "{fused} against {plain}");
    }
}
