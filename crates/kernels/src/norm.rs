//! Layer normalisation over the last axis.
//!
//! For a row `x` of width `d`, with mean `μ` and `s = 1 / sqrt(variance + ε)`: `n = s (x − μ)`,
//! `y = w ⊙ n + b`.
//!
//! **Backward**, given `dy`. With `g = w ⊙ dy`, the gradient of `n`,
//!
//! - `dw = Σ_rows n ⊙ dy`, `db = Σ_rows dy`
//! - `dx = s (g − mean(g) − n · mean(g ⊙ n))`
//!
//! The two means are the contributions of `μ` and `s`, which depend on all of `x`. Shifting
//! or stretching a row does not change `n`, so `dx` is orthogonal to a constant and to `n`. Nothing
//! is kept from the forward pass. Mean and variance take two passes over a row that is already in
//! cache, which costs less than writing `n` to memory and reading it again.

#[cfg(feature = "cube")]
pub(crate) mod cube;

use burn::tensor::Tensor;
use multiversion::multiversion;
use rayon::prelude::*;

use crate::Form;
use crate::buffer::Buffer;
use crate::flex::{self, Fused, is_flex_f32};
use crate::rows::add_rows;
use crate::simd::sum;

/// Added to the variance, as in the reference models.
pub const LAYER_NORM_EPSILON: f64 = 1e-5;

/// `(x - mean) / sqrt(variance + epsilon) * weight + bias`, the variance divided by the
/// width.
///
/// # Shapes
/// - `x` and result: `[batch, tokens, d]`; `weight`, `bias`: `[d]`
///
/// # Panics
/// When shapes do not fit together.
pub fn layer_norm(x: Tensor<3>, weight: Tensor<1>, bias: Tensor<1>, form: Form) -> Tensor<3> {
    let shape @ [_, _, d] = x.dims();
    assert_eq!(weight.dims(), [d], "weight");
    assert_eq!(bias.dims(), [d], "bias");
    if form == Form::Auto && is_flex_f32(&x) && is_flex_f32(&weight) && is_flex_f32(&bias) {
        let shape = x.dims();
        return flex::apply(
            LayerNorm,
            [x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch()],
            shape,
        );
    }
    #[cfg(feature = "cube")]
    if form != Form::Reference && cube::is_possible(&x) {
        return cube::layer_norm(x, weight, bias);
    }
    let centred = x.clone() - x.mean_dim(2);
    let variance = (centred.clone() * centred.clone()).mean_dim(2);
    let normal = centred / (variance + LAYER_NORM_EPSILON).sqrt();
    normal * weight.expand(shape) + bias.expand(shape)
}

/// The fused form.
struct LayerNorm;

/// Rows per task: at a width of 128 they are 64 KiB, which fit in a core's second-level cache.
/// Their work takes long compared with the start of a task. Each task has its own sums, added in
/// order, so the result does not depend on the number of threads, to the bit.
const ROWS: usize = 128;

impl Fused<3> for LayerNorm {
    type Saved = ();

    fn forward(&self, [x, weight, bias]: [&[f32]; 3], keep: bool) -> (Buffer, Option<()>) {
        let part = ROWS * weight.len();
        let mut out = Buffer::new(x.len());
        out.par_chunks_mut(part)
            .zip(x.par_chunks(part))
            .for_each(|(out, x)| normalise(x, weight, bias, out));
        (out, keep.then_some(()))
    }

    fn backward(
        &self,
        [x, weight, _]: [&[f32]; 3],
        _output: &[f32],
        (): &(),
        gradient: &[f32],
    ) -> [Buffer; 3] {
        let d = weight.len();
        let part = ROWS * d;
        let mut by_x = Buffer::zeros(x.len());
        // For each part, by weight and by bias.
        let mut sums = vec![0.0; x.len().div_ceil(part) * 2 * d];
        by_x.par_chunks_mut(part)
            .zip(x.par_chunks(part))
            .zip(gradient.par_chunks(part))
            .zip(sums.par_chunks_mut(2 * d))
            .for_each(|(((by_x, x), gradient), sums)| {
                let (by_weight, by_bias) = sums.split_at_mut(d);
                normalise_backward(x, weight, gradient, by_x, by_weight, by_bias);
            });
        let mut totals = vec![0.0; 2 * d];
        add_rows(&sums, &mut totals);
        let (by_weight, by_bias) = totals.split_at(d);
        [by_x, by_weight.into(), by_bias.into()]
    }
}

/// Mean and the reciprocal of the standard deviation of a row.
#[inline(always)]
fn moments(row: &[f32]) -> (f32, f32) {
    let width = row.len() as f32;
    let mean = sum([row], |[x]| x) / width;
    let variance = sum([row], |[x]| (x - mean) * (x - mean)) / width;
    (mean, 1.0 / (variance + LAYER_NORM_EPSILON as f32).sqrt())
}

/// Layer norm of every row of `x`.
#[multiversion(targets = "simd")]
pub(crate) fn normalise(x: &[f32], weight: &[f32], bias: &[f32], into: &mut [f32]) {
    let width = weight.len();
    for (x, into) in x.chunks_exact(width).zip(into.chunks_exact_mut(width)) {
        let (mean, scale) = moments(x);
        for (((into, x), weight), bias) in into.iter_mut().zip(x).zip(weight).zip(bias) {
            *into = (x - mean) * scale * weight + bias;
        }
    }
}

/// The gradients of [`normalise`], from the gradient of its result; the formula is in the module's
/// documentation. The gradient of `x` is added to `gradient_x`, which in a residual block already
/// contains the gradient of the residual path. The other gradients are added to their sums.
#[multiversion(targets = "simd")]
pub(crate) fn normalise_backward(
    x: &[f32],
    weight: &[f32],
    gradient: &[f32],
    gradient_x: &mut [f32],
    by_weight: &mut [f32],
    by_bias: &mut [f32],
) {
    let width = weight.len();
    let weight = &weight[..width];
    let rows = x.chunks_exact(width).zip(gradient.chunks_exact(width));
    for ((x, gradient), into) in rows.zip(gradient_x.chunks_exact_mut(width)) {
        let (mean, scale) = moments(x);
        let normal = |x: f32| (x - mean) * scale;
        let (x, gradient, into) = (&x[..width], &gradient[..width], &mut into[..width]);
        let (by_weight, by_bias) = (&mut by_weight[..width], &mut by_bias[..width]);
        for i in 0..width {
            by_weight[i] += gradient[i] * normal(x[i]);
            by_bias[i] += gradient[i];
        }
        let mean_gradient = sum([gradient, weight], |[g, w]| g * w) / width as f32;
        let mean_product = sum([gradient, weight, x], |[g, w, x]| g * w * normal(x)) / width as f32;
        for i in 0..width {
            into[i] +=
                scale * (gradient[i] * weight[i] - mean_gradient - normal(x[i]) * mean_product);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layer_norm_of_a_small_row() {
        // Mean 2, variance 2/3; (−1, 0, 1) / sqrt(2/3 + 1e-5).
        let mut out = [0.0; 3];
        normalise(&[1.0, 2.0, 3.0], &[2.0, 2.0, 1.0], &[0.5, 0.5, 0.0], &mut out);
        let unit = 1.0 / (2.0f32 / 3.0 + 1e-5).sqrt();
        let expected = [0.5 - 2.0 * unit, 0.5, unit];
        for (out, expected) in out.iter().zip(expected) {
            assert!((out - expected).abs() < 1e-6, "{out} {expected}");
        }
    }
}
