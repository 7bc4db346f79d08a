//! Products of matrices, and convolutions as such products.

use crate::{
    error::{Error, damaged},
    tensor::{Data, Tensor, count},
};

/// Rows of the first matrix that share each element of the second.
const ROWS: usize = 8;

/// `[…, m, k] · [k, n]`, or matrix by matrix with equal leading axes.
///
/// # Errors
/// When the shapes do not fit together.
pub fn product(a: &Tensor, b: &Tensor) -> Result<Tensor, Error> {
    let wrong = || damaged(format!("agent.onnx: a product of {:?} and {:?}", a.dims, b.dims));
    let [.., k] = a.dims[..] else { return Err(wrong()) };
    let (leads, [k_of_b, n]) = match &b.dims[..] {
        [leads @ .., k, n] => (leads, [*k, *n]),
        _ => return Err(wrong()),
    };
    let before = &a.dims[..a.dims.len() - 1];
    let is_batch = !leads.is_empty();
    if k != k_of_b
        || k == 0
        || n == 0
        || is_batch && before.split_last().map(|(_, l)| l) != Some(leads)
    {
        return Err(wrong());
    }
    let dims = [before, &[n]].concat();
    let mut out = vec![0.0f32; count(&dims)?];
    let (x, y) = (a.f32s()?, b.f32s()?);
    let m = if is_batch { before.last().copied().unwrap_or(0) } else { x.len() / k };
    if m > 0 {
        let matrices = x.chunks_exact(m * k).zip(out.chunks_exact_mut(m * n));
        for (at, (x, out)) in matrices.enumerate() {
            let y = if is_batch { &y[at * k * n..(at + 1) * k * n] } else { y };
            multiply(x, y, out, [k, n]);
        }
    }
    Tensor::new(dims, Data::F32(out))
}

/// `out += x y`
fn multiply(x: &[f32], y: &[f32], out: &mut [f32], sizes: [usize; 2]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the feature.
        return unsafe { with_avx2(x, y, out, sizes) };
    }
    rows(x, y, out, sizes);
}

/// The same loop with wider registers; the same bits, because nothing is reordered or fused.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2(x: &[f32], y: &[f32], out: &mut [f32], sizes: [usize; 2]) {
    rows(x, y, out, sizes);
}

#[inline(always)]
fn rows(x: &[f32], y: &[f32], out: &mut [f32], [k, n]: [usize; 2]) {
    for (x, out) in x.chunks(ROWS * k).zip(out.chunks_mut(ROWS * n)) {
        // Each row of y is read once for several rows of x.
        for (at, y) in y.chunks_exact(n).enumerate() {
            for (x, out) in x.chunks_exact(k).zip(out.chunks_exact_mut(n)) {
                let factor = x[at];
                for (out, y) in out.iter_mut().zip(y) {
                    *out += factor * y;
                }
            }
        }
    }
}

/// The convolution of `[batch, in, height, width]` with `[out, in, kernel, kernel]`, without
/// padding, plus a bias.
///
/// # Errors
/// When the shapes do not fit together.
pub fn convolution(
    x: &Tensor,
    weight: &Tensor,
    bias: &Tensor,
    strides: &[i64],
) -> Result<Tensor, Error> {
    let wrong = || damaged("agent.onnx: a convolution of other shapes");
    let ([batch, inputs, height, width], [outputs, inputs_of_weight, kernel, kernel_width]) =
        (x.dims.first_chunk().ok_or_else(wrong)?, weight.dims.first_chunk().ok_or_else(wrong)?);
    let stride = strides.first().and_then(|n| usize::try_from(*n).ok()).filter(|n| *n > 0);
    let stride = stride.ok_or_else(wrong)?;
    let (x, weight, bias) = (x.f32s()?, weight.f32s()?, bias.f32s()?);
    let fits = inputs == inputs_of_weight
        && kernel == kernel_width
        && *kernel > 0
        && kernel <= height
        && kernel <= width
        && bias.len() == *outputs;
    if !fits {
        return Err(wrong());
    }
    let (rows, columns) = ((height - kernel) / stride + 1, (width - kernel) / stride + 1);
    let (patch, n) = (inputs * kernel * kernel, rows * columns);
    let dims = vec![*batch, *outputs, rows, columns];
    let mut out = vec![0.0f32; count(&dims)?];
    let mut patches = vec![0.0f32; count(&[patch, n])?];
    let images = x.chunks_exact((inputs * height * width).max(1));
    for (image, out) in images.zip(out.chunks_exact_mut((outputs * n).max(1))) {
        for (at, line) in patches.chunks_exact_mut(n).enumerate() {
            let (channel, y, x) = (at / (kernel * kernel), at / kernel % kernel, at % kernel);
            for (place, value) in line.iter_mut().enumerate() {
                let (row, column) = (place / columns * stride + y, place % columns * stride + x);
                *value = image[(channel * height + row) * width + column];
            }
        }
        for (line, bias) in out.chunks_exact_mut(n).zip(bias) {
            line.fill(*bias);
        }
        multiply(weight, &patches, out, [patch, n]);
    }
    Tensor::new(dims, Data::F32(out))
}
