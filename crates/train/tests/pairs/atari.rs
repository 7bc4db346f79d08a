//! The Atari model.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use overtone_core::seed;
use overtone_model::{
    AttentionConfig, Conditioning, DecisionTransformer, HeadConfig, Inputs, ModelConfig,
    decision_transformer::{Form, Frames},
    head::{FourierHeadConfig, GmmHeadConfig},
};
use overtone_train::Decayed;
use rand::RngExt;

use crate::{BATCH, CONTEXT, attentions, check_learned, check_r, reloaded};

const N_ACTIONS: usize = 6;

fn heads() -> [HeadConfig; 3] {
    let fourier = FourierHeadConfig { gamma: 1e-6, ..FourierHeadConfig::new(4) };
    let gmm = GmmHeadConfig { components: 2, action_order: None };
    [HeadConfig::Linear, HeadConfig::Fourier(fourier), HeadConfig::Gmm(gmm)]
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

fn train(model: DecisionTransformer) -> (Vec<f64>, DecisionTransformer) {
    let (frames, inputs) = batch(&Device::flex().autodiff());
    crate::train(model, Decayed::Matrices, |model| model.loss(frames.clone(), &inputs, None).total)
}

fn logits(model: &DecisionTransformer) -> Vec<f32> {
    let (frames, inputs) = batch(&Device::flex().autodiff());
    model.logits(frames, &inputs).into_data().iter().collect()
}

#[test]
fn every_head_learns_with_every_attention() {
    for head in heads() {
        for attention in attentions() {
            let (losses, trained) = train(model(head.clone(), attention, Form::Auto));
            check_learned((&head, attention), &losses, &trained);
        }
    }
}

/// Every `R` of every layer has a gradient and moves.
#[test]
fn every_r_is_learned() {
    for attention in attentions() {
        let (_, trained) = train(model(HeadConfig::Linear, attention, Form::Auto));
        check_r(attention, &trained);
    }
}

/// What is saved and loaded again gives the same logits.
#[test]
fn files_lose_nothing() {
    for head in heads() {
        for attention in [attentions()[0], attentions()[7]] {
            let (_, trained) = train(model(head.clone(), attention, Form::Auto));
            let fresh = model(head.clone(), attention, Form::Auto);
            assert_ne!(logits(&fresh), logits(&trained));
            assert_eq!(logits(&reloaded(&trained, fresh)), logits(&trained));
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
