//! The quantile regression loss with Huber's loss, for each pair of a quantile and a target (Dabney
//! et al. 2018, "Distributional Reinforcement Learning with Quantile Regression", equation 10).

mod fused;
mod reference;

use burn::tensor::Tensor;

use crate::Form;
use crate::buffer::Buffer;
use crate::flex::{self, Fused, is_flex_f32};

/// `Σ_i mean_j |τ_i − 1(u_ij < 0)| H(u_ij)` of each row, with `u_ij = t_j − θ_i`,
/// `τ_i = (2i + 1)/(2n)`, and Huber's `H(u)`, `u²/2` up to 1 and `|u| − 1/2` beyond.
///
/// # Shapes
/// - `quantiles`: `[rows, n]`, the `θ_i`
/// - `targets`: `[rows, m]`, the `t_j`
/// - the result: `[rows]`
///
/// # Panics
/// When shapes do not fit together, or there are no quantiles or no targets.
pub fn quantile_huber(quantiles: Tensor<2>, targets: Tensor<2>, form: Form) -> Tensor<1> {
    let ([rows, n], [target_rows, m]) = (quantiles.dims(), targets.dims());
    assert_eq!(rows, target_rows, "quantiles and targets need the same number of rows");
    assert!(n > 0 && m > 0, "at least one quantile and one target");
    if form != Form::Reference && is_flex_f32(&quantiles) && is_flex_f32(&targets) {
        let inputs = [quantiles.into_dispatch(), targets.into_dispatch()];
        return flex::apply(QuantileHuber { widths: [n, m] }, inputs, [rows]);
    }
    reference::quantile_huber(quantiles, targets)
}

/// The fused form: the inputs are quantiles and targets.
struct QuantileHuber {
    /// `n` and `m`.
    widths: [usize; 2],
}

impl Fused<2> for QuantileHuber {
    type Saved = ();

    fn forward(&self, inputs: [&[f32]; 2], keep: bool) -> (Buffer, Option<()>) {
        (fused::losses(inputs, self.widths), keep.then_some(()))
    }

    fn backward(
        &self,
        inputs: [&[f32]; 2],
        _output: &[f32],
        _saved: &(),
        gradient: &[f32],
    ) -> [Buffer; 2] {
        fused::gradients(inputs, self.widths, gradient)
    }
}
