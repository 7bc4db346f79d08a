//! Patches of an image as matrix rows, and back: the conversion of a convolution to a product.
//!
//! Images are `[height, width, channels]`, so the pixels of one kernel row are contiguous.

use multiversion::multiversion;

/// A convolution without padding, on square images with square kernels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Convolution {
    /// Channels of the image.
    pub channels: usize,
    /// Height and width of the image.
    pub size: usize,
    /// Height and width of the kernel.
    pub kernel: usize,
    /// Pixels from one patch to the next.
    pub stride: usize,
}

impl Convolution {
    /// Height and width of the result.
    pub const fn output(self) -> usize {
        (self.size - self.kernel) / self.stride + 1
    }

    /// Patches in an image: rows of the patch matrix.
    pub const fn patches(self) -> usize {
        self.output() * self.output()
    }

    /// Values in a patch, in (row, column, channel) order: columns of the patch matrix.
    pub const fn patch(self) -> usize {
        self.kernel * self.kernel * self.channels
    }

    /// Calls `f` with the start of each kernel row of each patch in the image, in the order of the
    /// patch matrix.
    #[inline(always)]
    fn each_row(self, mut f: impl FnMut(usize)) {
        for y in 0..self.output() {
            for x in 0..self.output() {
                for row in 0..self.kernel {
                    f(((y * self.stride + row) * self.size + x * self.stride) * self.channels);
                }
            }
        }
    }
}

/// Kernel rows of these layers, in values: constant sizes allow direct copies.
const ROW2: usize = 4 * 32;
const ROW3: usize = 3 * 64;

/// The patch matrix of an image: `[patches, patch]`.
#[multiversion(targets = "simd")]
pub(super) fn gather(shape: Convolution, image: &[f32], patches: &mut [f32]) {
    let length = shape.kernel * shape.channels;
    let mut rows = patches.chunks_exact_mut(length);
    shape.each_row(|at| {
        if let Some(row) = rows.next() {
            match length {
                ROW2 => row[..ROW2].copy_from_slice(&image[at..at + ROW2]),
                ROW3 => row[..ROW3].copy_from_slice(&image[at..at + ROW3]),
                _ => row.copy_from_slice(&image[at..at + length]),
            }
        }
    });
}

/// The transpose of [`gather`]: every patch is added to the image at its source.
#[multiversion(targets = "simd")]
pub(super) fn scatter(shape: Convolution, patches: &[f32], image: &mut [f32]) {
    image.fill(0.0);
    let length = shape.kernel * shape.channels;
    let mut rows = patches.chunks_exact(length);
    shape.each_row(|at| {
        if let Some(row) = rows.next() {
            for (pixel, value) in image[at..at + length].iter_mut().zip(row) {
                *pixel += value;
            }
        }
    });
}

/// Patches of one `u8` frame, `size` pixels each way, as columns `column..` of a patch
/// matrix whose rows are `row_stride` long. `kernel` is 8.
#[multiversion(targets = "simd")]
pub(super) fn gather_frame(
    shape: Convolution,
    frame: &[u8],
    patches: &mut [f32],
    row_stride: usize,
    column: usize,
) {
    const KERNEL: usize = 8;
    let side = shape.output();
    for y in 0..side {
        for x in 0..side {
            let start = (y * side + x) * row_stride + column;
            let patch = &mut patches[start..start + KERNEL * KERNEL];
            for (row, values) in patch.chunks_exact_mut(KERNEL).enumerate() {
                let at = (y * shape.stride + row) * shape.size + x * shape.stride;
                let pixels = &frame[at..at + KERNEL];
                for (value, pixel) in values.iter_mut().zip(pixels) {
                    *value = f32::from(*pixel);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Convolution = Convolution { channels: 2, size: 5, kernel: 3, stride: 2 };

    #[test]
    fn patches_contain_the_pixels_under_the_kernel() {
        let image: Vec<f32> = (0..50).map(|i| i as f32).collect();
        let mut patches = vec![0.0; 4 * 18];
        gather(SHAPE, &image, &mut patches);
        // Patch (1, 0) begins at pixel (2, 0), value 20; its second row at pixel (3, 0).
        assert_eq!(patches[36..42], [20.0, 21.0, 22.0, 23.0, 24.0, 25.0]);
        assert_eq!(patches[42], 30.0);
    }

    #[test]
    fn scatter_is_the_transpose_of_gather() {
        // ⟨gather(a), b⟩ = ⟨a, scatter(b)⟩, in whole numbers.
        let a: Vec<f32> = (0..50).map(|i| (i * 7 % 11) as f32).collect();
        let b: Vec<f32> = (0..72).map(|i| (i * 5 % 13) as f32).collect();
        let (mut patches, mut image) = (vec![0.0; 72], vec![0.0; 50]);
        gather(SHAPE, &a, &mut patches);
        scatter(SHAPE, &b, &mut image);
        let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f32>();
        assert_eq!(dot(&patches, &b), dot(&a, &image));
    }
}
