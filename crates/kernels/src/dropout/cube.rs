//! Dropout on a GPU: the mask is hashed in the kernels, forward and backward, and is never stored.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Autodiff, Backend, Dispatch, TensorMetadata, backend_extension};
use burn::tensor::{DType, Int, Tensor};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;

use crate::gpu::epilogues::{Masked, masked};
use crate::gpu::is_on_gpu;

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
        let node = x.node();
        let dropped = B::cube_dropout(x.into_primitive(), step_seed.clone(), mask);
        match Backward::<B, 1>::prepare::<C>(DropoutStep, [node]).compute_bound().stateful() {
            OpsKind::Tracked(step) => step.finish((step_seed, mask), dropped),
            OpsKind::UnTracked(step) => step.finish(dropped),
        }
    }
}

/// Dropout on the tape. Its state is the mask, which the backward pass applies again.
#[derive(Debug)]
struct DropoutStep;

impl<B: CubeDropout> Backward<B, 1> for DropoutStep {
    type State = (IntTensor<B>, Masked);

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        gradients: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let by_output = gradients.consume::<B>(&ops.node);
        let (step_seed, mask) = ops.state;
        let [parent] = ops.parents;
        if let Some(parent) = parent {
            gradients.register::<B>(parent.id, B::cube_dropout(by_output, step_seed, mask));
        }
    }
}
