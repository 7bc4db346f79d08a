//! Weight gradients: `leftᵀ · right` over many rows, in parallel and in a fixed order.

use rayon::prelude::*;

use crate::matrix::{Accumulate, Matrix, multiply};
use crate::scratch::with_scratch;

/// Rows of the result per task: enough that packing the right operand is a small part of the work.
const HEIGHT: usize = 64;
/// Rows of the operands per step: a tile of 384 × 64 is 98 KB and stays in cache together with as
/// many rows of the right operand.
const DEPTH: usize = 384;

/// `into += leftᵀ · right`: `left` is `[rows, m]`, `right` `[rows, n]`, `into` `[m, n]`.
///
/// Each task computes some rows of the result from all rows of the operands, so the order of every
/// sum depends only on the shapes.
pub(crate) fn add_outer(into: &mut [f32], left: &[f32], right: &[f32], rows: usize) {
    let (m, n) = (left.len() / rows, right.len() / rows);
    into.par_chunks_mut(HEIGHT * n).enumerate().for_each(|(i, into)| {
        let height = into.len() / n;
        with_scratch([DEPTH.min(rows) * height], |[tile]| {
            for (left, right) in left.chunks(DEPTH * m).zip(right.chunks(DEPTH * n)) {
                // A copy without gaps: the product reads it column by column.
                for (into, row) in tile.chunks_exact_mut(height).zip(left.chunks_exact(m)) {
                    into.copy_from_slice(&row[i * HEIGHT..][..height]);
                }
                let rows = left.len() / m;
                let tile = Matrix::new(tile, rows, height).transposed();
                multiply(into, Accumulate::Add, tile, Matrix::new(right, rows, n));
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_definition() {
        let (rows, m, n) = (500, 150, 20);
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
