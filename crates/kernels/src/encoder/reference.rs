//! The encoder in burn tensors.

use burn::tensor::activation::relu;
use burn::tensor::module::conv2d;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{FloatDType, Int, Tensor};

use super::{FLAT, NatureWeights, STACK};
use crate::Form;

/// `[batch, t + 3, 84, 84]` → `[batch * t, 4, 84, 84]`.
pub(super) fn stacks(frames: Tensor<4, Int>) -> Tensor<4, Int> {
    let [batch, length, height, width] = frames.dims();
    let steps = length + 1 - STACK;
    let channels: Vec<Tensor<5, Int>> = (0..STACK)
        .map(|channel| frames.clone().narrow(1, channel, steps).unsqueeze_dim(2))
        .collect();
    Tensor::cat(channels, 2).reshape([batch * steps, STACK, height, width])
}

/// `[n, 4, 84, 84]` → `[n, d]`.
pub(super) fn encode(frames: Tensor<4, Int>, weights: NatureWeights, form: Form) -> Tensor<2> {
    let [n, _, _, _] = frames.dims();
    let dtype = FloatDType::from(weights.linear_weight.dtype());
    let x = frames.cast(dtype) / 255.0;
    let layer = |x, weight, bias, stride| {
        let options = ConvOptions::new([stride, stride], [0, 0], [1, 1], 1);
        relu(conv2d(x, form.factor(weight), Some(form.factor(bias)), options))
    };
    let x = layer(form.factor(x), weights.conv1_weight, weights.conv1_bias, 4);
    let x = layer(x, weights.conv2_weight, weights.conv2_bias, 2);
    let x = layer(x, weights.conv3_weight, weights.conv3_bias, 1);
    let x = x.reshape([n, FLAT]).matmul(form.factor(weights.linear_weight)).cast(dtype);
    (x + weights.linear_bias.unsqueeze()).tanh()
}
