//! Weight gradients: `leftᵀ · right` over many rows, in parallel and in a fixed order.

use rayon::prelude::*;

use crate::matrix::{Into, Matrix, multiply};

/// Rows of the result that one task computes: enough that packing the right operand is a
/// small part of the work.
const HEIGHT: usize = 64;

/// `into += leftᵀ · right`: `left` is `[rows, m]`, `right` `[rows, n]`, `into` `[m, n]`.
///
/// Each task computes some rows of the result from all rows of the operands, so the order
/// of every sum depends on the shapes alone.
pub(crate) fn add_outer(into: &mut [f32], left: &[f32], right: &[f32], rows: usize) {
    let (m, n) = (left.len() / rows, right.len() / rows);
    into.par_chunks_mut(HEIGHT * n).enumerate().for_each(|(i, into)| {
        let columns = into.len() / n;
        let left = Matrix::strided(&left[i * HEIGHT..], rows, columns, m);
        multiply(into, Into::Sum, left.transposed(), Matrix::new(right, rows, n));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_definition() {
        let (rows, m, n) = (7, 150, 200);
        let left: Vec<f32> = (0..rows * m).map(|i| (i % 5) as f32).collect();
        let right: Vec<f32> = (0..rows * n).map(|i| (i % 7) as f32).collect();
        let mut into = vec![1.0; m * n];
        add_outer(&mut into, &left, &right, rows);
        for (i, got) in into.iter().enumerate() {
            let (row, column) = (i / n, i % n);
            let sum: f32 = (0..rows).map(|k| left[k * m + row] * right[k * n + column]).sum();
            assert_eq!(*got, 1.0 + sum);
        }
    }
}
