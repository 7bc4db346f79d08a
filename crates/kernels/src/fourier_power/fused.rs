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
use std::ops::{Add, Mul};

use rayon::prelude::*;

use crate::buffer::Buffer;

/// Rows per task: with 26 coefficients each, about ten thousand operations, which take long
/// compared with the start of a task.
const ROWS: usize = 256;

/// A complex number.
#[derive(Clone, Copy)]
struct Complex {
    re: f32,
    im: f32,
}

impl Complex {
    const ZERO: Self = Self { re: 0.0, im: 0.0 };

    /// `e^{i angle}`
    fn turn(angle: f32) -> Self {
        let (im, re) = angle.sin_cos();
        Self { re, im }
    }

    fn conjugate(self) -> Self {
        Self { re: self.re, im: -self.im }
    }

    fn square(self) -> f32 {
        self.re * self.re + self.im * self.im
    }
}

impl Add for Complex {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }
}

impl Mul for Complex {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self {
            re: self.re * other.re - self.im * other.im,
            im: self.re * other.im + self.im * other.re,
        }
    }
}

impl Mul<Complex> for f32 {
    type Output = Complex;

    fn mul(self, other: Complex) -> Complex {
        Complex { re: self * other.re, im: self * other.im }
    }
}

/// A row's coefficients: real parts, then imaginary ones.
fn coefficients(row: &[f32]) -> impl DoubleEndedIterator<Item = Complex> + ExactSizeIterator {
    let (re, im) = row.split_at(row.len() / 2);
    re.iter().zip(im).map(|(&re, &im)| Complex { re, im })
}

/// `A = Σ_l a_l wˡ`
fn amplitude(row: &[f32], w: Complex) -> Complex {
    coefficients(row).rev().fold(Complex::ZERO, |sum, a| sum * w + a)
}

/// `Σ_l l a_l wˡ`; multiplied by `iπs`, it is the slope of the amplitude.
fn slope(row: &[f32], w: Complex) -> Complex {
    let terms = coefficients(row).enumerate().rev();
    terms.fold(Complex::ZERO, |sum, (l, a)| sum * w + l as f32 * a)
}

/// `[rows]`
pub(super) fn power([a, z]: [&[f32]; 2], width: usize, stretch: f32) -> Buffer {
    let mut out = Buffer::new(z.len());
    out.par_chunks_mut(ROWS).enumerate().for_each(|(i, out)| {
        let rows = a[i * ROWS * width..].chunks_exact(width).zip(&z[i * ROWS..]);
        for (out, (row, z)) in out.iter_mut().zip(rows) {
            *out = amplitude(row, Complex::turn(PI * stretch * z)).square();
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
            let w = Complex::turn(PI * stretch * z);
            let amplitude = 2.0 * gradient * amplitude(row, w);
            *by_z = -PI * stretch * (amplitude.conjugate() * slope(row, w)).im;
            let (by_re, by_im) = by_row.split_at_mut(width / 2);
            let mut by = amplitude;
            for (re, im) in by_re.iter_mut().zip(by_im) {
                (*re, *im) = (by.re, by.im);
                by = by * w.conjugate();
            }
        }
    });
    [by_a, by_z]
}
