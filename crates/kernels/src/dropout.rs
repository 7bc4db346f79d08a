//! Dropout as a function of a seed and a position.
//!
//! `y = m ⊙ x` with `m = 0` or `1 / (1 − p)`, so the backward pass is `dx = m ⊙ dy`: the same
//! operation, applied to the gradient. Nothing is kept for it: the mask is a hash of
//! `(seed, row, column)` and is computed again.

#[cfg(feature = "cube")]
mod cube;

use burn::tensor::{Tensor, TensorData};
use rayon::prelude::*;

use crate::Form;
use crate::buffer::Buffer;
use crate::flex::{self, Fused, is_flex_f32};
use crate::mask::{Mask, Place};
use crate::rows::apply_mask;

/// Dropout with this probability; its mask is a pure function of `seed`.
///
/// Give every call in a training step its own seed, and every step new ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    /// Probability that an element becomes zero, in `[0, 1)`. The others are scaled by
    /// `1 / (1 - probability)`.
    pub probability: f32,
    /// Seed of the mask.
    pub seed: u64,
}

impl Dropout {
    /// The mask for one place, or `None` if nothing is dropped.
    ///
    /// # Panics
    /// When the probability lies outside `[0, 1)`.
    pub(crate) fn mask(&self, place: Place) -> Option<Mask> {
        Mask::new(self.probability, self.seed, place)
    }
}

/// Dropout of a whole tensor.
///
/// # Shapes
/// - `x` and result: `[batch, tokens, width]`
pub fn dropout(x: Tensor<3>, dropout: Dropout, form: Form) -> Tensor<3> {
    let Some(mask) = dropout.mask(Place::Residual) else { return x };
    let shape = x.dims();
    if form == Form::Auto && is_flex_f32(&x) {
        return flex::apply(Drop { mask, width: shape[2] }, [x.into_dispatch()], shape);
    }
    mask.apply(x)
}

/// The fused form.
struct Drop {
    mask: Mask,
    width: usize,
}

/// Rows per task: at a width of 128 they are 64 KiB, which fit in a core's second-level
/// cache. Their work takes long compared with the start of a task.
const ROWS: usize = 128;

impl Drop {
    fn apply(&self, values: &[f32]) -> Buffer {
        let part = ROWS * self.width;
        let mut out = Buffer::new(values.len());
        out.par_chunks_mut(part).zip(values.par_chunks(part)).enumerate().for_each(
            |(i, (out, values))| apply_mask(values, self.width, Some(self.mask), i * ROWS, out),
        );
        out
    }
}

impl Fused<1> for Drop {
    type Saved = ();

    fn forward(&self, [x]: [&[f32]; 1], keep: bool) -> (Buffer, Option<()>) {
        (self.apply(x), keep.then_some(()))
    }

    fn backward(&self, _: [&[f32]; 1], _output: &[f32], (): &(), gradient: &[f32]) -> [Buffer; 1] {
        [self.apply(gradient)]
    }
}

impl Mask {
    /// Drops elements of a tensor whose last axis is the columns. If `x` is on a GPU, the mask is
    /// hashed there. Otherwise factors are computed here and sent to its device.
    pub fn apply<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        #[cfg(feature = "cube")]
        if cube::is_possible(&x) {
            return cube::apply(x, *self);
        }
        let shape = x.dims();
        let columns = shape[D - 1];
        let rows: usize = shape[..D - 1].iter().product();
        let factors: Vec<f32> = (0..rows)
            .flat_map(|row| {
                let row = self.row(row);
                (0..columns).map(move |column| row.factor(column as u32))
            })
            .collect();
        let options = (&x.device(), x.dtype());
        x * Tensor::from_data(TensorData::new(factors, shape), options)
    }
}
