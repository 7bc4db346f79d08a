//! Loops over the rows of a matrix, compiled for wide vectors too: layer norm, bias,
//! dropout, sums.

use crate::dropout::Mask;
use crate::norm::LAYER_NORM_EPSILON;
use crate::simd::{sum, vectorised};

/// Mean and one over the standard deviation of a row.
#[inline(always)]
fn moments(row: &[f32]) -> (f32, f32) {
    let width = row.len() as f32;
    let mean = sum([row], |[x]| x) / width;
    let variance = sum([row], |[x]| (x - mean) * (x - mean)) / width;
    (mean, 1.0 / (variance + LAYER_NORM_EPSILON as f32).sqrt())
}

vectorised! {
    /// Layer norm of every row of `x`.
    pub(crate) fn normalise(x: &[f32], weight: &[f32], bias: &[f32], into: &mut [f32]) {
        let width = weight.len();
        for (x, into) in x.chunks_exact(width).zip(into.chunks_exact_mut(width)) {
            let (mean, scale) = moments(x);
            for (((into, x), weight), bias) in into.iter_mut().zip(x).zip(weight).zip(bias) {
                *into = (x - mean) * scale * weight + bias;
            }
        }
    }

    /// The gradients of [`normalise`], given that by its result: `by_x` is added to
    /// `gradient_x`, the others to their sums.
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
            let mean_product =
                sum([gradient, weight, x], |[g, w, x]| g * w * normal(x)) / width as f32;
            for i in 0..width {
                into[i] +=
                    scale * (gradient[i] * weight[i] - mean_gradient - normal(x[i]) * mean_product);
            }
        }
    }

    /// Adds a bias to every row.
    pub(crate) fn add_bias(values: &mut [f32], bias: &[f32]) {
        for row in values.chunks_exact_mut(bias.len()) {
            for (value, bias) in row.iter_mut().zip(bias) {
                *value += bias;
            }
        }
    }

    /// `out = x + mask (out + bias)`; the mask's rows begin at `first_row`.
    pub(crate) fn add_residual(
        out: &mut [f32],
        x: &[f32],
        bias: &[f32],
        mask: Option<Mask>,
        first_row: usize,
    ) {
        let width = bias.len();
        for (i, (out, x)) in out.chunks_exact_mut(width).zip(x.chunks_exact(width)).enumerate() {
            let (out, x, bias) = (&mut out[..width], &x[..width], &bias[..width]);
            match mask {
                Some(mask) => {
                    let mask = mask.row(first_row + i);
                    for j in 0..width {
                        out[j] = x[j] + mask.factor(j as u32) * (out[j] + bias[j]);
                    }
                }
                None => {
                    for j in 0..width {
                        out[j] = x[j] + (out[j] + bias[j]);
                    }
                }
            }
        }
    }

    /// `into = mask · values` in rows of this width.
    pub(crate) fn apply_mask(
        values: &[f32],
        width: usize,
        mask: Option<Mask>,
        first_row: usize,
        into: &mut [f32],
    ) {
        let Some(mask) = mask else {
            into.copy_from_slice(values);
            return;
        };
        let rows = values.chunks_exact(width).zip(into.chunks_exact_mut(width));
        for (i, (values, into)) in rows.enumerate() {
            let mask = mask.row(first_row + i);
            let (values, into) = (&values[..width], &mut into[..width]);
            for j in 0..width {
                into[j] = values[j] * mask.factor(j as u32);
            }
        }
    }

    /// `total += ` every row of `values`, in order.
    pub(crate) fn add_rows(values: &[f32], total: &mut [f32]) {
        for row in values.chunks_exact(total.len()) {
            for (total, value) in total.iter_mut().zip(row) {
                *total += value;
            }
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

    #[test]
    fn rows_of_a_mask_continue() {
        let mask = crate::Dropout { probability: 0.5, seed: 5 };
        let mask = mask.mask(crate::dropout::Place::Residual);
        let (values, mut whole, mut second) = ([1.0; 66], [0.0; 66], [0.0; 33]);
        apply_mask(&values, 33, mask, 0, &mut whole);
        apply_mask(&values[33..], 33, mask, 1, &mut second);
        assert_eq!(whole[33..], second);
        assert!(whole.contains(&0.0) && whole.contains(&2.0));
        let mut out = values;
        add_residual(&mut out, &values, &[1.0; 33], mask, 0);
        assert!(out.iter().zip(whole).all(|(out, factor)| *out == 1.0 + 2.0 * factor));
    }
}
