//! The model on vectors and real-valued actions.

use burn::tensor::{Device, Tensor, TensorData};
use overtone_core::seed;
use overtone_model::{
    AttentionConfig, Conditioning, ContinuousDecisionTransformer, ContinuousInputs,
    ContinuousModelConfig,
    continuous_decision_transformer::Form,
    head::{ContinuousHeadConfig, Domain, FourierLikelihoodConfig, GmmLikelihoodConfig},
    tokens::Steps,
};
use overtone_train::Decayed;
use rand::RngExt;

use crate::{BATCH, CONTEXT, attentions, check_learned, check_r, reloaded};

const OBSERVATION_WIDTH: usize = 5;
const ACTION_WIDTH: usize = 2;

fn heads() -> [ContinuousHeadConfig; 6] {
    let fourier = |domain| {
        let plain = FourierLikelihoodConfig::new(4);
        ContinuousHeadConfig::Fourier(FourierLikelihoodConfig { gamma: 1e-6, domain, ..plain })
    };
    [
        ContinuousHeadConfig::Tanh,
        ContinuousHeadConfig::Pointwise,
        ContinuousHeadConfig::Gaussian,
        fourier(Domain::Periodic),
        fourier(Domain::HalfRange),
        ContinuousHeadConfig::Gmm(GmmLikelihoodConfig { components: 2 }),
    ]
}

/// Random contexts, one of them padded.
fn batch() -> ContinuousInputs {
    let device = Device::flex().autodiff();
    let mut generator = seed::generator(7, "batch");
    let mut random = |width: usize| -> Tensor<3> {
        let n = BATCH * CONTEXT * width;
        let values: Vec<f32> = (0..n).map(|_| generator.random_range(-1.0..1.0)).collect();
        Tensor::from_data(TensorData::new(values, [BATCH, CONTEXT, width]), &device)
    };
    ContinuousInputs {
        observations: random(OBSERVATION_WIDTH),
        actions: random(ACTION_WIDTH),
        returns_to_go: random(1).squeeze_dim::<2>(2),
        timesteps: Tensor::from_data([[3i32, 4, 5, 6], [0, 0, 0, 1], [7, 8, 9, 10]], &device),
        n_padding: vec![0, 2, 0],
    }
}

fn model(
    head: ContinuousHeadConfig,
    attention: AttentionConfig,
    conditioning: Conditioning,
) -> ContinuousDecisionTransformer {
    let config = ContinuousModelConfig {
        n_layers: 2,
        n_heads: 2,
        d_model: 32,
        context_length: CONTEXT,
        dropout: 0.0,
        conditioning,
        attention,
        head,
        // The last context goes beyond it.
        ..ContinuousModelConfig::gym(OBSERVATION_WIDTH, ACTION_WIDTH, 9)
    };
    let device = Device::flex().autodiff();
    let mut generator = seed::generator(1, "init");
    ContinuousDecisionTransformer::init(&config, &device, &mut generator).unwrap()
}

fn train(model: ContinuousDecisionTransformer) -> (Vec<f64>, ContinuousDecisionTransformer) {
    let inputs = batch();
    crate::train(model, Decayed::Everything, |model| model.loss(&inputs, None).total)
}

/// The most probable actions of the batch.
fn actions(model: &ContinuousDecisionTransformer) -> Vec<f64> {
    let hidden = model.hidden(&batch(), Steps::All, None);
    let [batch, time, d_model] = hidden.dims();
    model.head.mode(hidden.reshape([batch * time, d_model]))
}

/// Trained, saved and loaded again, every pair predicts what it has learned to predict.
#[test]
fn every_head_learns_with_every_attention_and_files_lose_nothing() {
    for head in heads() {
        for attention in attentions() {
            for conditioning in [Conditioning::Return, Conditioning::None] {
                let fresh = model(head.clone(), attention, conditioning);
                let (losses, trained) = train(fresh.clone());
                check_learned((&head, attention, conditioning), &losses, &trained);
                assert_ne!(actions(&fresh), actions(&trained));
                assert_eq!(actions(&reloaded(&trained, fresh)), actions(&trained));
            }
        }
    }
}

/// Every `R` of every layer has a gradient and moves.
#[test]
fn every_r_is_learned() {
    for attention in attentions() {
        let fresh = model(ContinuousHeadConfig::Tanh, attention, Conditioning::Return);
        check_r(attention, &train(fresh).1);
    }
}

/// The fused operations follow the plain ones.
#[test]
fn forms_learn_alike() {
    for attention in [attentions()[0], attentions()[7]] {
        let fresh = model(ContinuousHeadConfig::Tanh, attention, Conditioning::Return);
        let losses = |form| train(ContinuousDecisionTransformer { form, ..fresh.clone() }).0;
        let [fused, plain] = [Form::Auto, Form::Reference].map(losses);
        assert_ne!(fused, plain, "the fused form did not run");
        for (fused, plain) in fused.iter().zip(&plain) {
            assert!((fused - plain).abs() < 1e-3 * plain, "{fused} against {plain}");
        }
    }
}
