//! The convolutional encoder of Atari frames (Mnih et al. 2015, as the Decision
//! Transformer uses it): three convolutions with ReLU, one linear layer, tanh.

mod columns;
#[cfg(feature = "cube")]
mod cuda;
mod fused;
mod patches;
mod reference;

use burn::backend::DispatchTensor;
use burn::backend::flex::FlexTensor;
use burn::tensor::{Int, Tensor};

use crate::Form;
use crate::buffer::Buffer;
use crate::flex::{self, Fused, is_flex_f32, is_on_cpu};

/// Frames in one stack.
pub const STACK: usize = 4;
/// Height and width of a frame, in pixels.
pub const FRAME: usize = 84;
/// Outputs of the last convolution per stack: 64 channels of 7 × 7.
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

    fn all_flex_f32(&self) -> bool {
        [&self.conv1_weight, &self.conv2_weight, &self.conv3_weight].into_iter().all(is_flex_f32)
            && [&self.conv1_bias, &self.conv2_bias, &self.conv3_bias, &self.linear_bias]
                .into_iter()
                .all(is_flex_f32)
            && is_flex_f32(&self.linear_weight)
    }

    fn inputs(self) -> [DispatchTensor; 8] {
        [
            self.conv1_weight.into_dispatch(),
            self.conv1_bias.into_dispatch(),
            self.conv2_weight.into_dispatch(),
            self.conv2_bias.into_dispatch(),
            self.conv3_weight.into_dispatch(),
            self.conv3_bias.into_dispatch(),
            self.linear_weight.into_dispatch(),
            self.linear_bias.into_dispatch(),
        ]
    }
}

/// Embeds every stack of four frames in windows of successive frames: `[batch, t + 3, 84, 84]` →
/// `[batch * t, d]`, window by window. A window of four frames is one stack.
///
/// The stack of step `k` is frames `k, k + 1, k + 2, k + 3`, so frame `k + 3` is the newest at step
/// `k`. Pixels are divided by 255. No gradient flows to the frames. They are an integer tensor of
/// type `U8`, made with
///
/// ```
/// use burn::tensor::{DType, Device, Int, Tensor, TensorData};
/// let pixels = vec![0u8; 2 * 4 * 84 * 84];
/// let data = TensorData::new(pixels, [2, 4, 84, 84]);
/// let frames = Tensor::<4, Int>::from_data(data, (&Device::flex(), DType::U8));
/// assert_eq!(frames.dtype(), DType::U8);
/// ```
///
/// Other integer types work only in the reference form.
///
/// # Panics
/// When a shape differs from the documented one.
pub fn nature_encoder(frames: Tensor<4, Int>, weights: NatureWeights, form: Form) -> Tensor<2> {
    let [sequences, length, height, width] = frames.dims();
    assert_eq!([height, width], [FRAME, FRAME], "frames are [batch, t + 3, 84, 84]");
    assert!(length >= STACK, "a window of {length} frames is shorter than a stack of {STACK}");
    let steps = length + 1 - STACK;
    let d = weights.checked_width();
    if form == Form::Auto
        && weights.all_flex_f32()
        && let Some(frames) = flex::flex_u8(frames.clone())
    {
        return flex::apply(Encoder { frames, steps }, weights.inputs(), [sequences * steps, d]);
    }
    #[cfg(feature = "cube")]
    if let Some(factor) = cuda::factor(&frames, &weights, form) {
        return cuda::encode(frames, weights, factor);
    }
    if form != Form::Reference && !is_on_cpu(&weights.linear_weight) {
        return columns::encode(frames, weights, form);
    }
    reference::encode(reference::stacks(frames), weights, form)
}

/// The fused form: the float inputs are the parameters in the order of their declaration.
struct Encoder {
    frames: FlexTensor,
    steps: usize,
}

impl Encoder {
    fn parameters(inputs: [&[f32]; 8]) -> fused::EncoderParameters<'_> {
        let [
            conv1_weight,
            conv1_bias,
            conv2_weight,
            conv2_bias,
            conv3_weight,
            conv3_bias,
            linear_weight,
            linear_bias,
        ] = inputs;
        fused::EncoderParameters {
            conv1_weight,
            conv1_bias,
            conv2_weight,
            conv2_bias,
            conv3_weight,
            conv3_bias,
            linear_weight,
            linear_bias,
        }
    }
}

impl Fused<8> for Encoder {
    type Saved = fused::SavedLayers;

    fn forward(&self, inputs: [&[f32]; 8], keep: bool) -> (Buffer, Option<fused::SavedLayers>) {
        fused::forward(flex::bytes(&self.frames), self.steps, Self::parameters(inputs), keep)
    }

    fn backward(
        &self,
        inputs: [&[f32]; 8],
        output: &[f32],
        saved: &fused::SavedLayers,
        gradient: &[f32],
    ) -> [Buffer; 8] {
        let frames = flex::bytes(&self.frames);
        let parameters = Self::parameters(inputs);
        fused::backward(frames, self.steps, parameters, saved, output, gradient)
    }
}
