//! Parts of a training step of the `atari` preset: the time of each part, compared with the time of
//! its products at the machine's measured speed. Both are measured in the same rounds.

use std::time::Instant;

use burn::tensor::{DType, Device, Distribution, Int, Tensor, TensorData};
use overtone_kernels::{
    Activation, AttentionOptions, AttentionWeights, Dropout, Form, MlpWeights, NatureWeights,
    Queries, Score, attention_block, mlp_block, nature_encoder,
};

use crate::{
    multiply,
    work::{Atari, Variant},
};

const ROUNDS: usize = 9;
const STEPS: usize = 30;
const TOKENS: usize = 3 * STEPS;
const D: usize = 128;
const LAYERS: f64 = 6.0;

/// A timed operation, with the floating-point operations of its products.
struct Part {
    name: &'static str,
    flop: f64,
    /// Number of times per step.
    times: f64,
    run: Box<dyn FnMut()>,
}

/// Floating-point operations, forward, of the encoder for one observation: three convolutions and
/// the linear layer. The first convolution does not need the gradient of its input.
fn encoder_flop() -> [f64; 2] {
    let convolution = |pixels: f64, patch: f64, channels: f64| 2.0 * pixels * patch * channels;
    let first = convolution(400.0, 256.0, 32.0);
    let others = convolution(81.0, 512.0, 64.0) + convolution(49.0, 576.0, 64.0);
    let forward = first + others + 2.0 * 3136.0 * D as f64;
    [forward, 2.0 * forward - first]
}

/// Floating-point operations of one attention block: the products with the weights for each token,
/// and each head's products with all keys. `queries` of the tokens compute a result.
fn attention_flop(tokens: f64, queries: f64) -> f64 {
    let d = D as f64;
    let weights = 2.0 * d * (2.0 * d * tokens + 2.0 * d * queries);
    let scores = 2.0 * 2.0 * queries * TOKENS as f64 * d;
    // Backward: twice the forward products, and the scores once more.
    3.0 * weights + 3.0 * scores + 0.5 * scores
}

fn mlp_flop(tokens: f64) -> f64 {
    3.0 * 2.0 * tokens * 2.0 * 4.0 * (D * D) as f64
}

/// Prints the table.
pub fn compare(batch: usize) {
    let observations = (batch * STEPS) as f64;
    let tokens = 3.0 * observations;
    let [forward, backward] = encoder_flop();
    let last = Queries { first: 1, step: 3 };
    let whole = encoder_flop().iter().sum::<f64>() * observations
        + (LAYERS - 1.0) * (attention_flop(tokens, tokens) + mlp_flop(tokens))
        + attention_flop(tokens, observations)
        + mlp_flop(observations);
    let mut parts = [
        Part {
            name: "product of 1024 × 1024",
            flop: 2.0 * 1024f64.powi(3),
            times: 0.0,
            run: Box::new(multiply::product()),
        },
        Part {
            name: "whole step",
            flop: whole,
            times: 0.0,
            run: Box::new(Atari::of(Variant::Plain, batch).training_step()),
        },
        Part {
            name: "encoder",
            flop: (forward + backward) * observations,
            times: 1.0,
            run: encoder(batch),
        },
        Part {
            name: "attention block",
            flop: attention_flop(tokens, tokens),
            times: LAYERS - 1.0,
            run: attention(batch, Queries::ALL),
        },
        Part {
            name: "attention block, last",
            flop: attention_flop(tokens, observations),
            times: 1.0,
            run: attention(batch, last),
        },
        Part {
            name: "perceptron block",
            flop: mlp_flop(tokens),
            times: LAYERS - 1.0,
            run: mlp(batch, TOKENS),
        },
        Part {
            name: "perceptron block, last",
            flop: mlp_flop(observations),
            times: 1.0,
            run: mlp(batch, STEPS),
        },
    ];
    parts.iter_mut().for_each(|part| (part.run)());
    let mut times = vec![Vec::new(); parts.len()];
    for _ in 0..ROUNDS {
        for (part, times) in parts.iter_mut().zip(&mut times) {
            let start = Instant::now();
            (part.run)();
            times.push(start.elapsed().as_secs_f64());
        }
    }
    let median = |times: &Vec<f64>| {
        let mut times = times.clone();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let medians: Vec<f64> = times.iter().map(median).collect();
    let speed = parts[0].flop / medians[0];
    println!(
        "atari, batch {batch}; products of 1024 × 1024 matrices: {:.0} GFLOP/s\n",
        speed / 1e9
    );
    println!(
        "| part | times a step | ms | GFLOP | GFLOP/s | of the product's speed | of the step |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    let row = |name: &str, times: f64, seconds: f64, flop: f64| {
        let own_speed = flop / seconds;
        println!(
            "| {name} | {times} | {:.1} | {:.2} | {:.0} | {:.0} % | {:.0} % |",
            1e3 * seconds,
            flop / 1e9,
            own_speed / 1e9,
            100.0 * own_speed / speed,
            100.0 * times * seconds / medians[1],
        );
    };
    row("whole step", 1.0, medians[1], parts[1].flop);
    for (part, seconds) in parts.iter().zip(&medians).skip(2) {
        row(part.name, part.times, *seconds, part.flop);
    }
    let known: f64 = parts.iter().zip(&medians).map(|(part, seconds)| part.times * seconds).sum();
    println!(
        "| the rest: embeddings, head, loss, optimizer | 1 | {:.1} | | | | {:.0} % |",
        1e3 * (medians[1] - known),
        100.0 * (medians[1] - known) / medians[1],
    );
}

fn parameter<const N: usize>(shape: [usize; N]) -> Tensor<N> {
    let device = Device::flex().autodiff();
    Tensor::random(shape, Distribution::Uniform(-0.03, 0.03), &device).require_grad()
}

fn encoder(batch: usize) -> Box<dyn FnMut()> {
    let shape = [batch, STEPS + 3, 84, 84];
    let n = shape.iter().product::<usize>();
    let pixels: Vec<u8> = (0..n).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let frames = TensorData::new(pixels, shape);
    let frames = Tensor::<4, Int>::from_data(frames, (&Device::flex(), DType::U8));
    let weights = NatureWeights {
        conv1_weight: parameter([32, 4, 8, 8]),
        conv1_bias: parameter([32]),
        conv2_weight: parameter([64, 32, 4, 4]),
        conv2_bias: parameter([64]),
        conv3_weight: parameter([64, 64, 3, 3]),
        conv3_bias: parameter([64]),
        linear_weight: parameter([3136, D]),
        linear_bias: parameter([D]),
    };
    Box::new(move || {
        let out = nature_encoder(frames.clone(), weights.clone(), Form::Auto);
        drop(out.sum().backward());
    })
}

fn dropout(seed: &mut u64) -> Option<Dropout> {
    *seed += 1;
    let step_seed = Tensor::from_data(Dropout::words(*seed), &Device::flex().autodiff());
    Some(Dropout { probability: 0.1, step_seed, nth: 0 })
}

fn attention(batch: usize, queries: Queries) -> Box<dyn FnMut()> {
    let x = parameter([batch, TOKENS, D]);
    let weights = AttentionWeights {
        norm_weight: parameter([D]),
        norm_bias: parameter([D]),
        qkv_weight: parameter([D, 3 * D]),
        qkv_bias: parameter([3 * D]),
        projection_weight: parameter([D, D]),
        projection_bias: parameter([D]),
        score_parameter: None,
    };
    let mut seed = 0;
    Box::new(move || {
        let options = AttentionOptions {
            n_heads: 8,
            score: Score::DotProduct,
            queries,
            first_token: None,
            dropout: dropout(&mut seed),
            form: Form::Auto,
        };
        drop(attention_block(x.clone(), weights.clone(), options).sum().backward());
    })
}

fn mlp(batch: usize, tokens: usize) -> Box<dyn FnMut()> {
    let x = parameter([batch, tokens, D]);
    let weights = MlpWeights {
        norm_weight: parameter([D]),
        norm_bias: parameter([D]),
        up_weight: parameter([D, 4 * D]),
        up_bias: parameter([4 * D]),
        down_weight: parameter([4 * D, D]),
        down_bias: parameter([D]),
    };
    let mut seed = 0;
    Box::new(move || {
        let (dropout, gelu) = (dropout(&mut seed), Activation::Gelu);
        let out = mlp_block(x.clone(), weights.clone(), gelu, dropout, Form::Auto);
        drop(out.sum().backward());
    })
}
