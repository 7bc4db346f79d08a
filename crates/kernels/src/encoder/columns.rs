//! The encoder in burn tensors, for GPUs without the kernels of `cuda.rs`: each convolution is one
//! product of matrices.
//!
//! A convolution whose stride divides its kernel size equals one of stride 1 over blocks of stride
//! × stride pixels, which become channels: 8 × 8 with stride 4 becomes 2 × 2 over 64 channels for
//! four frames, 4 × 4 with stride 2 becomes 2 × 2 over 128. A convolution of stride 1 is a product:
//! a row of the left matrix contains the pixels under the kernel at one place. Only slices,
//! reshapes and products are used. burn's GPU backend has convolutions, but tunes them by compiling
//! every candidate for every shape.
//!
//! Channels are last everywhere.

use burn::tensor::activation::relu;
use burn::tensor::{FloatDType, Int, Tensor};

use super::{FLAT, FRAME, NatureWeights, STACK};
use crate::{Form, affine};

/// `[sequences, t + 3, 84, 84]` → `[sequences * t, d]`.
pub(super) fn encode(frames: Tensor<4, Int>, weights: NatureWeights, form: Form) -> Tensor<2> {
    let [sequences, length, _, _] = frames.dims();
    let steps = length + 1 - STACK;
    let dtype = FloatDType::from(weights.linear_weight.dtype());
    let groups = groups(sequences * steps);
    let layer = |x: Tensor<4>, weight: Tensor<2>, bias: Tensor<1>| {
        let [n, height, width, _] = x.dims();
        let (places, channels) = (height * width, bias.dims()[0]);
        // One product for each group, so that the gradient of the weights, a product over all
        // places, is also one for each group. A single product would keep few cores busy.
        let x = x.reshape([groups as i32, (n / groups * places) as i32, -1]);
        let y = x.matmul(form.factor(weight).unsqueeze());
        let shape = [groups, n / groups, places, channels];
        relu(y.reshape(shape) + form.factor(bias).expand(shape))
            .reshape([n, height, width, channels])
    };
    let pixels = form.factor(frames.cast(dtype) / 255.0);
    let x = columns(stacked_blocks(pixels), 2);
    let x = layer(x, by_blocks(weights.conv1_weight, 4, Order::ChannelFirst), weights.conv1_bias);
    let x = columns(blocks(x, 2), 2);
    let x = layer(x, by_blocks(weights.conv2_weight, 2, Order::ChannelLast), weights.conv2_bias);
    let x = columns(x, 3);
    let x = layer(x, by_blocks(weights.conv3_weight, 1, Order::ChannelLast), weights.conv3_bias);
    let [n, height, width, channels] = x.dims();
    let [_, d] = weights.linear_weight.dims();
    // Its rows are in (channel, height, width) order.
    let linear = weights.linear_weight.reshape([channels, height * width, d]);
    let linear = linear.swap_dims(0, 1).reshape([FLAT, d]);
    let [x, linear] = [x.reshape([n, FLAT]), form.factor(linear)].map(|factor| factor.cast(dtype));
    affine(x, linear, weights.linear_bias).tanh()
}

/// Groups of equal size, as near to 128 as possible: one for a few of a GPU's cores.
fn groups(stacks: usize) -> usize {
    const GROUPS: usize = 128;
    let divisors = (1..=stacks).filter(|groups| stacks.is_multiple_of(*groups));
    let ratio = |groups: &usize| groups.max(&GROUPS) * 1000 / groups.min(&GROUPS);
    divisors.min_by_key(ratio).unwrap_or(1)
}

/// The stacks of windows in blocks of 4 × 4 pixels: `[sequences, t + 3, 84, 84]` →
/// `[sequences * t, 21, 21, 64]`, where a block is (frame, row, column).
fn stacked_blocks(frames: Tensor<4>) -> Tensor<4> {
    const SIDE: usize = FRAME / 4;
    let [sequences, length, _, _] = frames.dims();
    let steps = length + 1 - STACK;
    let frames = frames.reshape([sequences * length, SIDE, 4, SIDE, 4]).permute([0, 1, 3, 2, 4]);
    let frames = frames.reshape([sequences, length, SIDE, SIDE, 16]);
    let stacks = (0..STACK).map(|nth| frames.clone().narrow(1, nth, steps)).collect();
    Tensor::cat(stacks, 4).reshape([sequences * steps, SIDE, SIDE, STACK * 16])
}

/// Blocks of `size` × `size` pixels: `[n, h, w, c]` → `[n, h / size, w / size, size * size * c]`,
/// where a block is (row, column, channel).
fn blocks(x: Tensor<4>, size: usize) -> Tensor<4> {
    let [n, height, width, channels] = x.dims();
    let (rows, columns) = (height / size, width / size);
    let x = x.reshape([n, rows, size, columns, size, channels]).permute([0, 1, 3, 2, 4, 5]);
    x.reshape([n, rows, columns, size * size * channels])
}

/// The pixels under a kernel of `size` × `size` at each place: `[n, h, w, c]` →
/// `[n, h - size + 1, w - size + 1, size * size * c]`, in the order (row, column, channel).
fn columns(x: Tensor<4>, size: usize) -> Tensor<4> {
    let [_, height, width, _] = x.dims();
    let (rows, columns) = (height + 1 - size, width + 1 - size);
    let shifted = |row| {
        let x = x.clone().narrow(1, row, rows);
        (0..size).map(move |column| x.clone().narrow(2, column, columns))
    };
    Tensor::cat((0..size).flat_map(shifted).collect(), 3)
}

/// Order of the values in a block of pixels, slowest first.
#[derive(Clone, Copy)]
enum Order {
    /// Channel, row, column.
    ChannelFirst,
    /// Row, column, channel.
    ChannelLast,
}

/// The weights of a convolution over blocks of `size` × `size` pixels: `[out, in, k, k]` →
/// `[k * k * in, out]`, in the order (row of blocks, column of blocks, values in a block).
fn by_blocks(weight: Tensor<4>, size: usize, order: Order) -> Tensor<2> {
    let [out, channels, kernel, _] = weight.dims();
    let blocks = kernel / size;
    // (out, channel, row of blocks, row, column of blocks, column)
    let weight = weight.reshape([out, channels, blocks, size, blocks, size]);
    let weight = weight.permute(match order {
        Order::ChannelFirst => [2, 4, 1, 3, 5, 0],
        Order::ChannelLast => [2, 4, 3, 5, 1, 0],
    });
    weight.reshape([kernel * kernel * channels, out])
}

#[cfg(test)]
mod tests {
    use burn::tensor::{DType, Device, Distribution, TensorData};

    use super::super::reference;
    use super::*;

    #[test]
    fn groups_are_divisors_near_128() {
        let expected = [(0, 1), (1, 1), (6, 6), (131, 131), (250, 125), (3840, 128), (4099, 4099)];
        for (stacks, n) in expected {
            assert_eq!(groups(stacks), n, "{stacks} stacks");
        }
    }

    /// Outputs and all gradients equal those of convolutions.
    #[test]
    fn products_are_the_convolutions() {
        let device = &Device::flex().autodiff();
        let [sequences, length, d] = [2, 6, 16];
        let n_pixels = sequences * length * FRAME * FRAME;
        let pixels: Vec<u8> = (0..n_pixels).map(|i| (i * i % 251) as u8).collect();
        let data = TensorData::new(pixels, [sequences, length, FRAME, FRAME]);
        let frames = Tensor::<4, Int>::from_data(data, (device, DType::U8));
        let drawn = |shape: [usize; 4], bound: f64| {
            let range = Distribution::Uniform(-bound, bound);
            Tensor::<4>::random(shape, range, device)
        };
        let bias = |n: usize| drawn([1, 1, 1, n], 0.1).reshape([n]).require_grad();
        let weights = NatureWeights {
            conv1_weight: drawn([32, 4, 8, 8], 0.1).require_grad(),
            conv1_bias: bias(32),
            conv2_weight: drawn([64, 32, 4, 4], 0.1).require_grad(),
            conv2_bias: bias(64),
            conv3_weight: drawn([64, 64, 3, 3], 0.1).require_grad(),
            conv3_bias: bias(64),
            linear_weight: drawn([1, 1, FLAT, d], 0.02).reshape([FLAT, d]).require_grad(),
            linear_bias: bias(d),
        };
        let outer = drawn([1, 1, sequences * 3, d], 1.0).reshape([sequences * 3, d]);
        let run = |by_columns: bool| {
            let weights = weights.clone();
            let y = if by_columns {
                encode(frames.clone(), weights, Form::Auto)
            } else {
                reference::encode(reference::stacks(frames.clone()), weights, Form::Reference)
            };
            let gradients = (y.clone() * outer.clone()).sum().backward();
            (y.inner(), gradients)
        };
        let ((got, got_by), (expected, by)) = (run(true), run(false));
        let close = |name: &str, got: TensorData, expected: TensorData| {
            assert_eq!(got.shape(), expected.shape(), "{name}");
            let largest = expected.iter::<f64>().fold(0.0, |largest: f64, x| largest.max(x.abs()));
            assert!(largest > 1e-3, "{name}: nothing to compare");
            for (got, expected) in got.iter::<f64>().zip(expected.iter::<f64>()) {
                assert!((got - expected).abs() <= 1e-5 * largest, "{name}: {got}, {expected}");
            }
        };
        close("output", got.into_data(), expected.into_data());
        macro_rules! gradients_agree {
            ($($parameter:ident),*) => {
                $(let weight = &weights.$parameter;
                let (got, expected) = (weight.grad(&got_by).unwrap(), weight.grad(&by).unwrap());
                close(stringify!($parameter), got.into_data(), expected.into_data());)*
            };
        }
        gradients_agree!(conv1_weight, conv2_weight, conv3_weight, linear_weight);
        gradients_agree!(conv1_bias, conv2_bias, conv3_bias, linear_bias);
    }
}
