//! Gradients against central differences.

use burn::tensor::{DType, Device, Tensor, TensorData};

/// Panics unless the gradient of `loss` at `at` agrees with central differences.
///
/// `loss` maps a flat `f64` vector (tracked by autodiff) to a scalar. `relative` is the
/// tolerance relative to the largest entry of the gradient.
///
/// # Panics
/// When they disagree, or `loss` does not depend on its input.
#[track_caller]
pub fn assert_gradient(
    what: &str,
    at: &[f64],
    step: f64,
    relative: f64,
    loss: impl Fn(Tensor<1>) -> Tensor<1>,
) {
    let plain = Device::flex();
    let value = |point: &[f64]| -> f64 {
        loss(Tensor::from_data(TensorData::from(point), (&plain, DType::F64))).into_scalar()
    };
    let input =
        Tensor::<1>::from_data(TensorData::from(at), (&plain.clone().autodiff(), DType::F64))
            .require_grad();
    let gradients = loss(input.clone()).backward();
    let gradient = input.grad(&gradients);
    let Some(gradient) = gradient else { panic!("{what}: no gradient") };
    let gradient: Vec<f64> = gradient.into_data().iter::<f64>().collect();
    let scale = gradient.iter().fold(0.0f64, |largest, g| largest.max(g.abs()));
    for index in 0..at.len() {
        let mut moved = at.to_vec();
        moved[index] = at[index] + step;
        let above = value(&moved);
        moved[index] = at[index] - step;
        let below = value(&moved);
        let difference = (above - below) / (2.0 * step);
        assert!(
            (gradient[index] - difference).abs() <= relative * scale.max(1e-12),
            "{what}: d/dx[{index}] is {:e}, central difference {difference:e}",
            gradient[index]
        );
    }
}
