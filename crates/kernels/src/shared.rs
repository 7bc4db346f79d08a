//! Parameters that all rows of a tensor share, in burn tensors.
//!
//! The gradient of such a parameter is a sum over rows. In one step, a GPU adds them one after the
//! other, with a thread for each column and most of the device idle. 11,520 rows of 128 columns
//! took an H200 0.6 ms, and a block has ten such sums (docs/gpu.md). Here rows are added along one
//! axis after the other, so that the first sum has enough work for the whole device.

use burn::tensor::Tensor;

use crate::flex::is_on_cpu;

/// The parameter for every row: `[d]` → `shape`, with `d` as last axis. The gradient is summed axis
/// by axis, from the first.
pub(crate) fn each_row<const D: usize>(parameter: Tensor<1>, shape: [usize; D]) -> Tensor<D> {
    parameter.expand(shape)
}

/// `x + bias` in every row of `[rows, d]`. On a GPU, rows are arranged in a rectangle, and the
/// gradient is summed along one side and then the other.
///
/// # Panics
/// When the bias does not have the width of a row.
pub fn add_bias(x: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
    let [rows, d] = x.dims();
    assert_eq!(bias.dims(), [d], "bias");
    let side = side(rows);
    if side == 1 || is_on_cpu(&x) {
        return x + bias.unsqueeze();
    }
    let rectangle = [side, rows / side, d];
    (x.reshape(rectangle) + each_row(bias, rectangle)).reshape([rows, d])
}

/// The shorter side of the rectangle of `n` elements that is closest to a square; 1 if there is
/// none, as for primes.
fn side(n: usize) -> usize {
    (1..=n.isqrt()).rev().find(|side| n.is_multiple_of(*side)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::side;

    #[test]
    fn squarest_rectangles() {
        assert_eq!([0, 1, 7, 12, 3840, 10_000].map(side), [1, 1, 1, 3, 60, 100]);
    }
}
