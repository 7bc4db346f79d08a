//! A return that scales and shifts what the head reads: what it is before the first step, and that
//! returns before the newest do not matter.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use burn::tensor::{Device, Tensor, TensorData};
use overtone_core::{ActionSpace, ObservationSpace, seed};
use overtone_model::{
    Acted, AttentionConfig, Conditioning, Contexts, DecisionTransformer, DecisionTransformerConfig,
    FourierKernel, Init, Observed, contexts::timesteps_from, tokens::Steps,
};
use rand::RngExt;

const TIME: usize = 5;

fn model(conditioning: Conditioning, attention: AttentionConfig) -> DecisionTransformer {
    let config = DecisionTransformerConfig {
        d_model: 16,
        context_length: TIME,
        conditioning,
        attention,
        ..DecisionTransformerConfig::gym(9)
    };
    let generator = &mut seed::generator(1, "init");
    let init = &mut Init::drawn(&Device::flex(), generator);
    let observations = ObservationSpace::Vectors { width: 3 };
    DecisionTransformer::init(&config, &observations, &ActionSpace::unit(2), init).unwrap()
}

fn contexts(returns: [[f32; TIME]; 2]) -> Contexts {
    let mut generator = seed::generator(2, "contexts");
    let mut random = |width: usize| -> Tensor<3> {
        let values = (0..2 * TIME * width).map(|_| generator.random_range(-1.0f32..1.0)).collect();
        Tensor::from_data(TensorData::new(values, [2, TIME, width]), &Device::flex())
    };
    let n_padding = vec![0, 2];
    Contexts {
        observations: Observed::Vectors(random(3)),
        actions: Acted::Continuous(random(2)),
        returns_to_go: Tensor::from_data(returns, &Device::flex()),
        timesteps: timesteps_from(&[3, 0], &n_padding, TIME),
        n_padding,
        best: Vec::new(),
    }
}

fn bits(model: &DecisionTransformer, contexts: &Contexts, steps: Steps) -> Vec<u32> {
    model.hidden(contexts, steps, None).into_data().iter::<f32>().map(f32::to_bits).collect()
}

const RETURNS: [[f32; TIME]; 2] = [[3.0, 2.5, 2.0, 1.5, 1.0], [0.0, 0.0, 4.0, 3.0, 2.0]];

/// The same seed gives the same weights: what is new begins with zeros.
#[test]
fn before_the_first_step_it_is_behaviour_cloning() {
    for attention in [AttentionConfig::SOFTMAX, AttentionConfig::Fourier(FourierKernel::default())]
    {
        let told = model(Conditioning::Adaln, attention);
        let cloning = model(Conditioning::None, attention);
        let contexts = contexts(RETURNS);
        let all = bits(&told, &contexts, Steps::All);
        assert_eq!(all, bits(&cloning, &contexts, Steps::All));
    }
}

/// Bit for bit, where the newest action is decided; and the newest return does matter.
#[test]
fn returns_before_the_newest_do_not_matter() {
    let mut model = model(Conditioning::Adaln, AttentionConfig::SOFTMAX);
    let generator = &mut seed::generator(3, "shown");
    let init = &mut Init::drawn(&Device::flex(), generator);
    model.modulation.as_mut().unwrap().weight = init.normal([1, 32], 0.5);
    let newest = bits(&model, &contexts(RETURNS), Steps::Newest);
    let mut earlier = RETURNS;
    earlier.iter_mut().for_each(|row| row[..TIME - 1].fill(-7.0));
    assert_eq!(newest, bits(&model, &contexts(earlier), Steps::Newest));
    let mut later = RETURNS;
    later.iter_mut().for_each(|row| row[TIME - 1] += 0.5);
    let moved = bits(&model, &contexts(later), Steps::Newest);
    let d_model = model.config.d_model;
    for row in 0..2 {
        let row = row * d_model..(row + 1) * d_model;
        assert_ne!(newest[row.clone()], moved[row]);
    }
}

/// What a policy computes at the newest step alone is what the whole context has there.
#[test]
fn the_newest_step_is_the_whole_context_s_last() {
    let mut model = model(Conditioning::Adaln, AttentionConfig::SOFTMAX);
    let generator = &mut seed::generator(3, "shown");
    let init = &mut Init::drawn(&Device::flex(), generator);
    model.modulation.as_mut().unwrap().weight = init.normal([1, 32], 0.5);
    let contexts = contexts(RETURNS);
    let numbers = |steps| -> Vec<f32> {
        model.hidden(&contexts, steps, None).into_data().iter::<f32>().collect()
    };
    let (all, newest) = (numbers(Steps::All), numbers(Steps::Newest));
    for row in 0..2 {
        let whole = &all[((row + 1) * TIME - 1) * 16..][..16];
        for (whole, newest) in whole.iter().zip(&newest[row * 16..]) {
            assert!((whole - newest).abs() < 1e-6, "{whole} against {newest}");
        }
    }
}
