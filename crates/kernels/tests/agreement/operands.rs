//! Operands that several test binaries share.

use std::f64::consts::PI;

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use overtone_kernels::{
    Activation, AttentionOptions, AttentionWeights, Dropout, Form, MlpWeights, NatureWeights,
    Score, attention_block, fourier_scores, mlp_block,
};

use super::{Input, Leaves, Outcome, distance, noise, run};

pub const FRAME: usize = 84;

pub fn attention_inputs(shape: [usize; 3]) -> Vec<Input> {
    let d = shape[2];
    let size = 1.5 / (d as f64).sqrt();
    vec![
        Input::new("x", &shape, 0.1, 1.5),
        Input::new("norm_weight", &[d], 1.0, 0.3),
        Input::new("norm_bias", &[d], 0.0, 0.3),
        Input::new("qkv_weight", &[d, 3 * d], 0.0, size),
        Input::new("qkv_bias", &[3 * d], 0.0, 0.3),
        Input::new("projection_weight", &[d, d], 0.0, size),
        Input::new("projection_bias", &[d], 0.0, 0.3),
    ]
}

/// Attention inputs with `R` of this shape around `centre`.
pub fn fourier_inputs(shape: [usize; 3], r: [usize; 2], centre: f64) -> Vec<Input> {
    let mut inputs = attention_inputs(shape);
    inputs.push(Input::new("fourier_r", &r, centre, 0.3 * centre));
    inputs
}

/// The first tokens of the sequences, on the device of the inputs.
pub fn first_tokens(leaves: &Leaves, first: &[i32]) -> Tensor<1, Int> {
    Tensor::from_data(first, &leaves.three("x").device())
}

pub fn attend(leaves: &Leaves, options: AttentionOptions<'_>) -> Tensor<3> {
    let weights = AttentionWeights {
        norm_weight: leaves.one("norm_weight"),
        norm_bias: leaves.one("norm_bias"),
        qkv_weight: leaves.two("qkv_weight"),
        qkv_bias: leaves.one("qkv_bias"),
        projection_weight: leaves.two("projection_weight"),
        projection_bias: leaves.one("projection_bias"),
        score_parameter: (!matches!(options.score, Score::DotProduct))
            .then(|| leaves.two("fourier_r")),
    };
    attention_block(leaves.three("x"), weights, options)
}

/// Perceptron inputs with hidden width `h`, and weights within `up` and `down` of zero.
pub fn mlp_inputs(shape: [usize; 3], h: usize, [up, down]: [f64; 2]) -> Vec<Input> {
    let d = shape[2];
    vec![
        Input::new("x", &shape, 0.1, 1.5),
        Input::new("norm_weight", &[d], 1.0, 0.3),
        Input::new("norm_bias", &[d], 0.0, 0.3),
        Input::new("up_weight", &[d, h], 0.0, up),
        Input::new("up_bias", &[h], 0.0, 0.3),
        Input::new("down_weight", &[h, d], 0.0, down),
        Input::new("down_bias", &[d], 0.0, 0.3),
    ]
}

pub fn mlp_weights(leaves: &Leaves) -> MlpWeights {
    MlpWeights {
        norm_weight: leaves.one("norm_weight"),
        norm_bias: leaves.one("norm_bias"),
        up_weight: leaves.two("up_weight"),
        up_bias: leaves.one("up_bias"),
        down_weight: leaves.two("down_weight"),
        down_bias: leaves.one("down_bias"),
    }
}

pub fn mlp(
    leaves: &Leaves,
    activation: Activation,
    dropout: Option<Dropout>,
    form: Form,
) -> Tensor<3> {
    mlp_block(leaves.three("x"), mlp_weights(leaves), activation, dropout, form)
}

/// Parameters of PyTorch's initial sizes, with embeddings of width `d`.
pub fn nature_parameters(d: usize) -> Vec<Input> {
    vec![
        Input::new("conv1_weight", &[32, 4, 8, 8], 0.0, 0.0625),
        Input::new("conv1_bias", &[32], 0.0, 0.0625),
        Input::new("conv2_weight", &[64, 32, 4, 4], 0.0, 0.044),
        Input::new("conv2_bias", &[64], 0.0, 0.044),
        Input::new("conv3_weight", &[64, 64, 3, 3], 0.0, 0.042),
        Input::new("conv3_bias", &[64], 0.0, 0.042),
        Input::new("linear_weight", &[3136, d], 0.0, 0.018),
        Input::new("linear_bias", &[d], 0.0, 0.018),
    ]
}

pub fn nature_weights(leaves: &Leaves) -> NatureWeights {
    NatureWeights {
        conv1_weight: leaves.four("conv1_weight"),
        conv1_bias: leaves.one("conv1_bias"),
        conv2_weight: leaves.four("conv2_weight"),
        conv2_bias: leaves.one("conv2_bias"),
        conv3_weight: leaves.four("conv3_weight"),
        conv3_bias: leaves.one("conv3_bias"),
        linear_weight: leaves.two("linear_weight"),
        linear_bias: leaves.one("linear_bias"),
    }
}

pub fn pixels(n: usize) -> Vec<u8> {
    noise(n * FRAME * FRAME, 5).into_iter().map(|x| ((x + 1.0) * 127.5) as u8).collect()
}

/// Frames on a device; the sequences have the same number.
pub fn frames_on(pixels: Vec<u8>, sequences: usize, device: &Device) -> Tensor<4, Int> {
    let length = pixels.len() / (sequences * FRAME * FRAME);
    let data = TensorData::new(pixels, [sequences, length, FRAME, FRAME]);
    Tensor::from_data(data, (device, DType::U8))
}

/// Queries and keys within `size` of zero, `R` around 2.
pub fn score_inputs(shape: [usize; 4], r: [usize; 2], size: f64) -> Vec<Input> {
    vec![
        Input::new("q", &shape, 0.0, size),
        Input::new("k", &shape, 0.0, size),
        Input::new("r", &r, 2.0, 0.4),
    ]
}

pub fn scores(leaves: &Leaves, power: u32, form: Form) -> Tensor<4> {
    let [q, k] = ["q", "k"].map(|name| leaves.four(name));
    fourier_scores(q, k, leaves.two("r"), power, form)
}

/// Checks the effect of a NaN in queries, keys or `R`, near and far: it is in every score that
/// depends on it, in no other score, and in its own gradient.
#[track_caller]
pub fn check_nan_of_scores(run: impl Fn(&[Input]) -> Outcome) {
    let (tokens, d) = (5, 16);
    for size in [0.1, 10.0] {
        for (i, name) in ["q", "k", "r"].into_iter().enumerate() {
            let mut inputs = score_inputs([1, 2, tokens, d], [2, d], size);
            // The fourth dimension of the first head, of its second token.
            let at = if name == "r" { 3 } else { d + 3 };
            inputs[i].values[at] = f64::NAN;
            let outcome = run(&inputs);
            for (index, score) in outcome.output.iter().enumerate() {
                let (key, query) = (index % tokens, index / tokens % tokens);
                let is_token = match name {
                    "q" => query == 1,
                    "k" => key == 1,
                    _ => true,
                };
                let is_part = index < tokens * tokens && is_token;
                assert_eq!(score.is_nan(), is_part, "{name}, {size}: score {index}");
            }
            assert!(outcome.gradients[i].1[at].is_nan(), "{name}, {size}: its gradient");
        }
    }
}

/// Arguments up to 50 lose six bits before their sine is computed, and near its zeros the slope
/// amplifies the loss: the `fused` scores of power 4 are as accurate as plain tensors in `f32`.
#[track_caller]
pub fn check_far_scores(fused: impl Fn(&[Input]) -> Outcome) {
    for d in [16, 32, 64] {
        let inputs = score_inputs([2, 3, 20, d], [3, d], 10.0);
        let [exact, plain] = [DType::F64, DType::F32].map(|dtype| {
            run(&inputs, dtype, Form::Reference, |leaves, form| scores(leaves, 4, form))
        });
        let fused = fused(&inputs);
        let error = |outcome: &Outcome| distance(&outcome.output, &exact.output);
        println!("{d}: fused {:.1e}, plain {:.1e}", error(&fused), error(&plain));
        assert!(error(&fused) < 2.0 * error(&plain) + 1e-6, "{d}");
        for (i, (name, exact)) in exact.gradients.iter().enumerate() {
            let error = |outcome: &Outcome| distance(&outcome.gradients[i].1, exact);
            println!("{name}: fused {:.1e}, plain {:.1e}", error(&fused), error(&plain));
            assert!(error(&fused) < 2.0 * error(&plain) + 1e-5, "{d}, {name}");
        }
    }
}

/// Scores and gradients are finite for differences of queries and keys that are zero, on zeros of
/// the sine, tiny or huge.
#[track_caller]
pub fn check_hard_scores(run: impl Fn(&[Input]) -> Outcome) {
    let d = 16;
    let apart = [0.0, PI, 3.0 * PI, 16.0 * PI, -PI, 1e-30, 1e-8, 2.0, -2.0, 1e5, 3e7, -1e12];
    let mut inputs = score_inputs([1, 1, apart.len(), d], [1, 1], 0.0);
    for (token, apart) in apart.iter().enumerate() {
        inputs[0].values[token * d..][..d].fill(f64::from(*apart as f32));
    }
    for r in [1.0, 0.0, -1.0] {
        inputs[2].values = vec![r];
        let outcome = run(&inputs);
        let all = outcome.gradients.iter().flat_map(|(_, values)| values);
        for value in outcome.output.iter().chain(all) {
            assert!(value.is_finite(), "{r}: {outcome:?}");
        }
        // A key equal to the query has the largest possible score.
        assert_eq!(outcome.output[0], 0.0, "{r}");
        assert!(outcome.output.iter().all(|score| *score <= 0.0));
    }
}
