//! Strided views of slices, and their product on one thread.

use gemm::Parallelism;
use rayon::prelude::*;

use crate::buffer::Buffer;
use crate::simd::has_avx512;

/// A strided matrix in a slice.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    data: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// `[rows, columns]` at the start of `data`, in row-major order.
    pub fn new(data: &'a [f32], rows: usize, columns: usize) -> Self {
        Self::strided(data, rows, columns, columns)
    }

    /// `[rows, columns]` at the start of `data`, with rows `row_stride` apart.
    pub fn strided(data: &'a [f32], rows: usize, columns: usize, row_stride: usize) -> Self {
        assert!(
            rows > 0 && columns > 0 && (rows - 1) * row_stride + columns <= data.len(),
            "a {rows} × {columns} matrix of stride {row_stride} in {} elements",
            data.len()
        );
        Self { data, rows, columns, row_stride, column_stride: 1 }
    }

    /// The transpose, without moving data.
    pub fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }
}

/// Treatment of a product's destination.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accumulate {
    /// The product overwrites it.
    Overwrite,
    /// The product is added to it.
    Add,
}

/// `into = scale · left · right`, or `into += …`; rows of `into` are `row_stride` apart.
pub(crate) fn multiply_strided(
    into: &mut [f32],
    row_stride: usize,
    mode: Accumulate,
    scale: f32,
    left: Matrix<'_>,
    right: Matrix<'_>,
) {
    let (m, n, k) = (left.rows, right.columns, left.columns);
    assert_eq!(k, right.rows, "inner sizes of a product");
    assert!(
        row_stride >= n && (m - 1) * row_stride + n <= into.len(),
        "a {m} × {n} product of stride {row_stride} in {} elements",
        into.len()
    );
    // SAFETY: the constructors of `Matrix` and the assertion above keep every read and written
    // element inside its slice. `into` is borrowed mutably, so it does not overlap the operands.
    // Its elements are distinct because `row_stride >= n`.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            into.as_mut_ptr(),
            1,
            row_stride as isize,
            mode == Accumulate::Add,
            left.data.as_ptr(),
            left.column_stride as isize,
            left.row_stride as isize,
            right.data.as_ptr(),
            right.column_stride as isize,
            right.row_stride as isize,
            1.0,
            scale,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// `into = left · right`, or `into += left · right`, in row-major order.
pub(crate) fn multiply(into: &mut [f32], mode: Accumulate, left: Matrix<'_>, right: Matrix<'_>) {
    multiply_strided(into, right.columns, mode, 1.0, left, right);
}

/// The right operand of many products, stored so that a product reads it sequentially: panels of
/// some columns, each in row-major order.
pub(crate) struct Panels {
    data: Buffer,
    rows: usize,
    /// Columns of every panel; the last may have fewer.
    width: usize,
}

impl Panels {
    /// A copy of a matrix of any strides.
    pub fn new(matrix: Matrix<'_>) -> Self {
        let Matrix { data: values, rows, columns, row_stride, column_stride } = matrix;
        // Whole tiles of the widest kernels of `gemm`.
        let width = if has_avx512() { 64 } else { 48 };
        let mut data = Buffer::new(rows * columns);
        data.par_chunks_mut(rows * width).enumerate().for_each(|(i, panel)| {
            let values = &values[i * width * column_stride..];
            let width = panel.len() / rows;
            if column_stride == 1 {
                for (row, into) in panel.chunks_exact_mut(width).enumerate() {
                    into.copy_from_slice(&values[row * row_stride..][..width]);
                }
                return;
            }
            // A few rows at a time, so that the values of each column are contiguous.
            for (tile, into) in panel.chunks_mut(TILE * width).enumerate() {
                for column in 0..width {
                    let values = &values[column * column_stride + tile * TILE * row_stride..];
                    for (row, into) in into.chunks_exact_mut(width).enumerate() {
                        into[column] = values[row * row_stride];
                    }
                }
            }
        });
        Self { data, rows, width }
    }
}

/// `into = left · right`, or `into += …`; rows of `into` are `row_stride` apart.
pub(crate) fn multiply_panels(
    into: &mut [f32],
    row_stride: usize,
    mode: Accumulate,
    left: Matrix<'_>,
    right: &Panels,
) {
    let rows = right.rows;
    for (i, panel) in right.data.chunks(rows * right.width).enumerate() {
        let panel = Matrix::new(panel, rows, panel.len() / rows);
        multiply_strided(&mut into[i * right.width..], row_stride, mode, 1.0, left, panel);
    }
}

/// Rows of a transposed matrix that are gathered at the same time.
const TILE: usize = 16;

/// The transpose of a `[rows, columns]` matrix.
pub(crate) fn transpose(data: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let mut out = vec![0.0; rows * columns];
    for row in 0..rows {
        for column in 0..columns {
            out[column * rows + row] = data[row * columns + column];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    // [1 2 3; 4 5 6] · [1 0; 2 1; 0 3] = [5 11; 14 23]
    const LEFT: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    const RIGHT: [f32; 6] = [1.0, 0.0, 2.0, 1.0, 0.0, 3.0];

    #[test]
    fn products_of_small_matrices() {
        let (left, right) = (Matrix::new(&LEFT, 2, 3), Matrix::new(&RIGHT, 3, 2));
        let mut out = [9.0; 4];
        multiply(&mut out, Accumulate::Overwrite, left, right);
        assert_eq!(out, [5.0, 11.0, 14.0, 23.0]);
        multiply(&mut out, Accumulate::Add, left, right);
        assert_eq!(out, [10.0, 22.0, 28.0, 46.0]);
        multiply(&mut out, Accumulate::Overwrite, right.transposed(), left.transposed());
        assert_eq!(out, [5.0, 14.0, 11.0, 23.0]);
        let mut wide = [7.0; 5];
        multiply_strided(&mut wide, 3, Accumulate::Overwrite, 2.0, left, right);
        assert_eq!(wide, [10.0, 22.0, 7.0, 28.0, 46.0]);
        assert_eq!(transpose(&LEFT, 2, 3), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    }

    #[test]
    fn panels_are_the_same_matrix() {
        let (rows, columns) = (37, 150);
        let whole = |n: usize| (0..n).map(|i| (i * i % 13) as f32).collect::<Vec<_>>();
        let (left, right) = (whole(5 * rows), whole(rows * columns));
        let turned = transpose(&right, rows, columns);
        let left = Matrix::new(&left, 5, rows);
        let mut expected = vec![0.0; 5 * columns];
        multiply(&mut expected, Accumulate::Overwrite, left, Matrix::new(&right, rows, columns));
        let straight = Panels::new(Matrix::new(&right, rows, columns));
        let turned = Panels::new(Matrix::new(&turned, columns, rows).transposed());
        for panels in [straight, turned] {
            let mut got = vec![9.0; 4 * (columns + 3) + columns];
            multiply_panels(&mut got, columns + 3, Accumulate::Overwrite, left, &panels);
            for (got, expected) in got.chunks(columns + 3).zip(expected.chunks(columns)) {
                assert_eq!(&got[..columns], expected);
            }
            assert_eq!(got[columns..columns + 3], [9.0; 3]);
        }
    }

    #[test]
    #[should_panic(expected = "in 6 elements")]
    fn a_view_stays_in_its_slice() {
        Matrix::strided(&LEFT, 2, 3, 4);
    }
}
