//! The scores in burn tensors, with the differences of all queries and keys in memory.

use burn::tensor::Tensor;

use super::FLOOR;

/// `ln(sin x / x) = Σ_n SERIES[n] x^{2n+2}` below [`SMALL`], to 16 digits.
const SERIES: [f64; 10] = [
    -1.0 / 6.0,
    -1.0 / 180.0,
    -1.0 / 2835.0,
    -1.0 / 37_800.0,
    -1.0 / 467_775.0,
    -691.0 / 3_831_077_250.0,
    -2.0 / 127_702_575.0,
    -3617.0 / 2_605_132_530_000.0,
    -43_867.0 / 350_813_659_321_125.0,
    -174_611.0 / 15_313_294_652_906_250.0,
];

/// The end of the series; above, `ln |sin x|` and `ln |x|` cancel little.
const SMALL: f64 = 0.5;

/// `r` is `[heads, d_head]`.
pub(super) fn scores(q: Tensor<4>, k: Tensor<4>, r: Tensor<2>, power: u32) -> Tensor<4> {
    let [_, heads, _, d_head] = q.dims();
    let apart = q.unsqueeze_dim::<5>(3) - k.unsqueeze_dim::<5>(2);
    let x = apart * r.reshape([1, heads, 1, 1, d_head]);
    log_sinc(x).sum_dim(4).squeeze_dim::<4>(4) * f64::from(power)
}

/// `ln |sin x / x|`, with the floor under the sine.
fn log_sinc<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let small = x.clone().abs().lower_scalar(SMALL);
    // The inputs of a formula are a harmless constant where the other formula is used: unselected
    // results must be finite too, because their gradients are multiplied by zero.
    let square = x.clone().mask_fill(small.clone().bool_not(), 0.0).square();
    let [first, rest @ ..] = SERIES;
    let last_first = rest.iter().rev();
    let series = last_first.fold(square.zeros_like(), |sum, term| (sum + *term) * square.clone());
    let series = (series + first) * square;

    let large = x.mask_fill(small.clone(), 1.0);
    let sine = large.clone().sin().square() + FLOOR * FLOOR;
    let direct = (sine / large.square()).log() * 0.5;
    series + direct.mask_fill(small, 0.0)
}
