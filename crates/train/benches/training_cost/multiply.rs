//! The product of two matrices by the crate that the kernels multiply with, on all cores: what
//! the machine can do at best, to hold a training step against.

use gemm::Parallelism;

/// Rows and columns of either matrix.
const SIZE: usize = 1024;

/// Multiplies two `f32` matrices whenever it is called: 2·1024³ floating-point operations.
pub fn product() -> impl FnMut() {
    let numbers = |scale: f32| (0..SIZE * SIZE).map(|i| (i % 251) as f32 * scale).collect();
    let (left, right): (Vec<f32>, Vec<f32>) = (numbers(1e-3), numbers(-1e-3));
    let mut into = vec![0.0f32; SIZE * SIZE];
    move || {
        let stride = SIZE as isize;
        // SAFETY: all three slices hold SIZE × SIZE elements, row after row, and `into` is
        // another vector than the operands.
        unsafe {
            gemm::gemm(
                SIZE,
                SIZE,
                SIZE,
                into.as_mut_ptr(),
                1,
                stride,
                false,
                left.as_ptr(),
                1,
                stride,
                right.as_ptr(),
                1,
                stride,
                0.0,
                1.0,
                false,
                false,
                false,
                Parallelism::Rayon(0),
            );
        }
        assert!(into[SIZE].is_finite());
    }
}
