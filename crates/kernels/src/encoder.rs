//! The convolutional encoder of Atari frames (Mnih et al. 2015, as the Decision
//! Transformer uses it): three convolutions with ReLU, one linear layer, tanh.

mod reference;

use burn::tensor::{Int, Tensor};

use crate::Form;

/// Frames in one stack.
pub const STACK: usize = 4;
/// Height and width of a frame, in pixels.
pub const FRAME: usize = 84;
/// Values the last convolution leaves per stack: 64 channels of 7 × 7.
pub const FLAT: usize = 64 * 7 * 7;

/// The parameters of the encoder. Convolution weights are `[out, in, height, width]`.
#[derive(Clone, Debug)]
pub struct NatureWeights {
    /// `[32, 4, 8, 8]`, stride 4.
    pub conv1_weight: Tensor<4>,
    /// `[32]`
    pub conv1_bias: Tensor<1>,
    /// `[64, 32, 4, 4]`, stride 2.
    pub conv2_weight: Tensor<4>,
    /// `[64]`
    pub conv2_bias: Tensor<1>,
    /// `[64, 64, 3, 3]`, stride 1.
    pub conv3_weight: Tensor<4>,
    /// `[64]`
    pub conv3_bias: Tensor<1>,
    /// `[3136, d]`; rows are in (channel, height, width) order.
    pub linear_weight: Tensor<2>,
    /// `[d]`
    pub linear_bias: Tensor<1>,
}

impl NatureWeights {
    /// The width of the embedding.
    ///
    /// # Panics
    /// When a parameter does not have its documented shape.
    fn checked_width(&self) -> usize {
        let [_, d] = self.linear_weight.dims();
        assert_eq!(self.conv1_weight.dims(), [32, STACK, 8, 8], "conv1_weight");
        assert_eq!(self.conv1_bias.dims(), [32], "conv1_bias");
        assert_eq!(self.conv2_weight.dims(), [64, 32, 4, 4], "conv2_weight");
        assert_eq!(self.conv2_bias.dims(), [64], "conv2_bias");
        assert_eq!(self.conv3_weight.dims(), [64, 64, 3, 3], "conv3_weight");
        assert_eq!(self.conv3_bias.dims(), [64], "conv3_bias");
        assert_eq!(self.linear_weight.dims(), [FLAT, d], "linear_weight");
        assert_eq!(self.linear_bias.dims(), [d], "linear_bias");
        d
    }
}

/// Embeds stacks of four frames: `[n, 4, 84, 84]` → `[n, d]`.
///
/// Pixels are divided by 255. Channel 3 of a stack is its newest frame. No gradient flows
/// to the frames. They are an integer tensor of type `U8`, made with
///
/// ```
/// use burn::tensor::{DType, Device, Int, Tensor, TensorData};
/// let pixels = vec![0u8; 2 * 4 * 84 * 84];
/// let data = TensorData::new(pixels, [2, 4, 84, 84]);
/// let frames = Tensor::<4, Int>::from_data(data, (&Device::flex(), DType::U8));
/// assert_eq!(frames.dtype(), DType::U8);
/// ```
///
/// other integer types work in the reference form alone.
///
/// # Panics
/// When a shape is not the documented one.
pub fn nature_encoder(frames: Tensor<4, Int>, weights: NatureWeights, form: Form) -> Tensor<2> {
    let [_, stack, height, width] = frames.dims();
    assert_eq!([stack, height, width], [STACK, FRAME, FRAME], "frames are [n, 4, 84, 84]");
    weights.checked_width();
    let _ = form;
    reference::encode(frames, weights)
}

/// Embeds every stack of windows of successive frames: `[batch, t + 3, 84, 84]` →
/// `[batch * t, d]`, window by window.
///
/// The stack of step `k` is frames `k, k + 1, k + 2, k + 3`, so frame `k + 3` is the one
/// seen at step `k`. Equal to [`nature_encoder`] on the stacks, without the fourfold copy.
///
/// # Panics
/// When a shape is not the documented one.
pub fn nature_encoder_windows(
    frames: Tensor<4, Int>,
    weights: NatureWeights,
    form: Form,
) -> Tensor<2> {
    let [_, length, height, width] = frames.dims();
    assert_eq!([height, width], [FRAME, FRAME], "frames are [batch, t + 3, 84, 84]");
    assert!(length >= STACK, "a window of {length} frames holds no stack of {STACK}");
    weights.checked_width();
    let _ = form;
    reference::encode(reference::stacks(frames), weights)
}
