//! The Nature CNN (Mnih et al. 2015), one linear layer, tanh.

use burn::{
    module::{Module, Param},
    tensor::{Int, Tensor},
};
use overtone_kernels::{Form, NatureWeights, nature_encoder};

use crate::parameters::init::{Init, fan_in_bound};

/// Features after the three convolutions: 64 channels of 7 × 7.
const CONVOLVED: usize = 64 * 7 * 7;

/// Three convolutions and one affine layer (Mnih et al. 2015), then tanh.
#[derive(Module, Debug)]
pub struct NatureEncoder {
    /// `[32, 4, 8, 8]`, stride 4.
    pub conv_1_weight: Param<Tensor<4>>,
    /// `[32]`
    pub conv_1_bias: Param<Tensor<1>>,
    /// `[64, 32, 4, 4]`, stride 2.
    pub conv_2_weight: Param<Tensor<4>>,
    /// `[64]`
    pub conv_2_bias: Param<Tensor<1>>,
    /// `[64, 64, 3, 3]`, stride 1.
    pub conv_3_weight: Param<Tensor<4>>,
    /// `[64]`
    pub conv_3_bias: Param<Tensor<1>>,
    /// `[3136, d_model]`
    pub linear_weight: Param<Tensor<2>>,
    /// `[d_model]`
    pub linear_bias: Param<Tensor<1>>,
}

impl NatureEncoder {
    /// PyTorch's default for every layer, as in the reference.
    pub fn init(d_model: usize, init: &mut Init<'_>) -> Self {
        let [conv_1, conv_2, conv_3, linear] =
            [4 * 8 * 8, 32 * 4 * 4, 64 * 3 * 3, CONVOLVED].map(fan_in_bound);
        Self {
            conv_1_weight: init.uniform([32, 4, 8, 8], conv_1),
            conv_1_bias: init.uniform([32], conv_1),
            conv_2_weight: init.uniform([64, 32, 4, 4], conv_2),
            conv_2_bias: init.uniform([64], conv_2),
            conv_3_weight: init.uniform([64, 64, 3, 3], conv_3),
            conv_3_bias: init.uniform([64], conv_3),
            linear_weight: init.uniform([CONVOLVED, d_model], linear),
            linear_bias: init.uniform([d_model], linear),
        }
    }

    /// # Shapes
    /// - `frames`: `[batch, time + 3, 84, 84]`
    /// - result: `[batch · time, d_model]`
    pub fn forward(&self, frames: Tensor<4, Int>, form: Form) -> Tensor<2> {
        let weights = NatureWeights {
            conv1_weight: self.conv_1_weight.val(),
            conv1_bias: self.conv_1_bias.val(),
            conv2_weight: self.conv_2_weight.val(),
            conv2_bias: self.conv_2_bias.val(),
            conv3_weight: self.conv_3_weight.val(),
            conv3_bias: self.conv_3_bias.val(),
            linear_weight: self.linear_weight.val(),
            linear_bias: self.linear_bias.val(),
        };
        nature_encoder(frames, weights, form)
    }
}
