//! The operations of one Atari training step (16 windows of 30 steps; width 128, 8 heads,
//! 90 tokens, dropout 0.1): forward and backward, fused and in plain tensors.
//!
//! Each fused operation is first compared with the reference.

use std::cell::Cell;

use burn::tensor::{DType, Device, Distribution, Int, Tensor, TensorData};
use divan::Bencher;
use divan::counter::ItemsCount;
use overtone_kernels::{
    Activation, AdamW, AdamWState, AttentionOptions, AttentionWeights, Dropout, Form, MlpWeights,
    NatureWeights, Queries, Score, TensorSlot, attention_block, mlp_block, nature_encoder,
};

const BATCH: usize = 16;
const STEPS: usize = 30;
const TOKENS: usize = 3 * STEPS;
const D: usize = 128;
const FORMS: [Form; 2] = [Form::Auto, Form::Reference];

fn main() {
    compare("encoder", |form| (encoder(form), Vec::new()));
    compare("attention", attention);
    compare("fourier attention", fourier_attention);
    compare("mlp", mlp);
    divan::main();
}

/// Checks that both forms give the same output, and the same gradient of `x` if there is one: the
/// encoder's frames have no gradient.
fn compare(name: &str, operation: impl Fn(Form) -> (Tensor<1>, Vec<f32>)) {
    let [fused, reference] = FORMS.map(&operation);
    let apart = (fused.0 - reference.0).abs().max().into_scalar::<f32>();
    assert!(apart < 1e-4, "{name}: outputs {apart} apart");
    let by_x = fused.1.iter().zip(&reference.1).map(|(a, b)| (a - b).abs());
    let apart = by_x.fold(0.0f32, f32::max);
    assert!(apart < 1e-3, "{name}: gradients {apart} apart");
}

fn parameter<const N: usize>(shape: [usize; N], size: f64) -> Tensor<N> {
    let device = Device::flex().autodiff();
    Tensor::random(shape, Distribution::Uniform(-size, size), &device).require_grad()
}

fn frames() -> Tensor<4, Int> {
    let n = BATCH * (STEPS + 3) * 84 * 84;
    let pixels: Vec<u8> = (0..n).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let data = TensorData::new(pixels, [BATCH, STEPS + 3, 84, 84]);
    Tensor::from_data(data, (&Device::flex(), DType::U8))
}

fn nature_weights() -> NatureWeights {
    NatureWeights {
        conv1_weight: parameter([32, 4, 8, 8], 0.06),
        conv1_bias: parameter([32], 0.06),
        conv2_weight: parameter([64, 32, 4, 4], 0.04),
        conv2_bias: parameter([64], 0.04),
        conv3_weight: parameter([64, 64, 3, 3], 0.04),
        conv3_bias: parameter([64], 0.04),
        linear_weight: parameter([3136, D], 0.018),
        linear_bias: parameter([D], 0.018),
    }
}

fn attention_weights() -> AttentionWeights {
    AttentionWeights {
        norm_weight: parameter([D], 1.0),
        norm_bias: parameter([D], 0.1),
        qkv_weight: parameter([D, 3 * D], 0.1),
        qkv_bias: parameter([3 * D], 0.1),
        projection_weight: parameter([D, D], 0.1),
        projection_bias: parameter([D], 0.1),
        score_parameter: None,
    }
}

/// One `R`, as in the paper's main experiments.
fn fourier_weights() -> AttentionWeights {
    let one = Tensor::ones([1, 1], &Device::flex().autodiff()).require_grad();
    AttentionWeights { score_parameter: Some(one), ..attention_weights() }
}

const FOURIER: Score<'_> = Score::Fourier { power: 4, epsilon: 0.0 };

fn mlp_weights() -> MlpWeights {
    MlpWeights {
        norm_weight: parameter([D], 1.0),
        norm_bias: parameter([D], 0.1),
        up_weight: parameter([D, 4 * D], 0.1),
        up_bias: parameter([4 * D], 0.1),
        down_weight: parameter([4 * D, D], 0.1),
        down_bias: parameter([D], 0.1),
    }
}

thread_local! {
    static SEED: Cell<u64> = const { Cell::new(0) };
}

fn options(form: Form) -> AttentionOptions<'static> {
    let step_seed = Tensor::from_data(Dropout::words(SEED.get()), &Device::flex().autodiff());
    let dropout = Some(Dropout { probability: 0.1, step_seed, nth: 0 });
    AttentionOptions {
        n_heads: 8,
        score: Score::DotProduct,
        queries: Queries::ALL,
        first_token: None,
        dropout,
        form,
    }
}

fn seeded() {
    Device::flex().seed(3);
}

fn encoder(form: Form) -> Tensor<1> {
    seeded();
    let out = nature_encoder(frames(), nature_weights(), form);
    out.inner().flatten(0, 1)
}

fn differentiate(x: &Tensor<3>, out: Tensor<3>) -> (Tensor<1>, Vec<f32>) {
    let gradients = out.clone().powi_scalar(2).mean().backward();
    let by_x = x.grad(&gradients).expect("x is tracked");
    (out.inner().flatten(0, 2), by_x.into_data().iter().collect())
}

fn attention(form: Form) -> (Tensor<1>, Vec<f32>) {
    seeded();
    let x = parameter([BATCH, TOKENS, D], 1.0);
    differentiate(&x, attention_block(x.clone(), attention_weights(), options(form)))
}

fn fourier_attention(form: Form) -> (Tensor<1>, Vec<f32>) {
    seeded();
    let x = parameter([BATCH, TOKENS, D], 1.0);
    let options = AttentionOptions { score: FOURIER, ..options(form) };
    differentiate(&x, attention_block(x.clone(), fourier_weights(), options))
}

fn mlp(form: Form) -> (Tensor<1>, Vec<f32>) {
    seeded();
    let x = parameter([BATCH, TOKENS, D], 1.0);
    let dropout = options(form).dropout;
    let out = mlp_block(x.clone(), mlp_weights(), Activation::Gelu, dropout, form);
    differentiate(&x, out)
}

#[divan::bench(args = FORMS, sample_count = 20)]
fn encoder_forward_backward(bencher: Bencher<'_, '_>, form: Form) {
    let (frames, weights) = (frames(), nature_weights());
    bencher
        .counter(ItemsCount::new(BATCH * STEPS))
        .bench_local(|| nature_encoder(frames.clone(), weights.clone(), form).sum().backward());
}

#[divan::bench(args = FORMS, sample_count = 20)]
fn encoder_inference(bencher: Bencher<'_, '_>, form: Form) {
    let frames = frames();
    let plain = nature_weights();
    let weights = NatureWeights {
        conv1_weight: plain.conv1_weight.inner(),
        conv1_bias: plain.conv1_bias.inner(),
        conv2_weight: plain.conv2_weight.inner(),
        conv2_bias: plain.conv2_bias.inner(),
        conv3_weight: plain.conv3_weight.inner(),
        conv3_bias: plain.conv3_bias.inner(),
        linear_weight: plain.linear_weight.inner(),
        linear_bias: plain.linear_bias.inner(),
    };
    bencher
        .counter(ItemsCount::new(BATCH * STEPS))
        .bench_local(|| nature_encoder(frames.clone(), weights.clone(), form));
}

#[divan::bench(args = FORMS)]
fn attention_forward_backward(bencher: Bencher<'_, '_>, form: Form) {
    let (x, weights) = (parameter([BATCH, TOKENS, D], 1.0), attention_weights());
    bencher.counter(ItemsCount::new(BATCH * TOKENS)).bench_local(|| {
        SEED.set(SEED.get() + 1);
        attention_block(x.clone(), weights.clone(), options(form)).sum().backward()
    });
}

#[divan::bench(args = FORMS, sample_count = 20)]
fn fourier_attention_forward_backward(bencher: Bencher<'_, '_>, form: Form) {
    let (x, weights) = (parameter([BATCH, TOKENS, D], 1.0), fourier_weights());
    bencher.counter(ItemsCount::new(BATCH * TOKENS)).bench_local(|| {
        SEED.set(SEED.get() + 1);
        let options = AttentionOptions { score: FOURIER, ..options(form) };
        attention_block(x.clone(), weights.clone(), options).sum().backward()
    });
}

#[divan::bench(args = FORMS)]
fn mlp_forward_backward(bencher: Bencher<'_, '_>, form: Form) {
    let (x, weights) = (parameter([BATCH, TOKENS, D], 1.0), mlp_weights());
    bencher.counter(ItemsCount::new(BATCH * TOKENS)).bench_local(|| {
        SEED.set(SEED.get() + 1);
        let dropout = options(form).dropout;
        mlp_block(x.clone(), weights.clone(), Activation::Gelu, dropout, form).sum().backward()
    });
}

/// Clipping and step over the 2.2 million parameters of the Atari model, in 90 tensors.
#[divan::bench(args = FORMS)]
fn clipped_adamw(bencher: Bencher<'_, '_>, form: Form) {
    let (n_tensors, n) = (90, 24_520);
    let tensor = |value: f32| Tensor::<1>::full([n], value, &Device::flex());
    let slot = || TensorSlot {
        parameter: tensor(1.0),
        first_moment: tensor(0.0),
        second_moment: tensor(0.0),
        weight_decay: 0.1,
    };
    let mut state = AdamWState::new((0..n_tensors).map(|_| slot()).collect(), form);
    let gradients = vec![tensor(0.01); n_tensors];
    let (mut step, mut held) = (0, state.parameters());
    bencher.counter(ItemsCount::new(n_tensors * n)).bench_local(|| {
        step += 1;
        let norm = state.step(AdamW::default(), step, Some(1.0), gradients.clone());
        // Another reference to the parameters, as in a model.
        (norm, std::mem::replace(&mut held, state.parameters()))
    });
}
