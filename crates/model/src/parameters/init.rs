//! Initial weights, drawn on the host, so that a seed gives the same model on every device.

use burn::{
    module::{Param, ParamId},
    tensor::{Device, Shape, Tensor, TensorData},
};
use overtone_core::seed::Generator;
use rand::RngExt;

/// Standard deviation of the initializer of GPT.
pub const GPT_STD: f64 = 0.02;

/// Source of a new module's parameters. Modules request them in a fixed order, so that a seed
/// determines one model.
pub struct Init<'a> {
    device: Device,
    /// `None`: values are created lazily.
    generator: Option<&'a mut Generator>,
}

impl<'a> Init<'a> {
    /// Parameters on `device`, drawn from `generator`.
    pub fn drawn(device: &Device, generator: &'a mut Generator) -> Self {
        Self { device: device.clone(), generator: Some(generator) }
    }

    /// Parameters that only have a shape, for a module whose weights are all [read from a
    /// file](crate::weights::restore). They do not allocate memory until then.
    pub fn shapes(device: &Device) -> Self {
        Self { device: device.clone(), generator: None }
    }

    /// The device of the parameters.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// N(0, `std`²).
    pub fn normal<const D: usize>(&mut self, shape: [usize; D], std: f64) -> Param<Tensor<D>> {
        self.filled(shape, |_, generator| (standard_normal(generator) * std) as f32)
    }

    /// U(-`bound`, `bound`).
    pub fn uniform<const D: usize>(&mut self, shape: [usize; D], bound: f64) -> Param<Tensor<D>> {
        self.filled(shape, |_, generator| (generator.random_range(-bound..bound)) as f32)
    }

    /// Weight `[inputs, outputs]` and bias `[outputs]` of a linear layer, by PyTorch's default.
    pub fn linear(
        &mut self,
        [inputs, outputs]: [usize; 2],
    ) -> (Param<Tensor<2>>, Param<Tensor<1>>) {
        let weight = self.uniform([inputs, outputs], fan_in_bound(inputs));
        (weight, self.uniform([outputs], fan_in_bound(inputs)))
    }

    /// A tensor with every entry `value`.
    pub fn constant<const D: usize>(&mut self, shape: [usize; D], value: f32) -> Param<Tensor<D>> {
        self.filled(shape, |_, _| value)
    }

    /// A tensor whose entries are computed from the flat index and the generator.
    pub fn filled<const D: usize>(
        &mut self,
        shape: [usize; D],
        mut value: impl FnMut(usize, &mut Generator) -> f32,
    ) -> Param<Tensor<D>> {
        match &mut self.generator {
            Some(generator) => {
                let n = shape.iter().product();
                let values: Vec<f32> = (0..n).map(|place| value(place, generator)).collect();
                Param::from_data(TensorData::new(values, shape), &self.device)
            }
            None => Param::uninitialized(
                ParamId::new(),
                move |device, tracked| Tensor::zeros(shape, device).set_require_grad(tracked),
                self.device.clone(),
                true,
                Shape::from(shape),
            ),
        }
    }
}

/// PyTorch's default for a layer whose outputs each have `fan_in` inputs: 1/√fan_in, the bound of
/// [`Init::uniform`] for its weights and for its biases.
pub fn fan_in_bound(fan_in: usize) -> f64 {
    1.0 / (fan_in as f64).sqrt()
}

/// N(0, 1) by Box–Muller; one value per call, so that the stream does not depend on the grouping of
/// calls.
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
        assert!((mean).abs() < 0.016, "{mean}");
        assert!((variance - 1.0).abs() < 0.023, "{variance}");
    }

    /// 8 TB of weights are described without allocating memory.
    #[test]
    fn shapes_take_no_memory() {
        let wide = Init::shapes(&Device::flex()).normal([1 << 20, 1 << 21], 1.0);
        assert_eq!(wide.lazy_shape()[..], [1 << 20, 1 << 21]);
        assert!(!wide.is_initialized());
    }
}
