//! Parameters that all rows of a tensor share, in burn tensors.
//!
//! The gradient by such a parameter is a sum over rows. In one step a GPU adds them one after the
//! other, with a thread for each column and most of the device idle: 11,520 rows of 128 columns
//! took an H200 0.6 ms, and there are ten such sums in a block (docs/gpu.md). Here rows are added
//! along one axis after the other, the first of which leaves work for everybody.

use burn::tensor::Tensor;

use crate::flex::is_on_cpu;

/// The parameter for every row: `[d]` → `[a, b, c, d]`. The gradient is summed axis by axis.
pub(crate) fn each_row(parameter: Tensor<1>, [a, b, c]: [usize; 3]) -> Tensor<4> {
    let [d] = parameter.dims();
    parameter.reshape([1, 1, 1, d]).expand([a, b, c, d])
}

/// The parameter for every token: `[d]` → `[batch, tokens, d]`. The gradient is summed over
/// batches first.
pub(crate) fn each_token(parameter: Tensor<1>, [batch, tokens]: [usize; 2]) -> Tensor<3> {
    let [d] = parameter.dims();
    parameter.reshape([1, 1, d]).expand([batch, tokens, d])
}

/// `x + bias` in every row of `[rows, d]`. On the CPU it is just that; on a GPU rows are made
/// a rectangle, whose gradient is summed along one side and then the other.
///
/// # Panics
/// When the bias has not the width of a row.
pub fn add_bias(x: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
    let [rows, d] = x.dims();
    assert_eq!(bias.dims(), [d], "bias");
    let side = side(rows);
    if side == 1 || is_on_cpu(&x) {
        return x + bias.unsqueeze();
    }
    let sides = [side, rows / side];
    (x.reshape([sides[0], sides[1], d]) + each_token(bias, sides)).reshape([rows, d])
}

/// The shorter side of the squarest rectangle of `n`; 1 if there is none, as for primes.
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
