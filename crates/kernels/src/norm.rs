//! Layer normalisation over the last axis.

use burn::tensor::Tensor;
use rayon::prelude::*;

use crate::Form;
use crate::buffer::Buffer;
use crate::flex::{self, Fused, is_flex_f32};
use crate::rows::{add_rows, normalise, normalise_backward};

/// Added to the variance, as in the reference models.
pub const LAYER_NORM_EPSILON: f64 = 1e-5;

/// `(x - mean) / sqrt(variance + epsilon) * weight + bias`, the variance divided by the
/// width.
///
/// # Shapes
/// - `x` and result: `[batch, tokens, d]`; `weight`, `bias`: `[d]`
pub fn layer_norm(x: Tensor<3>, weight: Tensor<1>, bias: Tensor<1>, form: Form) -> Tensor<3> {
    if form == Form::Auto && is_flex_f32(&x) && is_flex_f32(&weight) && is_flex_f32(&bias) {
        let shape = x.dims();
        return flex::apply(
            LayerNorm,
            [x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch()],
            shape,
        );
    }
    let centred = x.clone() - x.mean_dim(2);
    let variance = (centred.clone() * centred.clone()).mean_dim(2);
    let normal = centred / (variance + LAYER_NORM_EPSILON).sqrt();
    normal * weight.unsqueeze() + bias.unsqueeze()
}

/// The fused form.
struct LayerNorm;

/// Rows a task takes.
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
        // Of each part, by weight and by bias.
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
