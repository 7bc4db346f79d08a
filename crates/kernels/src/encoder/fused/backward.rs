//! Gradients of the parameters; the formulas are in the parent module.

use multiversion::multiversion;
use rayon::prelude::*;

use super::*;
use crate::encoder::patches::{gather, scatter};
use crate::matrix::{Accumulate, Matrix, Panels, multiply, multiply_panels, multiply_strided};
use crate::outer::add_outer;
use crate::partitions::add_partitions;
use crate::rows::{add_rows, relu_backward};
use crate::scratch::with_scratch;

/// Partitions of the work, each with its own sums, which are then added in order: the result does
/// not depend on the number of threads. The sums of a partition are 0.3 MB, and 32 partitions are
/// two for each of sixteen threads.
const PARTITIONS: usize = 32;

/// Sizes of a partition's sums: the weights of each layer, then the biases.
const SUMS: [usize; 6] = [
    CHANNELS1 * PATCH1,
    CHANNELS2 * CONV2.patch(),
    CHANNELS3 * CONV3.patch(),
    CHANNELS1,
    CHANNELS2,
    CHANNELS3,
];
const ALL_SUMS: usize = SUMS[0] + SUMS[1] + SUMS[2] + SUMS[3] + SUMS[4] + SUMS[5];

/// Sums of one partition, in the layout of the products.
struct FilterSums<'a> {
    /// `[32, 256]`, not yet divided by 255.
    conv1: &'a mut [f32],
    /// `[64, 512]`
    conv2: &'a mut [f32],
    /// `[64, 576]`
    conv3: &'a mut [f32],
    bias1: &'a mut [f32],
    bias2: &'a mut [f32],
    bias3: &'a mut [f32],
}

impl<'a> FilterSums<'a> {
    fn new(memory: &'a mut [f32]) -> Self {
        let mut rest = memory;
        let [conv1, conv2, conv3, bias1, bias2, bias3] = SUMS.map(|size| take(&mut rest, size));
        Self { conv1, conv2, conv3, bias1, bias2, bias3 }
    }
}

/// Convolution weights in the layout of the products towards the input.
struct BackwardFilters {
    /// `[64, 512]`
    conv2: Vec<f32>,
    /// `[64, 576]`
    conv3: Vec<f32>,
}

/// The gradients in the order and the layout of [`EncoderParameters`], from the embeddings `out` and
/// the gradient of the loss with respect to them.
pub(in crate::encoder) fn backward(
    frames: &[u8],
    steps: usize,
    parameters: EncoderParameters<'_>,
    saved: &SavedLayers,
    out: &[f32],
    gradient: &[f32],
) -> [Buffer; 8] {
    let d = parameters.width();
    let n = out.len() / d;
    let mut before_tanh = Buffer::new(n * d);
    tanh_backward(out, gradient, &mut before_tanh);

    let mut linear_bias = Buffer::zeros(d);
    add_rows(&before_tanh, &mut linear_bias);
    let mut linear = Buffer::zeros(FLAT * d);
    add_outer(&mut linear, &saved.flat, &before_tanh, n);
    let linear_weight = channels_first_rows(&linear, d);

    pixels_first(parameters.linear_weight, d, &mut linear);
    let linear = Panels::new(Matrix::new(&linear, FLAT, d).transposed());
    let mut flat_gradient = Buffer::new(n * FLAT);
    flat_gradient.par_chunks_mut(ROWS * FLAT).zip(before_tanh.par_chunks(ROWS * d)).for_each(
        |(into, rows)| {
            let rows = Matrix::new(rows, rows.len() / d, d);
            multiply_panels(into, FLAT, Accumulate::Overwrite, rows, &linear);
        },
    );

    let prepared = BackwardFilters {
        conv2: channels_last(parameters.conv2_weight, 32),
        conv3: channels_last(parameters.conv3_weight, 64),
    };
    let strips = strips(n / steps, steps);
    let partitions = PARTITIONS.min(strips.len());
    let mut sums = Buffer::new(partitions * ALL_SUMS);
    sums.par_chunks_mut(ALL_SUMS).enumerate().for_each(|(partition, memory)| {
        memory.fill(0.0);
        let mut sums = FilterSums::new(memory);
        let first = partition * strips.len() / partitions;
        let end = (partition + 1) * strips.len() / partitions;
        for strip in &strips[first..end] {
            let pixels = strip.pixels(frames, steps);
            let row = strip.sequence * steps + strip.first_step;
            let flat_gradient = &flat_gradient[row * FLAT..(row + strip.steps) * FLAT];
            strip_backward(*strip, pixels, &prepared, saved, row, flat_gradient, &mut sums);
        }
    });
    let total = FilterSums::new(add_partitions(&mut sums, ALL_SUMS));

    total.conv1.iter_mut().for_each(|weight| *weight *= PIXEL);
    [
        Buffer::from(&*total.conv1),
        Buffer::from(&*total.bias1),
        Buffer::from(&channels_first(total.conv2, 32)[..]),
        Buffer::from(&*total.bias2),
        Buffer::from(&channels_first(total.conv3, 64)[..]),
        Buffer::from(&*total.bias3),
        linear_weight,
        linear_bias,
    ]
}

/// Adds the contribution of every step of a strip; `row` is the first step's row.
fn strip_backward(
    strip: Strip,
    pixels: &[u8],
    weights: &BackwardFilters,
    saved: &SavedLayers,
    row: usize,
    flat_gradient: &[f32],
    sums: &mut FilterSums<'_>,
) {
    let stride = strip.frames() * CONV1.patch();
    let sizes = [
        CONV1.patches() * stride,
        CONV2.patches() * CONV2.patch(),
        CONV3.patches() * CONV3.patch(),
        HIDDEN1,
        HIDDEN2,
        FLAT,
    ];
    with_scratch(sizes, |[patches1, patches2, patches3, grad1, grad2, grad3]| {
        gather_strip(strip, pixels, patches1);
        for (step, flat_gradient) in flat_gradient.chunks_exact(FLAT).enumerate() {
            let row = row + step;
            let hidden1 = &saved.hidden1[row * HIDDEN1..(row + 1) * HIDDEN1];
            let hidden2 = &saved.hidden2[row * HIDDEN2..(row + 1) * HIDDEN2];
            let flat = &saved.flat[row * FLAT..(row + 1) * FLAT];

            grad3.copy_from_slice(flat_gradient);
            relu_backward(flat, grad3);
            add_rows(grad3, sums.bias3);
            gather(CONV3, hidden2, patches3);
            let gradient = Matrix::new(grad3, CONV3.patches(), CHANNELS3);
            let columns = Matrix::new(patches3, CONV3.patches(), CONV3.patch());
            multiply(sums.conv3, Accumulate::Add, gradient.transposed(), columns);
            let weight = Matrix::new(&weights.conv3, CHANNELS3, CONV3.patch());
            multiply(patches3, Accumulate::Overwrite, gradient, weight);
            scatter(CONV3, patches3, grad2);

            relu_backward(hidden2, grad2);
            add_rows(grad2, sums.bias2);
            gather(CONV2, hidden1, patches2);
            let gradient = Matrix::new(grad2, CONV2.patches(), CHANNELS2);
            let columns = Matrix::new(patches2, CONV2.patches(), CONV2.patch());
            multiply(sums.conv2, Accumulate::Add, gradient.transposed(), columns);
            let weight = Matrix::new(&weights.conv2, CHANNELS2, CONV2.patch());
            multiply(patches2, Accumulate::Overwrite, gradient, weight);
            scatter(CONV2, patches2, grad1);

            relu_backward(hidden1, grad1);
            add_rows(grad1, sums.bias1);
            let view = &patches1[step * CONV1.patch()..];
            multiply_strided(
                sums.conv1,
                PATCH1,
                Accumulate::Add,
                1.0,
                Matrix::new(grad1, CONV1.patches(), CHANNELS1).transposed(),
                Matrix::strided(view, CONV1.patches(), PATCH1, stride),
            );
        }
    });
}

/// `gradient (1 - out²)`
#[multiversion(targets = "simd")]
fn tanh_backward(out: &[f32], gradient: &[f32], into: &mut [f32]) {
    for ((into, out), gradient) in into.iter_mut().zip(out).zip(gradient) {
        *into = gradient * (1.0 - out * out);
    }
}
