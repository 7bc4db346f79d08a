//! The squared amplitude on slices, by Horner's rule in `w = e^{iπsz}`: one sine and one cosine per
//! row.
//!
//! `P = |A|²` with `A = Σ_l a_l wˡ`. **Backward**, given `dP`:
//!
//! - `da_l = 2 dP · A conj(wˡ)`, its real part by `u_l` and its imaginary part by `v_l`
//! - `dz = dP · 2 Re(conj(A) dA/dz)` with `dA/dz = iπs Σ_l l a_l wˡ`,
//!   so `dz = −2πs dP · Im(conj(A) Σ_l l a_l wˡ)`
//!
//! Nothing is kept; `w` and `A` are computed again, one Horner pass.

use std::f32::consts::PI;

use num_complex::Complex32;
use rayon::prelude::*;

use crate::buffer::Buffer;

/// Rows per task: with 26 coefficients each, about ten thousand operations, which take long
/// compared with the start of a task.
const ROWS: usize = 256;

/// `e^{i angle}`
fn turn(angle: f32) -> Complex32 {
    let (im, re) = angle.sin_cos();
    Complex32 { re, im }
}

/// A row's coefficients: real parts, then imaginary ones.
fn coefficients(row: &[f32]) -> impl DoubleEndedIterator<Item = Complex32> + ExactSizeIterator {
    let (re, im) = row.split_at(row.len() / 2);
    re.iter().zip(im).map(|(&re, &im)| Complex32 { re, im })
}

/// `A = Σ_l a_l wˡ`
fn amplitude(row: &[f32], w: Complex32) -> Complex32 {
    coefficients(row).rev().fold(Complex32::ZERO, |sum, a| sum * w + a)
}

/// `Σ_l l a_l wˡ`; multiplied by `iπs`, it is the slope of the amplitude.
fn slope(row: &[f32], w: Complex32) -> Complex32 {
    let terms = coefficients(row).enumerate().rev();
    terms.fold(Complex32::ZERO, |sum, (l, a)| sum * w + l as f32 * a)
}

/// `[rows]`
pub(super) fn power([a, z]: [&[f32]; 2], width: usize, stretch: f32) -> Buffer {
    let mut out = Buffer::new(z.len());
    out.par_chunks_mut(ROWS).enumerate().for_each(|(i, out)| {
        let rows = a[i * ROWS * width..].chunks_exact(width).zip(&z[i * ROWS..]);
        for (out, (row, z)) in out.iter_mut().zip(rows) {
            *out = amplitude(row, turn(PI * stretch * z)).norm_sqr();
        }
    });
    out
}

/// The gradients of coefficients and points; the module's documentation has the formulas.
pub(super) fn gradients(
    [a, z]: [&[f32]; 2],
    width: usize,
    stretch: f32,
    gradient: &[f32],
) -> [Buffer; 2] {
    let (mut by_a, mut by_z) = (Buffer::new(a.len()), Buffer::new(z.len()));
    let all = by_a.par_chunks_mut(ROWS * width).zip(by_z.par_chunks_mut(ROWS)).enumerate();
    all.for_each(|(i, (by_a, by_z))| {
        let rows = a[i * ROWS * width..].chunks_exact(width).zip(&z[i * ROWS..]);
        let by = by_a.chunks_exact_mut(width).zip(by_z).zip(&gradient[i * ROWS..]);
        for (((by_row, by_z), gradient), (row, z)) in by.zip(rows) {
            let w = turn(PI * stretch * z);
            let amplitude = 2.0 * gradient * amplitude(row, w);
            *by_z = -PI * stretch * (amplitude.conj() * slope(row, w)).im;
            let (by_re, by_im) = by_row.split_at_mut(width / 2);
            let mut by = amplitude;
            for (re, im) in by_re.iter_mut().zip(by_im) {
                (*re, *im) = (by.re, by.im);
                by *= w.conj();
            }
        }
    });
    [by_a, by_z]
}
