//! The loss on slices, one row at a time: pairs of quantiles and targets are not stored.
//!
//! **Backward**, given `dL` of a row, with `w_i(u) = |τ_i − 1(u < 0)|` and
//! `H'(u) = max(−1, min(u, 1))`:
//!
//! - `dt_j = dL/m · Σ_i w_i(u_ij) H'(u_ij)`
//! - `dθ_i = −dL/m · Σ_j w_i(u_ij) H'(u_ij)`, for `u_ij = t_j − θ_i`
//!
//! `w_i` jumps where `u = 0`, and there `H` and `H'` are 0.

use multiversion::multiversion;
use rayon::prelude::*;

use crate::buffer::Buffer;
use crate::simd::sum;

/// Pairs per task: about ten microseconds of work, long compared with the start of a task.
const PAIRS: usize = 1 << 15;

/// `τ_i = (2i + 1)/(2n)`
pub(super) fn levels(n: usize) -> impl Iterator<Item = f64> {
    (0..n).map(move |i| (2 * i + 1) as f64 / (2 * n) as f64)
}

/// `|τ − 1(u < 0)|`
#[inline(always)]
fn weight(level: f32, u: f32) -> f32 {
    if u < 0.0 { 1.0 - level } else { level }
}

/// `H(u)`
#[inline(always)]
fn huber(u: f32) -> f32 {
    let size = u.abs();
    let small = size.min(1.0);
    small * (size - small / 2.0)
}

/// `H'(u)`; a NaN stays NaN, so that training detects it.
#[inline(always)]
fn huber_slope(u: f32) -> f32 {
    u.clamp(-1.0, 1.0)
}

#[multiversion(targets = "simd")]
fn loss_of(quantiles: &[f32], targets: &[f32], levels: &[f32]) -> f32 {
    let mut total = 0.0;
    for (&quantile, &level) in quantiles.iter().zip(levels) {
        total += sum([targets], |[target]| {
            let u = target - quantile;
            weight(level, u) * huber(u)
        });
    }
    total / targets.len() as f32
}

/// The gradients of a row, from `dL` = `gradient`.
#[multiversion(targets = "simd")]
fn gradients_of(
    [quantiles, targets, levels]: [&[f32]; 3],
    gradient: f32,
    by_quantiles: &mut [f32],
    by_targets: &mut [f32],
) {
    let each = gradient / targets.len() as f32;
    for ((by, &quantile), &level) in by_quantiles.iter_mut().zip(quantiles).zip(levels) {
        let slopes = sum([targets], |[target]| {
            let u = target - quantile;
            weight(level, u) * huber_slope(u)
        });
        *by = -each * slopes;
    }
    for (by, &target) in by_targets.iter_mut().zip(targets) {
        let slopes = sum([quantiles, levels], |[quantile, level]| {
            let u = target - quantile;
            weight(level, u) * huber_slope(u)
        });
        *by = each * slopes;
    }
}

/// Rows per task, and the levels in `f32`.
fn of_widths([n, m]: [usize; 2]) -> (usize, Vec<f32>) {
    ((PAIRS / (n * m)).max(1), levels(n).map(|level| level as f32).collect())
}

/// `[rows]`
pub(super) fn losses([quantiles, targets]: [&[f32]; 2], widths: [usize; 2]) -> Buffer {
    let ([n, m], (rows, levels)) = (widths, of_widths(widths));
    let mut out = Buffer::new(quantiles.len() / n);
    let parts = quantiles.par_chunks(rows * n).zip(targets.par_chunks(rows * m));
    out.par_chunks_mut(rows).zip(parts).for_each(|(out, (quantiles, targets))| {
        let rows = quantiles.chunks_exact(n).zip(targets.chunks_exact(m));
        for (out, (quantiles, targets)) in out.iter_mut().zip(rows) {
            *out = loss_of(quantiles, targets, &levels);
        }
    });
    out
}

/// The gradients of quantiles and targets; the module's documentation has the formulas.
pub(super) fn gradients(
    [quantiles, targets]: [&[f32]; 2],
    widths: [usize; 2],
    gradient: &[f32],
) -> [Buffer; 2] {
    let ([n, m], (rows, levels)) = (widths, of_widths(widths));
    let mut by_quantiles = Buffer::new(quantiles.len());
    let mut by_targets = Buffer::new(targets.len());
    let parts = quantiles.par_chunks(rows * n).zip(targets.par_chunks(rows * m));
    let by = by_quantiles.par_chunks_mut(rows * n).zip(by_targets.par_chunks_mut(rows * m));
    by.zip(parts).zip(gradient.par_chunks(rows)).for_each(|((by, inputs), gradient)| {
        let by = by.0.chunks_exact_mut(n).zip(by.1.chunks_exact_mut(m));
        let rows = inputs.0.chunks_exact(n).zip(inputs.1.chunks_exact(m));
        for (((by_quantiles, by_targets), (quantiles, targets)), &gradient) in
            by.zip(rows).zip(gradient)
        {
            let row = [quantiles, targets, &levels[..]];
            gradients_of(row, gradient, by_quantiles, by_targets);
        }
    });
    [by_quantiles, by_targets]
}
