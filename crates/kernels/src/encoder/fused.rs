//! The encoder on slices: convolutions as products of patch matrices, one strip of frames
//! at a time in cache.
//!
//! Frames are sequences of `steps + 3`; a stack is a sequence of one step.
//!
//! **Forward.** The patches of an image are the rows of a matrix `P`, so a convolution is
//! `y = max(P Wᵀ + b, 0)`. After three of them, `e = tanh(y₃ W_l + b_l)`.
//!
//! **Backward**, given `de`:
//!
//! - `du = (1 − e²) ⊙ de`, `db_l = Σ_rows du`, `dW_l = y₃ᵀ du`, `dy₃ = du W_lᵀ`
//! - for each convolution, from the last to the first: `dz = dy` where `y > 0`, else 0;
//!   `db = Σ_rows dz`, `dW = dzᵀ P`, `dP = dz W`, and `dP` is added to the image at the source of
//!   its patches (`patches::scatter`, the transpose of `patches::gather`)
//!
//! The gradient of the frames is not needed, so the first layer, the largest, ends at `dW`.
//!
//! **Kept** are the three layers' results, 84 KB per stack. The patches are **computed again**:
//! they are 690 KB per stack, 330 MB in a batch of 480, and a copy from cache is faster than
//! memory.
//!
//! A frame is in four stacks. Its first-layer patches are gathered once: one channel of each patch
//! is next to the next frame's, so a stack's patches are four neighbouring blocks of columns.

mod backward;
mod forward;

pub(super) use backward::backward;
pub(super) use forward::forward;

use super::patches::Convolution;
use super::{FLAT, FRAME, STACK};
use crate::buffer::Buffer;
use crate::matrix::transpose;
use crate::partitions::take;

/// One channel of the first convolution: all stacks with a frame share its patches.
const CONV1: Convolution = Convolution { channels: 1, size: FRAME, kernel: 8, stride: 4 };
const CONV2: Convolution = Convolution { channels: 32, size: 20, kernel: 4, stride: 2 };
const CONV3: Convolution = Convolution { channels: 64, size: 9, kernel: 3, stride: 1 };

/// Values in a first-layer patch over all channels.
const PATCH1: usize = STACK * CONV1.patch();
const CHANNELS1: usize = 32;
const CHANNELS2: usize = 64;
const CHANNELS3: usize = 64;
/// Values of the first and second layer per stack.
const HIDDEN1: usize = CONV1.patches() * CHANNELS1;
const HIDDEN2: usize = CONV2.patches() * CHANNELS2;

/// Maximum number of steps in a strip: its patches then about fill a second-level cache of 1 MiB.
const STRIP: usize = 6;
/// Rows of the linear layer per task: 3,136 values each, 0.4 MB, in second-level cache.
const ROWS: usize = 32;
/// Pixels are used as integers, so the first layer's weights contain this factor.
const PIXEL: f32 = 1.0 / 255.0;

/// The parameters as slices, laid out as in [`NatureWeights`](super::NatureWeights).
#[derive(Clone, Copy)]
pub(super) struct EncoderParameters<'a> {
    pub conv1_weight: &'a [f32],
    pub conv1_bias: &'a [f32],
    pub conv2_weight: &'a [f32],
    pub conv2_bias: &'a [f32],
    pub conv3_weight: &'a [f32],
    pub conv3_bias: &'a [f32],
    pub linear_weight: &'a [f32],
    pub linear_bias: &'a [f32],
}

impl EncoderParameters<'_> {
    fn width(&self) -> usize {
        self.linear_bias.len()
    }
}

/// Values of the forward pass that the backward pass needs. Images are `[height, width, channels]`.
pub(super) struct SavedLayers {
    /// First layer after ReLU: `[n, 20, 20, 32]`.
    hidden1: Buffer,
    /// Second layer after ReLU: `[n, 9, 9, 64]`.
    hidden2: Buffer,
    /// Third layer after ReLU: `[n, 7, 7, 64]`.
    flat: Buffer,
}

/// Successive steps of one sequence of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Strip {
    sequence: usize,
    first_step: usize,
    steps: usize,
}

impl Strip {
    /// Number of frames of the strip.
    fn frames(self) -> usize {
        self.steps + STACK - 1
    }

    /// The strip's pixels.
    fn pixels(self, frames: &[u8], steps: usize) -> &[u8] {
        const PIXELS: usize = FRAME * FRAME;
        let start = self.sequence * (steps + STACK - 1) + self.first_step;
        &frames[start * PIXELS..(start + self.frames()) * PIXELS]
    }
}

/// All steps of all sequences, in order, in strips of even length.
fn strips(sequences: usize, steps: usize) -> Vec<Strip> {
    let n = steps.div_ceil(STRIP);
    (0..sequences)
        .flat_map(|sequence| {
            (0..n).map(move |i| {
                let (first_step, end) = (i * steps / n, (i + 1) * steps / n);
                Strip { sequence, first_step, steps: end - first_step }
            })
        })
        .collect()
}

/// First-layer patches of a strip: the patches of frame `f` are columns `64 f ..`, so the patches
/// of step `k` are the 256 columns from `64 k`.
fn gather_strip(strip: Strip, pixels: &[u8], patches: &mut [f32]) {
    let stride = strip.frames() * CONV1.patch();
    for (frame, pixels) in pixels.chunks_exact(FRAME * FRAME).enumerate() {
        super::patches::gather_frame(CONV1, pixels, patches, stride, frame * CONV1.patch());
    }
}

/// `[out, in, height, width]` → `[out, height, width, in]`.
fn channels_last(weight: &[f32], channels: usize) -> Vec<f32> {
    let area = if channels == CONV2.channels { CONV2 } else { CONV3 }.patch() / channels;
    weight.chunks_exact(channels * area).flat_map(|out| transpose(out, channels, area)).collect()
}

/// `[out, height, width, in]` → `[out, in, height, width]`.
fn channels_first(weight: &[f32], channels: usize) -> Vec<f32> {
    let area = if channels == CONV2.channels { CONV2 } else { CONV3 }.patch() / channels;
    weight.chunks_exact(channels * area).flat_map(|out| transpose(out, area, channels)).collect()
}

/// Rows of the linear layer in (channel, pixel) order → (pixel, channel) order.
fn pixels_first(weight: &[f32], d: usize, into: &mut [f32]) {
    let rows = into.chunks_exact_mut(d).enumerate();
    rows.for_each(|(i, into)| {
        let (pixel, channel) = (i / CHANNELS3, i % CHANNELS3);
        into.copy_from_slice(&weight[(channel * CONV3.patches() + pixel) * d..][..d]);
    });
}

/// The inverse of [`pixels_first`].
fn channels_first_rows(weight: &[f32], d: usize) -> Buffer {
    let mut out = Buffer::new(weight.len());
    for (i, row) in weight.chunks_exact(d).enumerate() {
        let (pixel, channel) = (i / CHANNELS3, i % CHANNELS3);
        out[(channel * CONV3.patches() + pixel) * d..][..d].copy_from_slice(row);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_the_layers() {
        assert_eq!([CONV1.output(), CONV2.output(), CONV3.output()], [20, 9, 7]);
        assert_eq!([PATCH1, CONV2.patch(), CONV3.patch()], [256, 512, 576]);
        assert_eq!(FLAT, CONV3.patches() * CHANNELS3);
    }

    #[test]
    fn strips_cover_every_step_once() {
        for steps in [1, 5, 6, 7, 13, 30] {
            let mut next = 0;
            for strip in strips(3, steps) {
                assert!((1..=STRIP).contains(&strip.steps));
                assert_eq!(strip.sequence * steps + strip.first_step, next);
                next += strip.steps;
            }
            assert_eq!(next, 3 * steps);
        }
    }

    #[test]
    fn layouts_are_inverse() {
        let weight: Vec<f32> = (0..3 * 512).map(|i| i as f32).collect();
        let moved = channels_last(&weight, 32);
        // Output 1, position 5, channel 2.
        assert_eq!(moved[512 + 5 * 32 + 2], weight[512 + 2 * 16 + 5]);
        assert_eq!(channels_first(&moved, 32), weight);

        let weight: Vec<f32> = (0..FLAT * 2).map(|i| i as f32).collect();
        let mut moved = vec![0.0; FLAT * 2];
        pixels_first(&weight, 2, &mut moved);
        // Pixel 3, channel 5.
        assert_eq!(moved[(3 * 64 + 5) * 2], weight[(5 * 49 + 3) * 2]);
        assert_eq!(channels_first_rows(&moved, 2)[..], weight);
    }
}
