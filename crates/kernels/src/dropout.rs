//! Dropout as a function of a seed and a position.
//!
//! `y = m ⊙ x` with `m = 0` or `1 / (1 − p)`, so the backward pass is `dx = m ⊙ dy`: the same
//! operation, applied to the gradient. Nothing is kept for it: the mask is a hash of
//! `(seed, row, column)` and is computed again.

#[cfg(feature = "cube")]
mod cube;

use burn::tensor::{Int, Tensor, TensorData};
use rayon::prelude::*;

use crate::Form;
use crate::buffer::Buffer;
use crate::flex::{self, Fused, is_flex_f32};
#[cfg(feature = "cube")]
use crate::gpu::epilogues::Masked;
use crate::mask::{Mask, Place, nth_seed};
use crate::rows::apply_mask;

/// One of the dropouts of a training step. Each has its own `nth`, and each step its own seed.
#[derive(Clone, Debug)]
pub struct Dropout {
    /// Probability that an element becomes zero, in `[0, 1)`. The others are scaled by
    /// `1 / (1 - probability)`.
    pub probability: f32,
    /// `[2]`: the [words](Self::words) of the step's seed, on the device of the computation, where a
    /// recorded step reads them anew.
    pub step_seed: Tensor<1, Int>,
    /// Index of this dropout in the step. The seed of its mask is `mix(mix(step's seed) ^ mix(nth))`
    /// with the finaliser of splitmix64.
    pub nth: u32,
}

impl Dropout {
    /// The low and the high 32 bits of a step's seed.
    pub fn words(seed: u64) -> [i32; 2] {
        [seed as i32, (seed >> 32) as i32]
    }

    /// The mask for one place on the host, or `None` if nothing is dropped.
    ///
    /// # Panics
    /// When the probability lies outside `[0, 1)`.
    pub(crate) fn mask(&self, place: Place) -> Option<Mask> {
        Mask::new(self.probability, 0, place)?;
        let words: Vec<i64> = self.step_seed.to_data().iter().collect();
        let [low, high] = [words[0] as u32, words[1] as u32].map(u64::from);
        Mask::new(self.probability, nth_seed(low | (high << 32), self.nth.into()), place)
    }

    /// Drops elements of a tensor whose last axis is the columns. If `x` is on a GPU, the mask is
    /// hashed there. Otherwise factors are computed here and sent to its device.
    pub(crate) fn apply<const D: usize>(&self, x: Tensor<D>, place: Place) -> Tensor<D> {
        #[cfg(feature = "cube")]
        if cube::is_possible(&x) {
            let (step_seed, mask) = Masked::of(Some(self), place, &x.device());
            let Some(mask) = mask else { return x };
            return cube::apply(x, step_seed, mask);
        }
        let Some(mask) = self.mask(place) else { return x };
        let shape = x.dims();
        let columns = shape[D - 1];
        let rows: usize = shape[..D - 1].iter().product();
        let factors: Vec<f32> = (0..rows)
            .flat_map(|row| {
                let row = mask.row(row);
                (0..columns).map(move |column| row.factor(column as u32))
            })
            .collect();
        let options = (&x.device(), x.dtype());
        x * Tensor::from_data(TensorData::new(factors, shape), options)
    }
}

/// Dropout of a whole tensor.
///
/// # Shapes
/// - `x` and result: `[batch, tokens, width]`
pub fn dropout(x: Tensor<3>, dropout: Dropout, form: Form) -> Tensor<3> {
    if form == Form::Auto && is_flex_f32(&x) {
        let Some(mask) = dropout.mask(Place::Residual) else { return x };
        let shape = x.dims();
        return flex::apply(Drop { mask, width: shape[2] }, [x.into_dispatch()], shape);
    }
    dropout.apply(x, Place::Residual)
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
