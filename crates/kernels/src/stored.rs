//! Memory that keeps its place, for steps that are recorded and replayed.
//!
//! A recorded step reads and writes the memory that it had when it was recorded. So its inputs are
//! parts of one buffer of 32-bit words, which the host overwrites before every replay, and the step
//! writes its results over the old ones. Elsewhere than on a GPU nothing is recorded, and these
//! functions return the same values in new memory.

#[cfg(feature = "cube")]
mod cube;

use std::cell::RefCell;

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

#[cfg(feature = "cube")]
use crate::gpu::{is_int_on_gpu, is_on_gpu};

/// Alignment of parts in elements of 32 bits: GPUs need addresses that are multiples of 256 bytes.
pub const ALIGNED: usize = 64;

/// The most constants that are kept.
const MOST_CONSTANTS: usize = 64;

/// A part of flat values, on a GPU in the same memory.
///
/// `start` is a multiple of [`ALIGNED`].
pub fn part(flat: &Tensor<1>, start: usize, length: usize) -> Tensor<1> {
    #[cfg(feature = "cube")]
    if is_on_gpu(flat) && flat.dtype().size() == 4 {
        return cube::part(flat.clone(), start, length);
    }
    flat.clone().narrow(0, start, length)
}

/// `memory` with the `values`. On a GPU they are copied into the memory of `memory`, and all
/// tensors that share it have these values from now on.
///
/// # Panics
/// When the lengths differ.
pub fn copy_into(memory: Tensor<1>, values: Tensor<1>) -> Tensor<1> {
    assert_eq!(memory.dims(), values.dims(), "values of another length than the memory");
    #[cfg(feature = "cube")]
    if is_on_gpu(&memory) {
        return cube::copy_into(memory, values);
    }
    values
}

/// A tensor of these constants. On a GPU it is kept, and later calls with the same constants return
/// it, because a recorded step must not send them again.
pub fn constant<const D: usize>(
    values: Vec<f64>,
    shape: [usize; D],
    device: &Device,
    dtype: DType,
) -> Tensor<D> {
    type Kept = (Vec<f64>, Device, Tensor<1>);
    thread_local!(static KEPT: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) });
    let send = |values: &[f64]| Tensor::<1>::from_data(values, (device, dtype));
    if device.clone().without_autodiff() == Device::flex() {
        return send(&values).reshape(shape);
    }
    KEPT.with_borrow_mut(|kept| {
        let stored = kept
            .iter()
            .find(|(of, on, tensor)| *of == values && on == device && tensor.dtype() == dtype);
        if let Some((.., tensor)) = stored {
            return tensor.clone().reshape(shape);
        }
        // A network has a few. Many of them are of many networks, so earlier ones may be dropped.
        if kept.len() == MOST_CONSTANTS {
            kept.remove(0);
        }
        let tensor = send(&values);
        kept.push((values, device.clone(), tensor.clone()));
        tensor.reshape(shape)
    })
}

/// The places of flat tensors in one tensor. Each starts at a multiple of [`ALIGNED`], so that on a GPU
/// it can be used in place, and zeros fill the gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packing {
    lengths: Vec<usize>,
}

impl Packing {
    /// Places of tensors of these lengths.
    pub fn new(lengths: Vec<usize>) -> Self {
        Self { lengths }
    }

    /// The length of each tensor.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// The start of each tensor.
    pub fn starts(&self) -> impl Iterator<Item = usize> {
        self.lengths.iter().scan(0, |next, length| {
            let start = *next;
            *next += length.next_multiple_of(ALIGNED);
            Some(start)
        })
    }

    /// The length of the whole.
    pub fn size(&self) -> usize {
        self.lengths.iter().map(|length| length.next_multiple_of(ALIGNED)).sum()
    }

    /// Tensors of these lengths in one. `zeros` has at least [`ALIGNED`] of them.
    pub fn join(&self, parts: impl IntoIterator<Item = Tensor<1>>, zeros: &Tensor<1>) -> Tensor<1> {
        let mut joined = Vec::new();
        for part in parts {
            let [length] = part.dims();
            let gap = length.next_multiple_of(ALIGNED) - length;
            joined.push(part);
            if gap > 0 {
                joined.push(zeros.clone().narrow(0, 0, gap));
            }
        }
        Tensor::cat(joined, 0)
    }

    /// The tensors of a [joined](Self::join) one, on a GPU in its memory.
    pub fn parts(&self, joined: &Tensor<1>) -> Vec<Tensor<1>> {
        let parts = self.starts().zip(&self.lengths);
        parts.map(|(start, &length)| part(joined, start, length)).collect()
    }
}

/// Words of 32 bits on a device. Parts of them are the inputs of a step.
#[derive(Clone, Debug)]
pub struct Words(Tensor<1, Int>);

impl Words {
    /// Words in new memory of a device without autodiff.
    pub fn new(words: Vec<i32>, device: &Device) -> Self {
        let n = words.len();
        Self(Tensor::from_data(TensorData::new(words, [n]), device))
    }

    /// Overwrites all words; on a GPU in place, so that earlier parts have the new values.
    ///
    /// # Panics
    /// When the number of words changes.
    pub fn write(&mut self, words: Vec<i32>) {
        assert_eq!(self.0.dims(), [words.len()], "another number of words");
        #[cfg(feature = "cube")]
        if is_int_on_gpu(&self.0) {
            self.0 = cube::write(self.0.clone(), words);
            return;
        }
        *self = Self::new(words, &self.0.device());
    }

    /// A part of the words. `start` is a multiple of [`ALIGNED`].
    pub fn ints(&self, start: usize, length: usize) -> Tensor<1, Int> {
        #[cfg(feature = "cube")]
        if is_int_on_gpu(&self.0) {
            return cube::ints(self.0.clone(), start, length);
        }
        self.0.clone().narrow(0, start, length)
    }

    /// A part of the words as the bits of `f32` numbers. `start` is a multiple of [`ALIGNED`].
    pub fn floats(&self, start: usize, length: usize) -> Tensor<1> {
        #[cfg(feature = "cube")]
        if is_int_on_gpu(&self.0) {
            return cube::floats(self.0.clone(), start, length);
        }
        let words = self.0.clone().narrow(0, start, length).into_data();
        let floats: Vec<f32> =
            words.iter::<i32>().map(|bits| f32::from_bits(bits as u32)).collect();
        Tensor::from_data(TensorData::new(floats, [length]), &self.0.device())
    }
}
