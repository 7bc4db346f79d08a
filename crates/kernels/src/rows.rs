//! Loops over the rows of a matrix, also compiled for wide vectors: bias, ReLU, dropout, sums.

use multiversion::multiversion;

use crate::mask::Mask;

/// Adds a bias to every row.
#[multiversion(targets = "simd")]
pub(crate) fn add_bias(values: &mut [f32], bias: &[f32]) {
    for row in values.chunks_exact_mut(bias.len()) {
        for (value, bias) in row.iter_mut().zip(bias) {
            *value += bias;
        }
    }
}

/// `values = max(values + bias, 0)`
#[multiversion(targets = "simd")]
pub(crate) fn bias_relu(values: &mut [f32], bias: &[f32]) {
    for row in values.chunks_exact_mut(bias.len()) {
        for (value, bias) in row.iter_mut().zip(bias) {
            let hidden = *value + bias;
            // A NaN stays NaN, so that training detects it.
            *value = if hidden < 0.0 { 0.0 } else { hidden };
        }
    }
}

/// `gradient = 0` where ReLU gave 0. At a NaN it does not change, as in burn.
#[multiversion(targets = "simd")]
pub(crate) fn relu_backward(active: &[f32], gradient: &mut [f32]) {
    for (gradient, active) in gradient.iter_mut().zip(active) {
        *gradient = if *active <= 0.0 { 0.0 } else { *gradient };
    }
}

/// `out = x + mask (out + bias)`; the mask's rows start at `first_row`.
#[multiversion(targets = "simd")]
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
#[multiversion(targets = "simd")]
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

/// Adds every row of `values` to `total`, in order.
#[multiversion(targets = "simd")]
pub(crate) fn add_rows(values: &[f32], total: &mut [f32]) {
    for row in values.chunks_exact(total.len()) {
        for (total, value) in total.iter_mut().zip(row) {
            *total += value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_mask_continue() {
        let mask = Mask::new(0.5, 5, crate::mask::Place::Residual);
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
