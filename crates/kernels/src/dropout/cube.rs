//! Dropout on a GPU: the mask is hashed in the kernels, forward and backward, and is never stored.

mod kernel;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::cubecl::dtype_to_storage_type;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, TensorMetadata, backend_extension};
use burn::tensor::{DType, Tensor};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use cubecl::prelude::*;

use super::Mask;
use crate::gpu::{address_type, empty_like, is_on_gpu};
use kernel::{COLUMNS, ROWS, dropout_kernel};

/// Cubes along the first axis of their grid; less than any GPU's limit.
const GRID: usize = 32_768;

/// Whether the kernel can drop elements of this tensor.
pub(super) fn is_possible<const D: usize>(x: &Tensor<D>) -> bool {
    let n = x.shape().num_elements();
    is_on_gpu(x)
        && matches!(x.dtype(), DType::F32 | DType::F16 | DType::BF16)
        && (1..u32::MAX as usize).contains(&n)
}

/// Drops elements of a tensor for which [`is_possible`] holds.
pub(super) fn apply<const D: usize>(x: Tensor<D>, mask: Mask) -> Tensor<D> {
    let Mask { seed, threshold, scale } = mask;
    let dropped = Dispatch::cube_dropout(x.into_dispatch(), seed, threshold as u32, scale);
    Tensor::from_dispatch(dropped)
}

/// The extension of burn: dropout with the same mask for the gradient as for the input.
#[backend_extension(Cube, Autodiff, Fusion)]
trait CubeDropout: Backend {
    #[fusion(dtype = x, shape = x)]
    fn cube_dropout(
        x: FloatTensor<Self>,
        seed: u64,
        threshold: u32,
        scale: f32,
    ) -> FloatTensor<Self>;
}

impl CubeDropout for CubeBackend {
    fn cube_dropout(
        x: FloatTensor<Self>,
        seed: u64,
        threshold: u32,
        scale: f32,
    ) -> FloatTensor<Self> {
        let x = into_contiguous(x);
        let shape = x.shape();
        let columns = shape[shape.num_dims() - 1];
        let rows = shape.num_elements() / columns;
        let cubes = rows.div_ceil(ROWS);
        let out = empty_like(&x, shape, x.dtype);
        // SAFETY: the kernel reads and writes rows and columns that it has found to be inside
        // of both tensors, which are contiguous and of one shape.
        unsafe {
            dropout_kernel::launch_unchecked(
                &out.client,
                CubeCount::Static(cubes.min(GRID) as u32, cubes.div_ceil(GRID) as u32, 1),
                CubeDim::new_2d(COLUMNS as u32, ROWS as u32),
                address_type(&[&x, &out]),
                x.into_tensor_arg(),
                out.clone().into_tensor_arg(),
                rows as u32,
                columns as u32,
                seed as u32,
                (seed >> 32) as u32,
                threshold,
                scale,
                dtype_to_storage_type(out.dtype),
            );
        }
        out
    }
}

impl<B: CubeDropout, C: CheckpointStrategy> CubeDropout for Autodiff<B, C> {
    fn cube_dropout(
        x: FloatTensor<Self>,
        seed: u64,
        threshold: u32,
        scale: f32,
    ) -> FloatTensor<Self> {
        let node = x.node();
        let dropped = B::cube_dropout(x.into_primitive(), seed, threshold, scale);
        match Backward::<B, 1>::prepare::<C>(DropoutStep, [node]).compute_bound().stateful() {
            OpsKind::Tracked(step) => step.finish(DropoutState { seed, threshold, scale }, dropped),
            OpsKind::UnTracked(step) => step.finish(dropped),
        }
    }
}

/// Dropout on the tape.
#[derive(Debug)]
struct DropoutStep;

/// The mask, which the backward pass applies again.
#[derive(Clone, Copy, Debug)]
struct DropoutState {
    seed: u64,
    threshold: u32,
    scale: f32,
}

impl<B: CubeDropout> Backward<B, 1> for DropoutStep {
    type State = DropoutState;

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        gradients: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let by_output = gradients.consume::<B>(&ops.node);
        let DropoutState { seed, threshold, scale } = ops.state;
        let [parent] = ops.parents;
        if let Some(parent) = parent {
            let by_x = B::cube_dropout(by_output, seed, threshold, scale);
            gradients.register::<B>(parent.id, by_x);
        }
    }
}
