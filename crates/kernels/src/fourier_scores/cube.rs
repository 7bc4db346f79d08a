//! The scores on a GPU: kernels in CubeCL, and their registration as burn operations.
//!
//! burn's backend for GPUs collects operations and fuses them before it runs them. These kernels
//! are registered as operations that it does not fuse.

mod kernels;
mod launch;
mod sinc;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, backend_extension};
use burn::tensor::{DType, Shape, Tensor};
use burn_cubecl::CubeBackend;

use crate::gpu::is_on_gpu;

/// A cube has at least one unit for each dimension.
const LARGEST_D_HEAD: usize = kernels::UNITS;

/// Whether the kernels can compute scores of these tensors: all on a GPU, in one float type of at
/// most 32 bits, with heads of at most [`LARGEST_D_HEAD`] dimensions, and as many keys as queries.
pub(super) fn is_possible(q: &Tensor<4>, k: &Tensor<4>, r: &Tensor<2>) -> bool {
    let [batch, heads, tokens, d_head] = q.dims();
    let dtype = q.dtype();
    matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
        && (k.dtype(), r.dtype()) == (dtype, dtype)
        && is_on_gpu(q)
        && is_on_gpu(k)
        && is_on_gpu(r)
        && k.dims() == q.dims()
        && batch * heads * tokens > 0
        && (1..=LARGEST_D_HEAD).contains(&d_head)
}

/// The scores of tensors for which [`is_possible`] holds; `r` is `[heads, d_head]`.
pub(super) fn scores(q: Tensor<4>, k: Tensor<4>, r: Tensor<2>, power: u32) -> Tensor<4> {
    let [q, k, r] = [q.into_dispatch(), k.into_dispatch(), r.into_dispatch()];
    Tensor::from_dispatch(Dispatch::cube_scores(q, k, r, power))
}

/// The extension of burn: the scores, with support for autodiff.
#[backend_extension(Cube, Autodiff, Fusion)]
trait CubeScores: Backend {
    #[fusion(dtype = q, shape = shape_of_scores(q))]
    fn cube_scores(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        r: FloatTensor<Self>,
        power: u32,
    ) -> FloatTensor<Self>;
}

fn shape_of_scores(q: &Shape) -> Shape {
    let [batch, heads, tokens, _] = q.dims();
    Shape::new([batch, heads, tokens, tokens])
}

/// The gradients of queries, keys and `R`, from the gradient of scores.
#[backend_extension(Cube, Fusion)]
trait CubeGradients: Backend {
    #[fusion(meta = |q, k, r, _by_scores, _power| (q.clone(), k.clone(), r.clone()))]
    fn cube_gradients(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        r: FloatTensor<Self>,
        by_scores: FloatTensor<Self>,
        power: u32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

impl CubeScores for CubeBackend {
    fn cube_scores(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        r: FloatTensor<Self>,
        power: u32,
    ) -> FloatTensor<Self> {
        launch::scores(q, k, r, power)
    }
}

impl CubeGradients for CubeBackend {
    fn cube_gradients(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        r: FloatTensor<Self>,
        by_scores: FloatTensor<Self>,
        power: u32,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let [by_q, by_k, by_r] = launch::gradients(q, k, r, by_scores, power);
        (by_q, by_k, by_r)
    }
}

impl<B: CubeScores + CubeGradients, C: CheckpointStrategy> CubeScores for Autodiff<B, C> {
    fn cube_scores(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        r: FloatTensor<Self>,
        power: u32,
    ) -> FloatTensor<Self> {
        let nodes = [q.node(), k.node(), r.node()];
        let [q, k, r] = [q, k, r].map(|tensor| tensor.into_primitive());
        match ScoresStep.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(step) => {
                let scores = B::cube_scores(q.clone(), k.clone(), r.clone(), power);
                step.finish(ScoresState { q, k, r, power }, scores)
            }
            OpsKind::UnTracked(step) => step.finish(B::cube_scores(q, k, r, power)),
        }
    }
}

/// The scores on the tape.
#[derive(Debug)]
struct ScoresStep;

/// Values that the backward pass needs in addition to the gradient of scores.
#[derive(Clone, Debug)]
struct ScoresState<B: Backend> {
    q: FloatTensor<B>,
    k: FloatTensor<B>,
    r: FloatTensor<B>,
    power: u32,
}

impl<B: CubeGradients> Backward<B, 3> for ScoresStep {
    type State = ScoresState<B>;

    fn backward(
        self,
        ops: Ops<Self::State, 3>,
        gradients: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let by_scores = gradients.consume::<B>(&ops.node);
        let ScoresState { q, k, r, power } = ops.state;
        let (by_q, by_k, by_r) = B::cube_gradients(q, k, r, by_scores, power);
        for (parent, by) in ops.parents.into_iter().zip([by_q, by_k, by_r]) {
            if let Some(parent) = parent {
                gradients.register::<B>(parent.id, by);
            }
        }
    }
}
