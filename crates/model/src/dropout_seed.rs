//! [`DropoutSeed`]: the seed of a training step's dropout.

use burn::tensor::{Device, Int, Tensor};
use overtone_kernels::Dropout;

/// Seed of the dropout masks of one training step: its two [words](Dropout::words) on the model's
/// device, `[2]`.
#[derive(Clone, Debug)]
pub struct DropoutSeed(pub Tensor<1, Int>);

impl DropoutSeed {
    /// This seed, for a model on this device.
    pub fn new(seed: u64, device: &Device) -> Self {
        Self(Tensor::from_data(Dropout::words(seed), device))
    }

    /// The `nth` dropout of the step; `None` if nothing is dropped.
    pub(crate) fn nth(&self, nth: u32, probability: f64) -> Option<Dropout> {
        let (step_seed, probability) = (self.0.clone(), probability as f32);
        (probability > 0.0).then_some(Dropout { probability, step_seed, nth })
    }
}
