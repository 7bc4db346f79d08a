//! The squared amplitude of a Fourier series at one point for each row, the basis of the Fourier
//! head's densities (Gillman et al. 2025, Appendix C.3).

mod fused;
mod reference;

use burn::tensor::Tensor;

use crate::Form;
use crate::buffer::Buffer;
use crate::flex::{self, Fused, is_flex_f32};

/// `|Σ_l a_l e^{ilπsz}|²` of each row's coefficients `a_l = u_l + i v_l`, `l = 0 ..= N`.
///
/// # Shapes
/// - `coefficients`: `[rows, 2(N+1)]`, `u_0 ..= u_N`, then `v_0 ..= v_N`
/// - `z` and the result: `[rows]`
///
/// # Panics
/// When shapes do not fit together.
pub fn fourier_power(coefficients: Tensor<2>, z: Tensor<1>, stretch: f64, form: Form) -> Tensor<1> {
    let [rows, width] = coefficients.dims();
    assert_eq!(z.dims(), [rows], "one point per row");
    assert!(width >= 2 && width.is_multiple_of(2), "real parts, then as many imaginary parts");
    if form == Form::Auto && is_flex_f32(&coefficients) && is_flex_f32(&z) {
        let inputs = [coefficients.into_dispatch(), z.into_dispatch()];
        return flex::apply(FourierPower { width, stretch: stretch as f32 }, inputs, [rows]);
    }
    reference::power(coefficients, z, stretch)
}

/// The fused form: the inputs are coefficients and points.
struct FourierPower {
    /// `2(N+1)`
    width: usize,
    stretch: f32,
}

impl Fused<2> for FourierPower {
    type Saved = ();

    fn forward(&self, inputs: [&[f32]; 2], keep: bool) -> (Buffer, Option<()>) {
        (fused::power(inputs, self.width, self.stretch), keep.then_some(()))
    }

    fn backward(
        &self,
        inputs: [&[f32]; 2],
        _output: &[f32],
        _saved: &(),
        gradient: &[f32],
    ) -> [Buffer; 2] {
        fused::gradients(inputs, self.width, self.stretch, gradient)
    }
}
