//! The perceptron block on slices, a few rows at a time in cache.

use rayon::prelude::*;

use super::Activation;
use crate::buffer::Buffer;
use crate::dropout::Mask;
use crate::math::normal;
use crate::matrix::{Into, Matrix, Panels, multiply_panels};
use crate::outer::add_outer;
use crate::rows::{add_residual, add_rows, apply_mask, normalise, normalise_backward};
use crate::scratch::with_scratch;
use crate::simd::vectorised;

/// Rows that go through all layers together, at least and at most.
const TOGETHER: [usize; 2] = [48, 192];
/// Blocks of rows, at least, as far as there are rows: work for several threads.
const BLOCKS: usize = 8;
/// Rows whose activations the backward pass holds at a time, for the weight gradients.
const ROWS_HELD: usize = 1536;

/// Rows that go through all layers together. It depends on sizes alone, so that sums over
/// a block do too.
fn together(rows: usize) -> usize {
    (rows / BLOCKS).clamp(TOGETHER[0], TOGETHER[1])
}

/// The parameters as slices, laid out as in [`MlpWeights`](super::MlpWeights).
#[derive(Clone, Copy)]
pub(super) struct Parameters<'a> {
    pub norm_weight: &'a [f32],
    pub norm_bias: &'a [f32],
    pub up_weight: &'a [f32],
    pub up_bias: &'a [f32],
    pub down_weight: &'a [f32],
    pub down_bias: &'a [f32],
}

impl<'a> Parameters<'a> {
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

/// The hidden layer before its activation, `[rows, h]`: all the backward pass needs.
pub(super) struct Saved(Buffer);

/// The block's result, and what [`backward`] needs if `keep`.
pub(super) fn forward(
    x: &[f32],
    parameters: Parameters<'_>,
    activation: Activation,
    mask: Option<Mask>,
    keep: bool,
) -> (Vec<f32>, Option<Saved>) {
    let (d, h) = parameters.widths();
    let rows = x.len() / d;
    let together = together(rows);
    let (up, down) = (Panels::new(parameters.up()), Panels::new(parameters.down()));
    let mut out = vec![0.0; x.len()];
    let mut saved = Buffer::new(if keep { rows * h } else { 0 });
    let block = |i: usize, x: &[f32], out: &mut [f32], saved: Option<&mut [f32]>| {
        let rows = x.len() / d;
        let own = if saved.is_none() { rows * h } else { 0 };
        with_scratch([rows * d, rows * h, own], |[normal, active, own]| {
            let hidden = saved.unwrap_or(own);
            normalise(x, parameters.norm_weight, parameters.norm_bias, normal);
            multiply_panels(hidden, h, Into::Fresh, Matrix::new(normal, rows, d), &up);
            activate(hidden, parameters.up_bias, active, activation);
            multiply_panels(out, d, Into::Fresh, Matrix::new(active, rows, h), &down);
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
    (out, keep.then_some(Saved(saved)))
}

/// Gradients by `x` and by the parameters in the order of [`Parameters`].
pub(super) fn backward(
    x: &[f32],
    parameters: Parameters<'_>,
    activation: Activation,
    mask: Option<Mask>,
    saved: &Saved,
    gradient: &[f32],
) -> [Vec<f32>; 7] {
    let (d, h) = parameters.widths();
    let rows = x.len() / d;
    let together = together(rows);
    let up = Panels::new(parameters.up().transposed());
    let down = Panels::new(parameters.down().transposed());
    let mut by_x = gradient.to_vec();
    let mut by_up = vec![0.0; d * h];
    let mut by_down = vec![0.0; h * d];
    // Norm weight, norm bias, down bias, up bias.
    let mut by_vectors = vec![0.0; 3 * d + h];

    let held = (ROWS_HELD / together * together).min(rows);
    let mut memory = Held::new(held, d, h);
    for first in (0..rows).step_by(held) {
        let part = first..(first + held).min(rows);
        let n = part.len();
        let blocks = n.div_ceil(together);
        let mut sums = vec![0.0; blocks * by_vectors.len()];
        let wide = part.start * d..part.end * d;
        let hidden = part.start * h..part.end * h;
        let memory = memory.first_rows(n, d, h);
        x[wide.clone()]
            .par_chunks(together * d)
            .zip(gradient[wide.clone()].par_chunks(together * d))
            .zip(saved.0[hidden].par_chunks(together * h))
            .zip(by_x[wide].par_chunks_mut(together * d))
            .zip(memory.normal.par_chunks_mut(together * d))
            .zip(memory.masked.par_chunks_mut(together * d))
            .zip(memory.active.par_chunks_mut(together * h))
            .zip(memory.by_hidden.par_chunks_mut(together * h))
            .zip(sums.par_chunks_mut(by_vectors.len()))
            .enumerate()
            .for_each(|(i, block)| {
                let (
                    (((((((x, gradient), hidden), by_x), normal), masked), active), by_hidden),
                    sums,
                ) = block;
                let rows = x.len() / d;
                let (by_norm_weight, sums) = sums.split_at_mut(d);
                let (by_norm_bias, sums) = sums.split_at_mut(d);
                let (by_down_bias, by_up_bias) = sums.split_at_mut(d);

                normalise(x, parameters.norm_weight, parameters.norm_bias, normal);
                apply_mask(gradient, d, mask, first + i * together, masked);
                add_rows(masked, by_down_bias);
                let left = Matrix::new(masked, rows, d);
                multiply_panels(by_hidden, h, Into::Fresh, left, &down);
                activate_backward(hidden, active, by_hidden, activation);
                add_rows(by_hidden, by_up_bias);
                with_scratch([rows * d], |[by_normal]| {
                    let left = Matrix::new(by_hidden, rows, h);
                    multiply_panels(by_normal, d, Into::Fresh, left, &up);
                    normalise_backward(
                        x,
                        parameters.norm_weight,
                        by_normal,
                        by_x,
                        by_norm_weight,
                        by_norm_bias,
                    );
                });
            });
        add_rows(&sums, &mut by_vectors);
        add_outer(&mut by_up, memory.normal, memory.by_hidden, n);
        add_outer(&mut by_down, memory.active, memory.masked, n);
    }

    let by_up_bias = by_vectors.split_off(3 * d);
    let by_down_bias = by_vectors.split_off(2 * d);
    let by_norm_bias = by_vectors.split_off(d);
    [by_x, by_vectors, by_norm_bias, by_up, by_up_bias, by_down, by_down_bias]
}

/// What the blocks of one part leave for the weight gradients.
struct Held {
    normal: Buffer,
    masked: Buffer,
    active: Buffer,
    by_hidden: Buffer,
}

struct HeldRows<'a> {
    /// Layer norm of `x`.
    normal: &'a mut [f32],
    /// The gradient after dropout.
    masked: &'a mut [f32],
    /// The hidden layer after its activation.
    active: &'a mut [f32],
    /// The gradient by the hidden layer before its activation.
    by_hidden: &'a mut [f32],
}

impl Held {
    fn new(rows: usize, d: usize, h: usize) -> Self {
        Self {
            normal: Buffer::new(rows * d),
            masked: Buffer::new(rows * d),
            active: Buffer::new(rows * h),
            by_hidden: Buffer::new(rows * h),
        }
    }

    fn first_rows(&mut self, rows: usize, d: usize, h: usize) -> HeldRows<'_> {
        HeldRows {
            normal: &mut self.normal[..rows * d],
            masked: &mut self.masked[..rows * d],
            active: &mut self.active[..rows * h],
            by_hidden: &mut self.by_hidden[..rows * h],
        }
    }
}

vectorised! {
    /// `hidden += bias; active = activation(hidden)`
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

    /// `active = activation(hidden); gradient *= activation'(hidden)`
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
                    *gradient = if *hidden > 0.0 { *gradient } else { 0.0 };
                }
            }
        }
    }
}
