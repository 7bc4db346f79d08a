//! Frames to embeddings.

use multiversion::multiversion;
use rayon::prelude::*;

use super::*;
use crate::encoder::patches::gather;
use crate::math::tanh;
use crate::matrix::{
    Accumulate, Matrix, Panels, multiply, multiply_panels, multiply_strided, transpose,
};
use crate::rows::bias_relu;
use crate::scratch::with_scratch;

/// Weights in the layout of the products.
struct ForwardFilters {
    /// `[256, 32]`, divided by 255.
    conv1: Vec<f32>,
    /// `[512, 64]`
    conv2: Vec<f32>,
    /// `[576, 64]`
    conv3: Vec<f32>,
}

/// `sequences × steps` embeddings, and the values for [`super::backward()`] if `keep`.
pub(in crate::encoder) fn forward(
    frames: &[u8],
    steps: usize,
    parameters: EncoderParameters<'_>,
    keep: bool,
) -> (Buffer, Option<SavedLayers>) {
    let sequences = frames.len() / ((steps + STACK - 1) * FRAME * FRAME);
    let n = sequences * steps;
    let d = parameters.width();
    let prepared = ForwardFilters {
        conv1: transpose(parameters.conv1_weight, CHANNELS1, PATCH1)
            .into_iter()
            .map(|weight| weight * PIXEL)
            .collect(),
        conv2: transpose(&channels_last(parameters.conv2_weight, 32), CHANNELS2, CONV2.patch()),
        conv3: transpose(&channels_last(parameters.conv3_weight, 64), CHANNELS3, CONV3.patch()),
    };
    let mut linear = Buffer::new(FLAT * d);
    pixels_first(parameters.linear_weight, d, &mut linear);
    let linear = Panels::new(Matrix::new(&linear, FLAT, d));

    let mut flat = Buffer::new(n * FLAT);
    let kept = if keep { n } else { 0 };
    let mut hidden1 = Buffer::new(kept * HIDDEN1);
    let mut hidden2 = Buffer::new(kept * HIDDEN2);
    let (mut rest, mut rest1, mut rest2) = (&mut flat[..], &mut hidden1[..], &mut hidden2[..]);
    let mut tasks = Vec::new();
    for strip in strips(sequences, steps) {
        let kept = if keep { strip.steps } else { 0 };
        let saved = [take(&mut rest1, kept * HIDDEN1), take(&mut rest2, kept * HIDDEN2)];
        tasks.push((strip, take(&mut rest, strip.steps * FLAT), saved));
    }
    tasks.into_par_iter().for_each(|(strip, flat, saved)| {
        let pixels = strip.pixels(frames, steps);
        encode_strip(strip, pixels, parameters, &prepared, flat, keep.then_some(saved));
    });

    let mut out = Buffer::new(n * d);
    out.par_chunks_mut(ROWS * d).zip(flat.par_chunks(ROWS * FLAT)).for_each(|(out, flat)| {
        let rows = out.len() / d;
        multiply_panels(out, d, Accumulate::Overwrite, Matrix::new(flat, rows, FLAT), &linear);
        bias_tanh(out, parameters.linear_bias);
    });
    let saved = keep.then_some(SavedLayers { hidden1, hidden2, flat });
    (out, saved)
}

/// The three convolutions of every step of a strip.
fn encode_strip(
    strip: Strip,
    pixels: &[u8],
    parameters: EncoderParameters<'_>,
    prepared: &ForwardFilters,
    flat: &mut [f32],
    saved: Option<[&mut [f32]; 2]>,
) {
    let stride = strip.frames() * CONV1.patch();
    let sizes = [
        CONV1.patches() * stride,
        CONV2.patches() * CONV2.patch(),
        CONV3.patches() * CONV3.patch(),
        HIDDEN1,
        HIDDEN2,
    ];
    with_scratch(sizes, |[patches1, patches2, patches3, one, two]| {
        gather_strip(strip, pixels, patches1);
        let mut saved = saved;
        for (step, flat) in flat.chunks_exact_mut(FLAT).enumerate() {
            let [hidden1, hidden2] = match &mut saved {
                Some([hidden1, hidden2]) => [
                    &mut hidden1[step * HIDDEN1..(step + 1) * HIDDEN1],
                    &mut hidden2[step * HIDDEN2..(step + 1) * HIDDEN2],
                ],
                None => [&mut *one, &mut *two],
            };
            let view = &patches1[step * CONV1.patch()..];
            multiply_strided(
                hidden1,
                CHANNELS1,
                Accumulate::Overwrite,
                1.0,
                Matrix::strided(view, CONV1.patches(), PATCH1, stride),
                Matrix::new(&prepared.conv1, PATCH1, CHANNELS1),
            );
            bias_relu(hidden1, parameters.conv1_bias);

            gather(CONV2, hidden1, patches2);
            multiply(
                hidden2,
                Accumulate::Overwrite,
                Matrix::new(patches2, CONV2.patches(), CONV2.patch()),
                Matrix::new(&prepared.conv2, CONV2.patch(), CHANNELS2),
            );
            bias_relu(hidden2, parameters.conv2_bias);

            gather(CONV3, hidden2, patches3);
            multiply(
                flat,
                Accumulate::Overwrite,
                Matrix::new(patches3, CONV3.patches(), CONV3.patch()),
                Matrix::new(&prepared.conv3, CONV3.patch(), CHANNELS3),
            );
            bias_relu(flat, parameters.conv3_bias);
        }
    });
}

/// `tanh(x + bias)` in rows of the bias's length.
#[multiversion(targets = "simd")]
fn bias_tanh(values: &mut [f32], bias: &[f32]) {
    for row in values.chunks_exact_mut(bias.len()) {
        for (value, bias) in row.iter_mut().zip(bias) {
            *value = tanh(*value + bias);
        }
    }
}
