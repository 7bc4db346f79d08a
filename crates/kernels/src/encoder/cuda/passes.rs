//! The launches of both passes: 5 forward and 12 backward.

use burn::backend::{DType, Shape, TensorMetadata};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use super::{Layers, Parameters};
use crate::encoder::{FLAT, STACK};
use crate::gpu::empty_like;
use crate::gpu::products::{SPLIT_UNTIL, add_parts, launch_product, outer_parts, product_words};
use crate::gpu::source::{THREADS, launch};
use crate::gpu::sources::{self, ByFactor, Factor};

/// Blocks of 2 × 2 places after the first convolution, places after the others.
pub(super) const PLACES: [usize; 3] = [10 * 10, 9 * 9, 7 * 7];
/// Elements of a convolution's output.
pub(super) const WIDTHS: [usize; 3] = [PLACES[0] * 4 * 32, PLACES[1] * 64, PLACES[2] * 64];
/// The weights of the second and third convolution as matrices.
pub(super) const CONVOLUTIONS: [[usize; 2]; 2] = [[2 * 2 * 128, 64], [3 * 3 * 64, 64]];
/// The weights of the first one.
const CONV1: [usize; 2] = [STACK * 8 * 8, 32];

/// Blocks of the first convolution for each stack, as in `conv1_forward.cuh`.
fn conv1_bands(factor: Factor) -> usize {
    match factor {
        Factor::Bf16 => 1,
        Factor::Tf32 => 2,
    }
}

/// The number of stacks, and those of one sequence.
fn stacks(frames: &CubeTensor) -> (usize, usize) {
    let [sequences, length, _, _] = frames.shape().dims();
    let steps = length + 1 - STACK;
    (sequences * steps, steps)
}

pub(super) fn forward(
    parameters: Parameters<CubeBackend>,
    frames: CubeTensor,
    factor: Factor,
) -> Layers<CubeBackend> {
    let frames = into_contiguous(frames);
    let (n, steps) = stacks(&frames);
    let [w1, b1, w2, b2, w3, b3, w4, b4] = parameters.into_array().map(into_contiguous);
    let [_, d] = w4.shape().dims();
    let factors = |shape: [usize; 2]| empty_like(&frames, Shape::new(shape), factor.dtype());

    let conv1_weight = factors([CONV1[1], CONV1[0]]);
    let [conv2_weight, conv3_weight] = CONVOLUTIONS.map(factors);
    let linear_weight = factors([FLAT, d]);
    let matrices = [&conv1_weight, &conv2_weight, &conv3_weight, &linear_weight];
    let size: usize = matrices.map(|matrix| matrix.shape().num_elements()).iter().sum();
    let blocks = [size.div_ceil(THREADS as usize), 1, 1];
    let words = [(FLAT * d) as u64];
    let weights = [&w1, &w2, &w3, &w4];
    launch(sources::ENCODER_WEIGHTS.of(factor), blocks, &weights, &matrices, &words);

    let [conv1, conv2, conv3] = WIDTHS.map(|width| factors([n, width]));
    let blocks = [n, conv1_bands(factor), 1];
    let inputs = [&frames, &conv1_weight, &b1];
    launch(sources::CONV1.of(factor), blocks, &inputs, &[&conv1], &[steps as u64]);
    let layer = |kernel: &'static ByFactor,
                 inputs: [&CubeTensor; 3],
                 out: &CubeTensor,
                 rows: usize,
                 [k, width]: [usize; 2]| {
        launch_product(kernel.of(factor), &inputs, &[out], product_words(rows, width, k));
    };
    let [of_conv2, of_conv3] = CONVOLUTIONS;
    layer(&sources::CONV2, [&conv1, &conv2_weight, &b2], &conv2, n * PLACES[1], of_conv2);
    layer(&sources::CONV3, [&conv2, &conv3_weight, &b3], &conv3, n * PLACES[2], of_conv3);
    let embedding = empty_like(&frames, Shape::new([n, d]), DType::F32);
    layer(&sources::BIAS_TANH, [&conv3, &linear_weight, &b4], &embedding, n, [FLAT, d]);
    Layers { embedding, conv1, conv2, conv3, conv2_weight, conv3_weight, linear_weight }
}

pub(super) fn backward(
    parameters: Parameters<CubeBackend>,
    layers: &Layers<CubeBackend>,
    frames: CubeTensor,
    by_embedding: CubeTensor,
    factor: Factor,
) -> Parameters<CubeBackend> {
    let (frames, by_embedding) = (into_contiguous(frames), into_contiguous(by_embedding));
    let (n, steps) = stacks(&frames);
    let Layers { embedding, conv1, conv2, conv3, conv2_weight, conv3_weight, linear_weight } =
        layers;
    let [_, d] = embedding.shape().dims();
    let by_parameters =
        parameters.into_array().map(|parameter| empty_like(&frames, parameter.shape(), DType::F32));
    let [by_w1, by_b1, by_w2, by_b2, by_w3, by_b3, by_w4, by_b4] = &by_parameters;

    let by_linear = empty_like(&frames, Shape::new([n, d]), factor.dtype());
    let pairs = n * d / 2;
    let blocks = [pairs.div_ceil(THREADS as usize), 1, 1];
    let inputs = [embedding, &by_embedding];
    launch(sources::TANH_SLOPE.of(factor), blocks, &inputs, &[&by_linear], &[pairs as u64]);
    let parts = outer_parts(sources::OUTER.of(factor), conv3, &by_linear, [n, d, FLAT]);
    add_parts(&sources::LINEAR_SUMS, &parts, by_w4, by_b4, 1.0);

    let by_input = |kernel: &'static ByFactor, inputs: [&CubeTensor; 3], words| {
        let [_, _, active] = inputs;
        let out = empty_like(&frames, active.shape(), factor.dtype());
        launch_product(kernel.of(factor), &inputs, &[&out], words);
        out
    };
    let by_weight = |kernel: &'static ByFactor,
                     x: &CubeTensor,
                     by: &CubeTensor,
                     places: usize,
                     [k, channels]: [usize; 2]| {
        outer_parts(kernel.of(factor), x, by, [n * places, channels, k])
    };
    let words = product_words(n, FLAT, d);
    let by_conv3 = by_input(&sources::TRANSPOSED_RELU, [&by_linear, linear_weight, conv3], words);
    let [of_conv2, of_conv3] = CONVOLUTIONS;
    let parts = by_weight(&sources::CONV3_OUTER, conv2, &by_conv3, PLACES[2], of_conv3);
    add_parts(&sources::CONV3_SUMS, &parts, by_w3, by_b3, 1.0);

    // The sum over the elements of a kernel of 3 x 3, then of 2 x 2, and their 64 outputs.
    let words = product_words(n * PLACES[1], 64, 3 * 3 * 64);
    let by_conv2 = by_input(&sources::CONV3_INPUT, [&by_conv3, conv3_weight, conv2], words);
    let parts = by_weight(&sources::CONV2_OUTER, conv1, &by_conv2, PLACES[1], of_conv2);
    add_parts(&sources::CONV2_SUMS, &parts, by_w2, by_b2, 1.0);

    let words = product_words(n * PLACES[0], 4 * 32, 2 * 2 * 64);
    let by_conv1 = by_input(&sources::CONV2_INPUT, [&by_conv2, conv2_weight, conv1], words);
    let blocks = n.min(SPLIT_UNTIL);
    let width = (CONV1[0] + 1) * CONV1[1];
    let parts = empty_like(&frames, Shape::new([blocks, width]), DType::F32);
    let words = [n as u64, steps as u64];
    let inputs = [&frames, &by_conv1];
    launch(sources::CONV1_OUTER.of(factor), [blocks, 1, 1], &inputs, &[&parts], &words);
    add_parts(&sources::CONV1_SUMS, &parts, by_w1, by_b1, 1.0 / 255.0);
    Parameters::new(by_parameters)
}
