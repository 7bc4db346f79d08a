//! The product of two matrices on all cores, by the matrix multiplication crate of the kernels: an
//! upper bound on the machine's speed, for comparison with a training step.

use gemm::Parallelism;

/// Rows and columns of each matrix.
const SIZE: usize = 1024;

/// A closure that multiplies two `f32` matrices: 2·1024³ floating-point operations.
pub fn product() -> impl FnMut() {
    let numbers = |scale: f32| (0..SIZE * SIZE).map(|i| (i % 251) as f32 * scale).collect();
    let (left, right): (Vec<f32>, Vec<f32>) = (numbers(1e-3), numbers(-1e-3));
    let mut into = vec![0.0f32; SIZE * SIZE];
    move || {
        let stride = SIZE as isize;
        // SAFETY: all three slices hold SIZE × SIZE elements in row-major order, and `into` is a
        // different vector from the operands.
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
