//! The perceptron block on slices, a few rows at a time in cache.
//!
//! **Forward**, with `n` the layer norm of `x` and `m` dropout's mask:
//! `h = n W₁ + b₁`, `a = f(h)`, `y = x + m ⊙ (a W₂ + b₂)`.
//!
//! **Backward**, given `dy`:
//!
//! - `du = m ⊙ dy`, `db₂ = Σ_rows du`, `dW₂ = aᵀ du`
//! - `dh = f'(h) ⊙ (du W₂ᵀ)`, `db₁ = Σ_rows dh`, `dW₁ = nᵀ dh`
//! - `dx = dy +` the backward pass of the layer norm on `dh W₁ᵀ`: `norm.rs`
//!
//! GELU: `f(h) = h Φ(h)`, `f'(h) = Φ(h) + h φ(h)`, with the normal distribution function `Φ` and
//! density `φ`; one exponential gives both ([`normal`]). ReLU: `f' = 1` above zero, else 0.
//!
//! **Kept** is only `h`. `n`, `a` and the mask are **computed again**: `a` is as large as `h`, and
//! the backward pass needs `Φ(h)` for the slope in any case.

use multiversion::multiversion;
use rayon::prelude::*;

use crate::activation::Activation;
use crate::buffer::Buffer;
use crate::mask::Mask;
use crate::math::normal;
use crate::matrix::{Accumulate, Matrix, Panels, multiply, multiply_panels};
use crate::norm::{normalise, normalise_backward};
use crate::partitions::{PARTITIONS, add_partitions, take};
use crate::rows::{add_residual, add_rows, apply_mask};
use crate::scratch::with_scratch;

/// Minimum and maximum number of rows that go through all layers together. A row of width 128 and
/// hidden width 512 is 5 KiB in `n`, `h`, `a` and the result: 192 of them fill a second-level cache
/// of 1 MiB. With at least 48, a weight is used 48 times after it has been read.
const TOGETHER: [usize; 2] = [48, 192];
/// Minimum number of blocks of rows, if there are as many rows: work for eight threads.
const BLOCKS: usize = 8;

/// Number of rows that go through all layers together. It depends only on sizes, and so do the sums
/// over a block.
fn together(rows: usize) -> usize {
    (rows / BLOCKS).clamp(TOGETHER[0], TOGETHER[1])
}

/// The parameters as slices, laid out as in [`MlpWeights`](super::MlpWeights).
#[derive(Clone, Copy)]
pub(super) struct MlpParameters<'a> {
    pub norm_weight: &'a [f32],
    pub norm_bias: &'a [f32],
    pub up_weight: &'a [f32],
    pub up_bias: &'a [f32],
    pub down_weight: &'a [f32],
    pub down_bias: &'a [f32],
}

impl<'a> MlpParameters<'a> {
    /// Width and hidden width.
    fn widths(&self) -> (usize, usize) {
        (self.down_bias.len(), self.up_bias.len())
    }

    fn up(&self) -> Matrix<'a> {
        let (d, h) = self.widths();
        Matrix::new(self.up_weight, d, h)
    }

    fn down(&self) -> Matrix<'a> {
        let (d, h) = self.widths();
        Matrix::new(self.down_weight, h, d)
    }
}

/// The hidden layer before its activation, `[rows, h]`: everything that the backward pass needs.
pub(super) struct SavedMlp(Buffer);

/// The block's result, and the values for [`backward`] if `keep`.
pub(super) fn forward(
    x: &[f32],
    parameters: MlpParameters<'_>,
    activation: Activation,
    mask: Option<Mask>,
    keep: bool,
) -> (Buffer, Option<SavedMlp>) {
    let (d, h) = parameters.widths();
    let rows = x.len() / d;
    let together = together(rows);
    let (up, down) = (Panels::new(parameters.up()), Panels::new(parameters.down()));
    let mut out = Buffer::new(x.len());
    let mut saved = Buffer::new(if keep { rows * h } else { 0 });
    let block = |i: usize, x: &[f32], out: &mut [f32], saved: Option<&mut [f32]>| {
        let rows = x.len() / d;
        let unsaved = if saved.is_none() { rows * h } else { 0 };
        with_scratch([rows * d, rows * h, unsaved], |[normal, active, unsaved]| {
            let hidden = saved.unwrap_or(unsaved);
            normalise(x, parameters.norm_weight, parameters.norm_bias, normal);
            multiply_panels(hidden, h, Accumulate::Overwrite, Matrix::new(normal, rows, d), &up);
            activate(hidden, parameters.up_bias, active, activation);
            multiply_panels(out, d, Accumulate::Overwrite, Matrix::new(active, rows, h), &down);
            add_residual(out, x, parameters.down_bias, mask, i * together);
        });
    };
    let blocks = out.par_chunks_mut(together * d).zip(x.par_chunks(together * d)).enumerate();
    if keep {
        blocks
            .zip(saved.par_chunks_mut(together * h))
            .for_each(|((i, (out, x)), saved)| block(i, x, out, Some(saved)));
    } else {
        blocks.for_each(|(i, (out, x))| block(i, x, out, None));
    }
    (out, keep.then_some(SavedMlp(saved)))
}

/// Gradients of `x` and of the parameters in the order of [`MlpParameters`].
pub(super) fn backward(
    x: &[f32],
    parameters: MlpParameters<'_>,
    activation: Activation,
    mask: Option<Mask>,
    saved: &SavedMlp,
    gradient: &[f32],
) -> [Buffer; 7] {
    let (d, h) = parameters.widths();
    let rows = x.len() / d;
    let together = together(rows);
    let up = Panels::new(parameters.up().transposed());
    let down = Panels::new(parameters.down().transposed());
    let mut by_x = Buffer::new(x.len());
    let part = rows.div_ceil(PARTITIONS).next_multiple_of(together);
    let length = 2 * d * h + 3 * d + h;
    let mut sums = Buffer::new(rows.div_ceil(part) * length);
    x.par_chunks(part * d)
        .zip(gradient.par_chunks(part * d))
        .zip(saved.0.par_chunks(part * h))
        .zip(by_x.par_chunks_mut(part * d))
        .zip(sums.par_chunks_mut(length))
        .enumerate()
        .for_each(|(i, ((((x, gradient), hidden), by_x), sums))| {
            sums.fill(0.0);
            let sums = MlpSums::new(sums, d, h);
            let blocks = x
                .chunks(together * d)
                .zip(gradient.chunks(together * d))
                .zip(hidden.chunks(together * h))
                .zip(by_x.chunks_mut(together * d));
            for (j, (((x, gradient), hidden), by_x)) in blocks.enumerate() {
                let rows = x.len() / d;
                let sizes = [rows * d, rows * d, rows * h, rows * h, rows * d];
                with_scratch(sizes, |[normal, masked, active, by_hidden, by_normal]| {
                    normalise(x, parameters.norm_weight, parameters.norm_bias, normal);
                    apply_mask(gradient, d, mask, i * part + j * together, masked);
                    add_rows(masked, sums.down_bias);
                    let by_out = Matrix::new(masked, rows, d);
                    multiply_panels(by_hidden, h, Accumulate::Overwrite, by_out, &down);
                    activate_backward(hidden, active, by_hidden, activation);
                    let active = Matrix::new(active, rows, h).transposed();
                    multiply(sums.down, Accumulate::Add, active, by_out);
                    add_rows(by_hidden, sums.up_bias);
                    let normal = Matrix::new(normal, rows, d).transposed();
                    let by_hidden = Matrix::new(by_hidden, rows, h);
                    multiply(sums.up, Accumulate::Add, normal, by_hidden);
                    multiply_panels(by_normal, d, Accumulate::Overwrite, by_hidden, &up);
                    by_x.copy_from_slice(gradient);
                    let weight = parameters.norm_weight;
                    let [by_weight, by_bias] = [&mut *sums.norm_weight, &mut *sums.norm_bias];
                    normalise_backward(x, weight, by_normal, by_x, by_weight, by_bias);
                });
            }
        });
    let total = MlpSums::new(add_partitions(&mut sums, length), d, h);
    let MlpSums { norm_weight, norm_bias, up, up_bias, down, down_bias } = total;
    let [a, b, c, d, e, f] =
        [norm_weight, norm_bias, up, up_bias, down, down_bias].map(|sum| Buffer::from(&*sum));
    [by_x, a, b, c, d, e, f]
}

/// Gradients of the parameters over one partition of the rows.
struct MlpSums<'a> {
    norm_weight: &'a mut [f32],
    norm_bias: &'a mut [f32],
    up: &'a mut [f32],
    up_bias: &'a mut [f32],
    down: &'a mut [f32],
    down_bias: &'a mut [f32],
}

impl<'a> MlpSums<'a> {
    fn new(memory: &'a mut [f32], d: usize, h: usize) -> Self {
        let mut rest = memory;
        let [norm_weight, norm_bias, up, up_bias, down, down_bias] =
            [d, d, d * h, h, h * d, d].map(|length| take(&mut rest, length));
        Self { norm_weight, norm_bias, up, up_bias, down, down_bias }
    }
}

/// `hidden += bias; active = activation(hidden)`
#[multiversion(targets = "simd")]
fn activate(hidden: &mut [f32], bias: &[f32], active: &mut [f32], activation: Activation) {
    let width = bias.len();
    let rows = hidden.chunks_exact_mut(width).zip(active.chunks_exact_mut(width));
    for (hidden, active) in rows {
        match activation {
            Activation::Gelu => {
                for ((hidden, active), bias) in hidden.iter_mut().zip(active).zip(bias) {
                    *hidden += bias;
                    *active = *hidden * normal(*hidden).0;
                }
            }
            Activation::Relu => {
                for ((hidden, active), bias) in hidden.iter_mut().zip(active).zip(bias) {
                    *hidden += bias;
                    *active = if *hidden < 0.0 { 0.0 } else { *hidden };
                }
            }
        }
    }
}

/// `active = f(hidden); gradient *= f'(hidden)`, with `f'(h) = Φ(h) + h φ(h)` for GELU.
#[multiversion(targets = "simd")]
fn activate_backward(
    hidden: &[f32],
    active: &mut [f32],
    gradient: &mut [f32],
    activation: Activation,
) {
    let all = hidden.iter().zip(active).zip(gradient);
    match activation {
        Activation::Gelu => {
            for ((hidden, active), gradient) in all {
                let (below, density) = normal(*hidden);
                *active = hidden * below;
                *gradient *= below + hidden * density;
            }
        }
        Activation::Relu => {
            for ((hidden, active), gradient) in all {
                *active = if *hidden < 0.0 { 0.0 } else { *hidden };
                *gradient = if *hidden <= 0.0 { 0.0 } else { *gradient };
            }
        }
    }
}
