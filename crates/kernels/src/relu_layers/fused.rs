//! The layers on slices, one after the other, blocks of rows in parallel.
//!
//! **Forward**, with `n₀ = x`: `hᵢ = nᵢ₋₁ Wᵢ + bᵢ`, `aᵢ = max(hᵢ, 0)`, `nᵢ` the layer norm of
//! `aᵢ`, or `aᵢ` itself where there is none; the result is `h` of the last layer.
//!
//! **Backward**, from the last layer, given `dhᵢ`:
//!
//! - `dWᵢ = nᵢ₋₁ᵀ dhᵢ`, `dbᵢ = Σ_rows dhᵢ`
//! - `dnᵢ₋₁ = dhᵢ Wᵢᵀ`, which is `dx` at the first layer
//! - `daᵢ₋₁` from `dnᵢ₋₁` by the layer norm's gradient (`norm.rs`)
//! - `dhᵢ₋₁ = daᵢ₋₁` where `aᵢ₋₁ > 0`, else 0
//!
//! **Kept** are `a`, whose sign is `h`'s, and `n` where it is another: with 256 rows of width 256
//! they are 256 KiB each, which the second-level caches hold from one layer to the next.
//!
//! Every sum over rows has an order that depends on the shapes alone, so results do not depend on
//! the number of threads.

use multiversion::multiversion;
use rayon::prelude::*;

use crate::buffer::Buffer;
use crate::matrix::{Into, Matrix, multiply};
use crate::norm::{normalise, normalise_backward};
use crate::outer::add_outer;
use crate::rows::{add_bias, add_rows};

/// Rows a task takes. A product of 64 rows and a weight of 256 × 256 takes about 100 µs, long
/// beside the start of a task (5 µs), and a batch of 256 is work for four threads.
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
}

impl<'a> Layer<'a> {
    fn matrix(&self) -> Matrix<'a> {
        let [inputs, outputs] = self.shape;
        Matrix::new(self.weight, inputs, outputs)
    }
}

/// What a hidden layer gave, each `[rows, out]`.
pub(super) struct Kept {
    /// Behind ReLU.
    active: Buffer,
    /// Behind the layer norm, where there is one.
    normal: Option<Buffer>,
}

impl Kept {
    /// What the next layer reads.
    fn output(&self) -> &[f32] {
        self.normal.as_ref().unwrap_or(&self.active)
    }
}

/// Which gradients are computed; the others are left empty.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub by_x: bool,
    pub by_parameters: bool,
}

/// The last layer's result, and what every layer before it gave.
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
            multiply(out, Into::Fresh, input, layer.matrix());
            if is_last {
                add_bias(out, layer.bias);
            } else {
                activate(out, layer.bias);
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

/// Gradients by `x` and by the parameters, layer by layer; empty where not wanted.
pub(super) fn backward(
    x: &[f32],
    layers: &[Layer<'_>],
    kept: &[Kept],
    gradient: &[f32],
    wanted: Wanted,
) -> Vec<Buffer> {
    // From the last layer to the first; turned round in the end.
    let mut gradients: Vec<Buffer> = Vec::with_capacity(1 + 4 * layers.len());
    let mut by_hidden = Buffer::from(gradient);
    for (i, layer) in layers.iter().enumerate().rev() {
        let before = i.checked_sub(1).map(|i| &kept[i]);
        let input = before.map_or(x, Kept::output);
        let parameters = || wanted.by_parameters.then(|| by_parameters(layer, input, &by_hidden));
        let below = || match before {
            Some(before) => Some(through(layer, &layers[i - 1], before, &by_hidden)),
            None => wanted.by_x.then(|| by_input(layer, &by_hidden, |_, _| ())).map(Below::of),
        };
        let (parameters, below) = rayon::join(parameters, below);
        let [by_weight, by_bias] = parameters.unwrap_or_else(|| [empty(), empty()]);
        gradients.extend([by_bias, by_weight]);
        let Below { gradient, norm } = below.unwrap_or_else(|| Below::of(empty()));
        // The norm that was passed belongs to the layer before.
        if let Some([by_weight, by_bias]) = norm {
            gradients.extend([by_bias, by_weight]);
        }
        by_hidden = gradient;
    }
    gradients.push(by_hidden);
    gradients.reverse();
    gradients
}

fn empty() -> Buffer {
    Buffer::new(0)
}

/// The gradient in front of a layer.
struct Below {
    /// By what the layer before gave in front of its ReLU, or by `x`.
    gradient: Buffer,
    /// By weight and bias of the norm on the way.
    norm: Option<[Buffer; 2]>,
}

impl Below {
    fn of(gradient: Buffer) -> Self {
        Self { gradient, norm: None }
    }
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

/// `dh Wᵀ` in blocks of rows, each finished by `finish`, which is told its number.
fn by_input(
    layer: &Layer<'_>,
    by_hidden: &[f32],
    finish: impl Fn(usize, &mut [f32]) + Sync,
) -> Buffer {
    let [inputs, outputs] = layer.shape;
    let mut out = Buffer::new(by_hidden.len() / outputs * inputs);
    out.par_chunks_mut(ROWS * inputs)
        .zip(by_hidden.par_chunks(ROWS * outputs))
        .enumerate()
        .for_each(|(i, (out, by_hidden))| {
            let by_hidden = Matrix::new(by_hidden, by_hidden.len() / outputs, outputs);
            multiply(out, Into::Fresh, by_hidden, layer.matrix().transposed());
            finish(i, out);
        });
    out
}

/// Through a layer and the norm and ReLU in front of it, to `dh` of the layer before.
fn through(layer: &Layer<'_>, before: &Layer<'_>, kept: &Kept, by_hidden: &[f32]) -> Below {
    let width = layer.shape[0];
    let Some([weight, _]) = before.norm else {
        let gradient = by_input(layer, by_hidden, |i, out| {
            mask(&kept.active[i * ROWS * width..][..out.len()], out);
        });
        return Below::of(gradient);
    };
    let mut by_normal = by_input(layer, by_hidden, |_, _| ());
    let mut gradient = Buffer::zeros(by_normal.len());
    let n_blocks = by_normal.len().div_ceil(ROWS * width);
    // Of each block of rows, by weight and by bias.
    let mut sums = vec![0.0; n_blocks * 2 * width];
    gradient
        .par_chunks_mut(ROWS * width)
        .zip(by_normal.par_chunks_mut(ROWS * width))
        .zip(kept.active.par_chunks(ROWS * width))
        .zip(sums.par_chunks_mut(2 * width))
        .for_each(|(((gradient, by_normal), active), sums)| {
            let (by_weight, by_bias) = sums.split_at_mut(width);
            normalise_backward(active, weight, by_normal, gradient, by_weight, by_bias);
            mask(active, gradient);
        });
    let mut totals = vec![0.0; 2 * width];
    add_rows(&sums, &mut totals);
    let (by_weight, by_bias) = totals.split_at(width);
    Below { gradient, norm: Some([by_weight.into(), by_bias.into()]) }
}

/// `values = max(values + bias, 0)`
#[multiversion(targets = "simd")]
fn activate(values: &mut [f32], bias: &[f32]) {
    for row in values.chunks_exact_mut(bias.len()) {
        for (value, bias) in row.iter_mut().zip(bias) {
            let hidden = *value + bias;
            // A NaN stays one, so that training notices it.
            *value = if hidden < 0.0 { 0.0 } else { hidden };
        }
    }
}

/// `gradient = 0` where ReLU gave 0.
#[multiversion(targets = "simd")]
fn mask(active: &[f32], gradient: &mut [f32]) {
    for (gradient, active) in gradient.iter_mut().zip(active) {
        *gradient = if *active > 0.0 { *gradient } else { 0.0 };
    }
}
