//! Dropout on a GPU: the mask is hashed in the kernels, forward and backward, and is never stored.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Autodiff, Backend, Dispatch, TensorMetadata, backend_extension};
use burn::tensor::{DType, Int, Tensor};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;

use crate::gpu::epilogues::{Masked, masked};
use crate::gpu::{is_on_gpu, tape};

/// Whether the kernel can drop elements of this tensor.
pub(super) fn is_possible<const D: usize>(x: &Tensor<D>) -> bool {
    let n = x.shape().num_elements();
    is_on_gpu(x)
        && matches!(x.dtype(), DType::F32 | DType::F16 | DType::BF16)
        && (1..u32::MAX as usize).contains(&n)
}

/// Drops elements of a tensor for which [`is_possible`] holds.
pub(super) fn apply<const D: usize>(
    x: Tensor<D>,
    step_seed: Tensor<1, Int>,
    mask: Masked,
) -> Tensor<D> {
    let (x, step_seed) = (x.into_dispatch(), step_seed.into_dispatch());
    Tensor::from_dispatch(Dispatch::cube_dropout(x, step_seed, mask))
}

/// The extension of burn: dropout with the same mask for the gradient as for the input.
#[backend_extension(Cube, Autodiff, Fusion)]
trait CubeDropout: Backend {
    #[fusion(dtype = x, shape = x)]
    fn cube_dropout(
        x: FloatTensor<Self>,
        step_seed: IntTensor<Self>,
        mask: Masked,
    ) -> FloatTensor<Self>;
}

impl CubeDropout for CubeBackend {
    fn cube_dropout(
        x: FloatTensor<Self>,
        step_seed: IntTensor<Self>,
        mask: Masked,
    ) -> FloatTensor<Self> {
        let (x, step_seed) = (into_contiguous(x), into_contiguous(step_seed));
        let shape = x.shape();
        let (columns, dtype) = (shape[shape.num_dims() - 1], x.dtype);
        masked(x, columns, step_seed, Some(mask), dtype)
    }
}

impl<B: CubeDropout, C: CheckpointStrategy> CubeDropout for Autodiff<B, C> {
    fn cube_dropout(
        x: FloatTensor<Self>,
        step_seed: IntTensor<Self>,
        mask: Masked,
    ) -> FloatTensor<Self> {
        tape::apply::<B, C, _, 1>(
            [x],
            |[x]| (B::cube_dropout(x, step_seed.clone(), mask), (step_seed, mask)),
            |(step_seed, mask), by_out| [B::cube_dropout(by_out, step_seed, mask)],
        )
    }
}
