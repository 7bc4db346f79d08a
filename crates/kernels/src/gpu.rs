//! Common parts of the kernels in CubeCL.

pub(crate) mod affine;
pub(crate) mod epilogues;
pub(crate) mod layers;
pub(crate) mod products;
pub(crate) mod source;
pub(crate) mod sources;
pub(crate) mod sums;
pub(crate) mod tape;

use burn::backend::DispatchTensorKind;
use burn::backend::{DType, Shape, TensorMetadata};
use burn::tensor::{Int, Tensor};
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use cubecl::CubeCount;
use cubecl::ir::AddressType;

/// Whether a tensor is on a GPU, tracked by autodiff or not.
pub(crate) fn is_on_gpu<const D: usize>(tensor: &Tensor<D>) -> bool {
    is_cube(&tensor.clone().into_dispatch().kind)
}

/// The same for integers.
pub(crate) fn is_int_on_gpu<const D: usize>(tensor: &Tensor<D, Int>) -> bool {
    is_cube(&tensor.clone().into_dispatch().kind)
}

fn is_cube(kind: &DispatchTensorKind) -> bool {
    match kind {
        DispatchTensorKind::Cube(_) => true,
        DispatchTensorKind::Autodiff(inner) => is_cube(inner),
        _ => false,
    }
}

/// Memory for a result on the device of `tensor`.
pub(crate) fn empty_like(tensor: &CubeTensor, shape: Shape, dtype: DType) -> CubeTensor {
    let (client, device) = (tensor.client.clone(), tensor.device.clone());
    empty_device_contiguous_dtype(client, device, shape, dtype)
}

/// Elements of a flat tensor in the same memory, as elements of another type of the same size.
pub(crate) fn view(flat: CubeTensor, start: usize, shape: Shape, dtype: DType) -> CubeTensor {
    let ([n], length) = (flat.shape().dims(), shape.num_elements());
    assert!(start + length <= n && flat.is_contiguous(), "a part of {n} elements");
    assert_eq!([dtype.size(), flat.dtype.size()], [4; 2], "parts are aligned for 4 bytes");
    let bytes = |elements: usize| (elements * dtype.size()) as u64;
    let CubeTensor { client, handle, device, .. } = flat;
    let handle = handle.offset_start(bytes(start)).offset_end(bytes(n - start - length));
    CubeTensor::new_contiguous(client, device, shape, handle, dtype)
}

/// Type of addresses that reach every element of every tensor.
pub(crate) fn address_type(tensors: &[&CubeTensor]) -> AddressType {
    tensors.iter().map(|tensor| tensor.required_address_type()).max().unwrap_or_default()
}

/// A grid of at least this many cubes in two axes, each within any GPU's limit.
pub(crate) fn folded(cubes: usize) -> CubeCount {
    const AXIS: usize = 32_768;
    CubeCount::Static(cubes.min(AXIS) as u32, cubes.div_ceil(AXIS) as u32, 1)
}
