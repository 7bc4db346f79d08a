//! The layers on slices, one after the other, blocks of rows in parallel.
//!
//! **Forward**, with `n₀ = x`: `hᵢ = nᵢ₋₁ Wᵢ + bᵢ`, `aᵢ = max(hᵢ, 0)`, `nᵢ` the layer norm of `aᵢ`,
//! or `aᵢ` itself without a norm; the result is `h` of the last layer.
//!
//! **Backward**, from the last layer, given `dhᵢ`:
//!
//! - `dWᵢ = nᵢ₋₁ᵀ dhᵢ`, `dbᵢ = Σ_rows dhᵢ`
//! - `dnᵢ₋₁ = dhᵢ Wᵢᵀ`, which is `dx` at the first layer
//! - `daᵢ₋₁` from `dnᵢ₋₁` by the layer norm's gradient (`norm.rs`)
//! - `dhᵢ₋₁ = daᵢ₋₁` where `aᵢ₋₁ > 0`, else 0
//!
//! **Kept** are `a`, which has the sign of `h`, and `n` if it differs from `a`: with 256 rows of
//! width 256 they are 256 KiB each, which the second-level caches hold from one layer to the next.
//!
//! The order of every sum over rows depends only on the shapes, so results do not depend on the
//! number of threads.

use rayon::prelude::*;

use crate::buffer::Buffer;
use crate::matrix::{Accumulate, Matrix, Panels, multiply, multiply_panels};
use crate::norm::{normalise, normalise_backward};
use crate::outer::add_outer;
use crate::rows::{add_bias, add_rows, bias_relu, relu_backward};

/// Rows per task. A product of 64 rows and a weight of 256 × 256 takes about 100 µs, long compared
/// with the start of a task (5 µs). A batch of 256 is work for four threads.
const ROWS: usize = 64;

/// The parameters of a layer as slices.
#[derive(Clone, Copy)]
pub(super) struct Layer<'a> {
    /// `[in, out]`
    pub shape: [usize; 2],
    pub weight: &'a [f32],
    pub bias: &'a [f32],
    /// Weight and bias.
    pub norm: Option<[&'a [f32]; 2]>,
    /// Whether the gradient of any of them is needed.
    pub is_tracked: bool,
}

impl<'a> Layer<'a> {
    fn matrix(&self) -> Matrix<'a> {
        let [inputs, outputs] = self.shape;
        Matrix::new(self.weight, inputs, outputs)
    }
}

/// Output of a hidden layer, each `[rows, out]`.
pub(super) struct Kept {
    /// After ReLU.
    active: Buffer,
    /// After the layer norm, if there is one.
    normal: Option<Buffer>,
}

impl Kept {
    /// The input of the next layer.
    fn output(&self) -> &[f32] {
        self.normal.as_ref().unwrap_or(&self.active)
    }
}

/// The last layer's output, and the outputs of all previous layers.
pub(super) fn forward(x: &[f32], layers: &[Layer<'_>]) -> (Buffer, Vec<Kept>) {
    let mut kept: Vec<Kept> = Vec::with_capacity(layers.len());
    for (i, layer) in layers.iter().enumerate() {
        let [inputs, outputs] = layer.shape;
        let input = kept.last().map_or(x, Kept::output);
        let rows = input.len() / inputs;
        let is_last = i + 1 == layers.len();
        let mut active = Buffer::new(rows * outputs);
        let mut normal = layer.norm.map(|_| Buffer::new(rows * outputs));
        let compute = |out: &mut [f32], input: &[f32]| {
            let input = Matrix::new(input, input.len() / inputs, inputs);
            multiply(out, Accumulate::Overwrite, input, layer.matrix());
            if is_last {
                add_bias(out, layer.bias);
            } else {
                bias_relu(out, layer.bias);
            }
        };
        let blocks = active.par_chunks_mut(ROWS * outputs).zip(input.par_chunks(ROWS * inputs));
        match (&mut normal, layer.norm) {
            (Some(normal), Some([weight, bias])) => {
                blocks.zip(normal.par_chunks_mut(ROWS * outputs)).for_each(
                    |((out, input), normal)| {
                        compute(out, input);
                        normalise(out, weight, bias, normal);
                    },
                );
            }
            _ => blocks.for_each(|(out, input)| compute(out, input)),
        }
        if is_last {
            return (active, kept);
        }
        kept.push(Kept { active, normal });
    }
    unreachable!("a network has a last layer")
}

/// Gradients of `x` and of the parameters, layer by layer; empty if not needed.
pub(super) fn backward(
    x: &[f32],
    layers: &[Layer<'_>],
    kept: &[Kept],
    gradient: &[f32],
    by_x: bool,
) -> Vec<Buffer> {
    // From the last layer to the first; reversed at the end.
    let mut gradients: Vec<Buffer> = Vec::with_capacity(1 + 4 * layers.len());
    let mut by_hidden = Buffer::from(gradient);
    for (i, layer) in layers.iter().enumerate().rev() {
        let before = i.checked_sub(1).map(|i| &kept[i]);
        let input = before.map_or(x, Kept::output);
        let parameters = || layer.is_tracked.then(|| by_parameters(layer, input, &by_hidden));
        let is_wanted = by_x || layers[..i].iter().any(|layer| layer.is_tracked);
        let below = || match before {
            Some(before) => through(layer, &layers[i - 1], before, &by_hidden),
            None => Below { gradient: by_input(layer, &by_hidden, |_, _| ()), norm: None },
        };
        let (parameters, below) = rayon::join(parameters, || is_wanted.then(below));
        let [by_weight, by_bias] = parameters.unwrap_or_else(|| [empty(), empty()]);
        gradients.extend([by_bias, by_weight]);
        let Some(Below { gradient, norm }) = below else { break };
        // This norm belongs to the previous layer.
        if let Some([by_weight, by_bias]) = norm {
            gradients.extend([by_bias, by_weight]);
        }
        by_hidden = gradient;
    }
    if by_x {
        gradients.push(by_hidden);
    }
    let n_tensors = layers.iter().map(|layer| if layer.norm.is_some() { 4 } else { 2 });
    gradients.resize_with(1 + n_tensors.sum::<usize>(), empty);
    gradients.reverse();
    gradients
}

fn empty() -> Buffer {
    Buffer::new(0)
}

/// The gradients at the input of a layer.
struct Below {
    /// The gradient of the previous layer's output before its ReLU, or of `x`.
    gradient: Buffer,
    /// The gradients of weight and bias of the norm in between.
    norm: Option<[Buffer; 2]>,
}

/// `dW = inputᵀ dh`, `db = Σ_rows dh`.
fn by_parameters(layer: &Layer<'_>, input: &[f32], by_hidden: &[f32]) -> [Buffer; 2] {
    let [inputs, outputs] = layer.shape;
    let mut by_weight = Buffer::zeros(inputs * outputs);
    add_outer(&mut by_weight, input, by_hidden, by_hidden.len() / outputs);
    let mut by_bias = Buffer::zeros(outputs);
    add_rows(by_hidden, &mut by_bias);
    [by_weight, by_bias]
}

/// `dh Wᵀ` in blocks of rows; `finish` receives each block and its number.
fn by_input(
    layer: &Layer<'_>,
    by_hidden: &[f32],
    finish: impl Fn(usize, &mut [f32]) + Sync,
) -> Buffer {
    let [inputs, outputs] = layer.shape;
    let weight = Panels::new(layer.matrix().transposed());
    let mut out = Buffer::new(by_hidden.len() / outputs * inputs);
    out.par_chunks_mut(ROWS * inputs)
        .zip(by_hidden.par_chunks(ROWS * outputs))
        .enumerate()
        .for_each(|(i, (out, by_hidden))| {
            let by_hidden = Matrix::new(by_hidden, by_hidden.len() / outputs, outputs);
            multiply_panels(out, inputs, Accumulate::Overwrite, by_hidden, &weight);
            finish(i, out);
        });
    out
}

/// The backward pass through a layer and the norm and ReLU before it, to `dh` of the previous
/// layer.
fn through(layer: &Layer<'_>, before: &Layer<'_>, kept: &Kept, by_hidden: &[f32]) -> Below {
    let width = layer.shape[0];
    let Some([weight, _]) = before.norm else {
        let gradient = by_input(layer, by_hidden, |i, out| {
            relu_backward(&kept.active[i * ROWS * width..][..out.len()], out);
        });
        return Below { gradient, norm: None };
    };
    let mut by_normal = by_input(layer, by_hidden, |_, _| ());
    let mut gradient = Buffer::zeros(by_normal.len());
    let n_blocks = by_normal.len().div_ceil(ROWS * width);
    // For each block of rows, by weight and by bias.
    let mut sums = vec![0.0; n_blocks * 2 * width];
    gradient
        .par_chunks_mut(ROWS * width)
        .zip(by_normal.par_chunks_mut(ROWS * width))
        .zip(kept.active.par_chunks(ROWS * width))
        .zip(sums.par_chunks_mut(2 * width))
        .for_each(|(((gradient, by_normal), active), sums)| {
            let (by_weight, by_bias) = sums.split_at_mut(width);
            normalise_backward(active, weight, by_normal, gradient, by_weight, by_bias);
            relu_backward(active, gradient);
        });
    let mut totals = vec![0.0; 2 * width];
    add_rows(&sums, &mut totals);
    let (by_weight, by_bias) = totals.split_at(width);
    Below { gradient, norm: Some([by_weight.into(), by_bias.into()]) }
}
