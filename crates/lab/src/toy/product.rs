//! Products of matrices so small that setting up a general one would cost as much as the
//! arithmetic: at most 64 on a side, in the first cache, on one thread.

use multiversion::multiversion;

use super::number::Number;

/// Rows of a matrix that multiplies from the right, and of every result, are padded with zeros
/// to a multiple of this: one AVX register of `f32`.
pub const LANES: usize = 8;

/// `columns`, padded.
pub fn padded(columns: usize) -> usize {
    columns.next_multiple_of(LANES)
}

/// The left factor: element `(row, k)` is `data[row · row_stride + k · inner_stride]`.
#[derive(Clone, Copy)]
pub struct Left<'a, T> {
    data: &'a [T],
    row_stride: usize,
    inner_stride: usize,
    rows: usize,
    inner: usize,
}

impl<'a, T> Left<'a, T> {
    /// `[rows, inner]`, rows beginning `stride` apart.
    ///
    /// # Panics
    /// When `data` is too short.
    pub fn rows(data: &'a [T], rows: usize, inner: usize, stride: usize) -> Self {
        Self { data, row_stride: stride, inner_stride: 1, rows, inner }.checked()
    }

    /// The transpose of the `[inner, rows]` matrix in `data` whose rows begin `stride` apart.
    ///
    /// # Panics
    /// When `data` is too short.
    pub fn transposed(data: &'a [T], rows: usize, inner: usize, stride: usize) -> Self {
        Self { data, row_stride: 1, inner_stride: stride, rows, inner }.checked()
    }

    fn checked(self) -> Self {
        assert!(self.rows > 0 && self.inner > 0, "a factor without elements");
        let last = (self.rows - 1) * self.row_stride + (self.inner - 1) * self.inner_stride;
        assert!(last < self.data.len(), "element {last} of {}", self.data.len());
        self
    }
}

/// `into = left · right`.
///
/// # Shapes
/// - `right`: `[inner, columns]`, `columns` a multiple of [`LANES`]
/// - `into`: `[rows, columns]`
///
/// # Panics
/// When a slice is too short or `columns` no multiple.
#[multiversion(targets("x86_64+avx2+bmi2+fma"))]
pub fn product<T: Number>(left: Left<'_, T>, right: &[T], columns: usize, into: &mut [T]) {
    strips(left, right, columns, into);
}

#[inline(always)]
fn strips<T: Number>(left: Left<'_, T>, right: &[T], columns: usize, into: &mut [T]) {
    assert!(columns.is_multiple_of(LANES), "{columns} columns");
    let (right, into) = (&right[..left.inner * columns], &mut into[..left.rows * columns]);
    let mut row = 0;
    while row + 8 <= left.rows {
        strip::<T, 8>(left, row, right, columns, into);
        row += 8;
    }
    while row + 2 <= left.rows {
        strip::<T, 2>(left, row, right, columns, into);
        row += 2;
    }
    if row < left.rows {
        strip::<T, 1>(left, row, right, columns, into);
    }
}

/// `R` rows of the product, eight columns at a time: `R` registers of sums.
#[inline(always)]
fn strip<T: Number, const R: usize>(
    left: Left<'_, T>,
    row: usize,
    right: &[T],
    columns: usize,
    into: &mut [T],
) {
    for column in (0..columns).step_by(LANES) {
        let mut sums = [[T::ZERO; LANES]; R];
        for (k, right) in right.chunks_exact(columns).enumerate() {
            let right = &right[column..column + LANES];
            for (r, sums) in sums.iter_mut().enumerate() {
                let at = (row + r) * left.row_stride + k * left.inner_stride;
                // SAFETY: `Left::checked` has seen that the largest index of the factor is
                // inside; `row + r < rows`, and `right` has `inner` rows.
                let factor = unsafe { *left.data.get_unchecked(at) };
                for (sum, right) in sums.iter_mut().zip(right) {
                    *sum = factor.fused(*right, *sum);
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            into[(row + r) * columns + column..][..LANES].copy_from_slice(sums);
        }
    }
}

/// `into[column, row] = matrix[row, column]`; rows of `into` begin `into_stride` apart.
///
/// # Shapes
/// - `matrix`: rows begin `stride` apart, of which the first `columns` numbers count
#[multiversion(targets = "simd")]
pub fn transpose<T: Number>(
    matrix: &[T],
    columns: usize,
    stride: usize,
    into: &mut [T],
    into_stride: usize,
) {
    // Eight rows at a time, so that what is written lies together.
    for (strip, rows) in matrix.chunks(LANES * stride).enumerate() {
        let n = rows.len() / stride;
        for column in 0..columns {
            let into = &mut into[column * into_stride + strip * LANES..][..n];
            for (into, row) in into.iter_mut().zip(rows.chunks_exact(stride)) {
                *into = row[column];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Integers, so that every order of summation gives the same.
    fn matrix(rows: usize, columns: usize) -> Vec<f32> {
        (0..rows * columns).map(|i| ((i * 7 + 3) % 11) as f32 - 5.0).collect()
    }

    #[track_caller]
    fn check(rows: usize, inner: usize, columns: usize) {
        let (left, right) = (matrix(rows, inner), matrix(inner, columns));
        let expected: Vec<f32> = (0..rows * columns)
            .map(|i| {
                let (row, column) = (i / columns, i % columns);
                (0..inner).map(|k| left[row * inner + k] * right[k * columns + column]).sum()
            })
            .collect();
        let mut got = vec![9.0; rows * columns];
        product(Left::rows(&left, rows, inner, inner), &right, columns, &mut got);
        assert_eq!(got, expected, "{rows} × {inner} × {columns}");
        let mut turned = vec![0.0; rows * inner];
        transpose(&left, inner, inner, &mut turned, rows);
        got.fill(9.0);
        product(Left::transposed(&turned, rows, inner, rows), &right, columns, &mut got);
        assert_eq!(got, expected, "{rows} × {inner} × {columns}, transposed");
    }

    #[test]
    fn it_is_the_product() {
        for rows in [1, 2, 3, 8, 9, 11, 32] {
            check(rows, 5, 16);
        }
        check(4, 1, 8);
    }

    #[test]
    #[should_panic(expected = "of 6")]
    fn a_factor_stays_in_its_slice() {
        Left::rows(&[0.0; 6], 2, 4, 3);
    }

    #[test]
    fn rows_are_padded_to_whole_registers() {
        assert_eq!([1, 8, 26, 50].map(padded), [8, 8, 32, 56]);
    }
}
