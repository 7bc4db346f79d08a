//! Integration of fused operations in burn: tensors to slices on the CPU backend, and the backward
//! pass as one step of the gradient tape.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::{
    BalancedCheckpointing, CheckpointStrategy, NoCheckpointing,
};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Autodiff, Backend, BackendTensor, DispatchAutodiffContext, DispatchKindConversion,
    DispatchTensor, DispatchTensorKind, Flex, GradientCheckpointingStrategy,
};
use burn::tensor::{DType, Int, Shape, Tensor, TensorData};

use crate::buffer::Buffer;

/// A tensor with its place on the tape.
type Tracked = FloatTensor<Autodiff<Flex>>;

/// An operation on `N` float inputs with a hand-written backward pass. If the output has no
/// elements, neither pass runs, and every gradient is zero.
pub(crate) trait Fused<const N: usize>: Send + Sync + 'static {
    /// Values that the backward pass needs in addition to inputs and output.
    type Saved: Send + Sync + 'static;

    /// The output, and the values to save if `keep`.
    fn forward(&self, inputs: [&[f32]; N], keep: bool) -> (Buffer, Option<Self::Saved>);

    /// The gradient of each input, from the gradient of the output.
    fn backward(
        &self,
        inputs: [&[f32]; N],
        output: &[f32],
        saved: &Self::Saved,
        gradient: &[f32],
    ) -> [Buffer; N];
}

/// Whether a tensor is in `f32` on the CPU backend, tracked by autodiff or not.
pub(crate) fn is_flex_f32<const D: usize>(tensor: &Tensor<D>) -> bool {
    tensor.dtype() == DType::F32 && is_on_cpu(tensor)
}

/// Whether a tensor is on the CPU backend, tracked by autodiff or not.
pub(crate) fn is_on_cpu<const D: usize>(tensor: &Tensor<D>) -> bool {
    is_flex(&tensor.clone().into_dispatch().kind)
}

fn is_flex(kind: &DispatchTensorKind) -> bool {
    match kind {
        DispatchTensorKind::Flex(_) => true,
        DispatchTensorKind::Autodiff(inner) => is_flex(inner),
        #[allow(unreachable_patterns)] // the other backends are features of burn
        _ => false,
    }
}

/// A `u8` tensor on the CPU backend, contiguous; `None` for any other tensor.
pub(crate) fn flex_u8<const D: usize>(tensor: Tensor<D, Int>) -> Option<FlexTensor> {
    match tensor.into_dispatch().kind {
        DispatchTensorKind::Flex(BackendTensor::Int(ints)) if ints.dtype() == DType::U8 => {
            Some(ints.to_contiguous())
        }
        _ => None,
    }
}

/// The elements of a tensor from [`flex_u8`].
pub(crate) fn bytes(tensor: &FlexTensor) -> &[u8] {
    tensor.as_slice().expect("contiguous u8")
}

fn floats(tensor: &FlexTensor) -> &[f32] {
    tensor.as_slice().expect("contiguous f32")
}

/// Runs a fused operation on tensors that all satisfy [`is_flex_f32`], and records it for the
/// backward pass if any of them is on an autodiff device.
pub(crate) fn apply<const N: usize, const D: usize, F: Fused<N>>(
    operation: F,
    inputs: [DispatchTensor; N],
    shape: [usize; D],
) -> Tensor<D> {
    use GradientCheckpointingStrategy::{Balanced, Disabled};
    let context = inputs
        .iter()
        .fold(DispatchAutodiffContext::Disabled, |context, input| context.merge(input.autodiff));
    let output = match context {
        DispatchAutodiffContext::Disabled => {
            let inputs = inputs.map(|input| untracked(input).to_contiguous());
            wrap::<Flex>(forward(&operation, &inputs, shape, false).0)
        }
        DispatchAutodiffContext::Enabled(Disabled) => {
            wrap::<Autodiff<Flex>>(record::<N, D, F, NoCheckpointing>(operation, inputs, shape))
        }
        DispatchAutodiffContext::Enabled(Balanced) => {
            let output = record::<N, D, F, BalancedCheckpointing>(operation, inputs, shape);
            wrap::<Autodiff<Flex, BalancedCheckpointing>>(output)
        }
    };
    Tensor::from_dispatch(output)
}

/// Computes the output, and puts the operation on the tape if an input is tracked.
fn record<const N: usize, const D: usize, F: Fused<N>, C: CheckpointStrategy>(
    operation: F,
    inputs: [DispatchTensor; N],
    shape: [usize; D],
) -> Tracked {
    let inputs = inputs.map(tracked);
    let guards = inputs.each_ref().map(Tracked::node);
    let inputs = inputs.map(|input| input.into_primitive().to_contiguous());
    match FusedStep::<F>(PhantomData).prepare::<C>(guards).compute_bound().stateful() {
        OpsKind::Tracked(step) => {
            let (output, saved) = forward(&operation, &inputs, shape, true);
            let record = Record { operation, inputs, output: output.clone(), saved };
            step.finish(FusedState(Arc::new(record)), output)
        }
        OpsKind::UnTracked(step) => step.finish(forward(&operation, &inputs, shape, false).0),
    }
}

/// The output, and the saved values if `keep`.
fn forward<const N: usize, const D: usize, F: Fused<N>>(
    operation: &F,
    inputs: &[FlexTensor; N],
    shape: [usize; D],
    keep: bool,
) -> (FlexTensor, Option<F::Saved>) {
    let (output, saved) = if shape.contains(&0) {
        (Buffer::new(0), None)
    } else {
        operation.forward(inputs.each_ref().map(floats), keep)
    };
    (primitive(output, shape), saved)
}

/// A fused operation on the tape.
struct FusedStep<F>(PhantomData<fn() -> F>);

/// Values that a step keeps until the backward pass.
struct Record<F: Fused<N>, const N: usize> {
    operation: F,
    inputs: [FlexTensor; N],
    output: FlexTensor,
    /// `None` if the output has no elements.
    saved: Option<F::Saved>,
}

struct FusedState<F: Fused<N>, const N: usize>(Arc<Record<F, N>>);

impl<F: Fused<N>, const N: usize> Backward<Flex, N> for FusedStep<F> {
    type State = FusedState<F, N>;

    fn backward(
        self,
        ops: Ops<Self::State, N>,
        gradients: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = gradients.consume::<Flex>(&ops.node).to_contiguous();
        let record = &ops.state.0;
        let inputs = record.inputs.each_ref().map(floats);
        let (output, gradient) = (floats(&record.output), floats(&gradient));
        let by_input = match &record.saved {
            Some(saved) => record.operation.backward(inputs, output, saved, gradient),
            None => inputs.map(|input| Buffer::zeros(input.len())),
        };
        for ((parent, by_input), input) in ops.parents.iter().zip(by_input).zip(&record.inputs) {
            if let Some(parent) = parent {
                let by_input = primitive(by_input, input.layout().shape().clone());
                gradients.register::<Flex>(parent.id, by_input);
            }
        }
    }
}

impl<F> fmt::Debug for FusedStep<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FusedStep({})", std::any::type_name::<F>())
    }
}

impl<F: Fused<N>, const N: usize> fmt::Debug for FusedState<F, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FusedState({:?})", self.0.inputs)
    }
}

impl<F: Fused<N>, const N: usize> Clone for FusedState<F, N> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

fn untracked(tensor: DispatchTensor) -> FlexTensor {
    match tensor.kind {
        DispatchTensorKind::Flex(BackendTensor::Float(tensor)) => tensor,
        kind => unreachable!("{kind:?} has been checked to be on the CPU"),
    }
}

/// The tape's view of a tensor; one without autodiff is a constant.
fn tracked(tensor: DispatchTensor) -> Tracked {
    match tensor.kind {
        DispatchTensorKind::Autodiff(inner) => match *inner {
            DispatchTensorKind::Flex(BackendTensor::Autodiff(tensor)) => tensor,
            kind => unreachable!("{kind:?} has been checked to be on the CPU"),
        },
        DispatchTensorKind::Flex(BackendTensor::Float(tensor)) => Tracked::new(tensor),
        #[allow(unreachable_patterns)] // the other backends are features of burn
        kind => unreachable!("{kind:?} has been checked to be on the CPU"),
    }
}

pub(crate) fn primitive(elements: Buffer, shape: impl Into<Shape>) -> FlexTensor {
    FlexTensor::from_data(TensorData::from_bytes(elements.into_bytes(), shape, DType::F32))
}

fn wrap<B: Backend>(tensor: B::FloatTensorPrimitive) -> DispatchTensor
where
    DispatchTensor: DispatchKindConversion<B>,
{
    DispatchTensor::from_backend(BackendTensor::Float(tensor))
}
