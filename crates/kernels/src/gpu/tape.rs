//! Operations with a hand-written backward pass, on the gradient tape of burn's autodiff.

use std::fmt;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend};

/// Runs `forward`, and records it if an input is tracked. `forward` also returns the state that
/// `backward` needs. From this and the gradient of the result, `backward` computes the gradient of
/// each input.
pub(crate) fn apply<B, C, S, const N: usize>(
    inputs: [FloatTensor<Autodiff<B, C>>; N],
    forward: impl FnOnce([FloatTensor<B>; N]) -> (FloatTensor<B>, S),
    backward: fn(S, FloatTensor<B>) -> [FloatTensor<B>; N],
) -> FloatTensor<Autodiff<B, C>>
where
    B: Backend,
    C: CheckpointStrategy,
    S: Clone + Send + fmt::Debug + 'static,
{
    let nodes = inputs.each_ref().map(|input| input.node());
    let (out, state) = forward(inputs.map(|input| input.into_primitive()));
    match (Step { backward }).prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(step) => step.finish(state, out),
        OpsKind::UnTracked(step) => step.finish(out),
    }
}

/// An operation on the tape.
struct Step<B: Backend, S, const N: usize> {
    backward: fn(S, FloatTensor<B>) -> [FloatTensor<B>; N],
}

impl<B: Backend, S, const N: usize> fmt::Debug for Step<B, S, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Step({})", std::any::type_name::<S>())
    }
}

impl<B, S, const N: usize> Backward<B, N> for Step<B, S, N>
where
    B: Backend,
    S: Clone + Send + fmt::Debug + 'static,
{
    type State = S;

    fn backward(self, ops: Ops<S, N>, gradients: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let by_out = gradients.consume::<B>(&ops.node);
        for (parent, by) in ops.parents.into_iter().zip((self.backward)(ops.state, by_out)) {
            if let Some(parent) = parent {
                gradients.register::<B>(parent.id, by);
            }
        }
    }
}
