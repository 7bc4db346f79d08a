//! Memory that keeps its place on a GPU: views that share memory, and writes into them.
//!
//! Each operation returns a tensor that shares the memory of its first argument. Fusion orders
//! operations by their tensors, so a reader of the new values takes the returned tensor.

mod kernel;

use burn::backend::cubecl::dtype_to_storage_type;
use burn::backend::fusion::custom::TensorSpec;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, Dispatch, TensorMetadata, backend_extension};
use burn::tensor::{DType, Int, Shape, Tensor};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use cubecl::prelude::*;

use crate::gpu::{address_type, view};
use kernel::copy_kernel;

/// Units of a cube in a copy.
const UNITS: u32 = 256;
/// The most cubes of a copy; each unit copies several elements.
const CUBES: usize = 4096;

pub(super) fn part(flat: Tensor<1>, start: usize, length: usize) -> Tensor<1> {
    Tensor::from_dispatch(Dispatch::cube_part(flat.into_dispatch(), start, length))
}

pub(super) fn copy_into(memory: Tensor<1>, values: Tensor<1>) -> Tensor<1> {
    let (memory, values) = (memory.into_dispatch(), values.into_dispatch());
    Tensor::from_dispatch(Dispatch::cube_copy_into(memory, values))
}

pub(super) fn write(words: Tensor<1, Int>, new: Vec<i32>) -> Tensor<1, Int> {
    Tensor::from_dispatch(Dispatch::cube_write(words.into_dispatch(), new))
}

pub(super) fn ints(words: Tensor<1, Int>, start: usize, length: usize) -> Tensor<1, Int> {
    Tensor::from_dispatch(Dispatch::cube_ints(words.into_dispatch(), start, length))
}

pub(super) fn floats(words: Tensor<1, Int>, start: usize, length: usize) -> Tensor<1> {
    Tensor::from_dispatch(Dispatch::cube_floats(words.into_dispatch(), start, length))
}

/// The extension of burn; without autodiff, because nothing here is differentiated.
#[backend_extension(Cube, Fusion)]
trait CubeStored: Backend {
    #[fusion(meta = |flat, _start, length| TensorSpec::new(Shape::from([*length]), flat.dtype))]
    fn cube_part(flat: FloatTensor<Self>, start: usize, length: usize) -> FloatTensor<Self>;

    #[fusion(meta = |words, _start, length| TensorSpec::new(Shape::from([*length]), words.dtype))]
    fn cube_ints(words: IntTensor<Self>, start: usize, length: usize) -> IntTensor<Self>;

    #[fusion(meta = |_words, _start, length| TensorSpec::new(Shape::from([*length]), DType::F32))]
    fn cube_floats(words: IntTensor<Self>, start: usize, length: usize) -> FloatTensor<Self>;

    #[fusion(dtype = words, shape = words)]
    fn cube_write(words: IntTensor<Self>, new: Vec<i32>) -> IntTensor<Self>;

    #[fusion(dtype = memory, shape = memory)]
    fn cube_copy_into(memory: FloatTensor<Self>, values: FloatTensor<Self>) -> FloatTensor<Self>;
}

impl CubeStored for CubeBackend {
    fn cube_part(flat: FloatTensor<Self>, start: usize, length: usize) -> FloatTensor<Self> {
        let dtype = flat.dtype;
        view(flat, start, Shape::new([length]), dtype)
    }

    fn cube_ints(words: IntTensor<Self>, start: usize, length: usize) -> IntTensor<Self> {
        let dtype = words.dtype;
        view(words, start, Shape::new([length]), dtype)
    }

    fn cube_floats(words: IntTensor<Self>, start: usize, length: usize) -> FloatTensor<Self> {
        view(words, start, Shape::new([length]), DType::F32)
    }

    fn cube_write(words: IntTensor<Self>, new: Vec<i32>) -> IntTensor<Self> {
        assert_eq!(words.dtype, DType::I32, "words have 32 bits");
        words.client.write(&words.handle, cubecl::bytes::Bytes::from_elems(new));
        words
    }

    fn cube_copy_into(memory: FloatTensor<Self>, values: FloatTensor<Self>) -> FloatTensor<Self> {
        let values = into_contiguous(values);
        let n = values.shape().num_elements();
        // SAFETY: the kernel reads and writes the first `n` elements of two tensors of this
        // length, which are contiguous: both are flat, and `memory` is no result of a stride.
        unsafe {
            copy_kernel::launch_unchecked(
                &memory.client,
                CubeCount::Static(n.div_ceil(UNITS as usize).clamp(1, CUBES) as u32, 1, 1),
                CubeDim::new_1d(UNITS),
                address_type(&[&memory, &values]),
                values.into_tensor_arg(),
                memory.clone().into_tensor_arg(),
                n,
                dtype_to_storage_type(memory.dtype),
            );
        }
        memory
    }
}
