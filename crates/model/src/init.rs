//! Initial weights, drawn on the host so that a seed gives the same model on every device.

use burn::{
    module::Param,
    tensor::{Device, Tensor, TensorData},
};
use overtone_core::seed::Generator;
use rand::RngExt;

/// Standard deviation of the GPT-wide initialiser.
pub const GPT_STD: f64 = 0.02;

/// N(0, `std`²).
pub fn normal<const D: usize>(
    shape: [usize; D],
    std: f64,
    device: &Device,
    generator: &mut Generator,
) -> Param<Tensor<D>> {
    filled(shape, device, || (standard_normal(generator) * std) as f32)
}

/// U(-`bound`, `bound`).
pub fn uniform<const D: usize>(
    shape: [usize; D],
    bound: f64,
    device: &Device,
    generator: &mut Generator,
) -> Param<Tensor<D>> {
    filled(shape, device, || (generator.random_range(-bound..bound)) as f32)
}

/// PyTorch's default for a layer whose outputs each have `fan_in` inputs: 1/√fan_in, the bound
/// of [`uniform`] for its weights and for its biases.
pub fn fan_in_bound(fan_in: usize) -> f64 {
    1.0 / (fan_in as f64).sqrt()
}

/// Weight `[inputs, outputs]` and bias `[outputs]` of a linear layer, by PyTorch's default.
pub fn linear(
    [inputs, outputs]: [usize; 2],
    device: &Device,
    generator: &mut Generator,
) -> (Param<Tensor<2>>, Param<Tensor<1>>) {
    let weight = uniform([inputs, outputs], fan_in_bound(inputs), device, generator);
    (weight, uniform([outputs], fan_in_bound(inputs), device, generator))
}

/// Every entry `value`.
pub fn constant<const D: usize>(
    shape: [usize; D],
    value: f32,
    device: &Device,
) -> Param<Tensor<D>> {
    filled(shape, device, || value)
}

fn filled<const D: usize>(
    shape: [usize; D],
    device: &Device,
    mut value: impl FnMut() -> f32,
) -> Param<Tensor<D>> {
    let n = shape.iter().product();
    let values: Vec<f32> = (0..n).map(|_| value()).collect();
    Param::from_data(TensorData::new(values, shape), device)
}

/// N(0, 1) by Box–Muller; one value a call, so that the stream does not depend on how it is grouped.
pub fn standard_normal(generator: &mut Generator) -> f64 {
    let radius = (-2.0 * (1.0 - generator.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * generator.random::<f64>()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use overtone_core::seed;

    #[test]
    fn normal_has_the_moments_it_names() {
        let mut generator = seed::generator(1, "init");
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|_| standard_normal(&mut generator)).collect();
        let mean = draws.iter().sum::<f64>() / n as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        // Five standard errors: 5/√n and 5·√(2/n).
        assert!(mean.abs() < 0.016, "{mean}");
        assert!((variance - 1.0).abs() < 0.023, "{variance}");
    }
}
