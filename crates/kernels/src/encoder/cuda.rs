//! The encoder on an NVIDIA GPU: one operation forward, one backward, on tensor cores.
//!
//! Kernels in CUDA C++ read the bytes of the frames and write `bf16`. Sums, biases, the embedding
//! and all gradients by parameters are `f32`. A convolution is a product whose left matrix, the
//! pixels under the kernel, is read from the image itself. The first one has its result in blocks of
//! 2 × 2 places, so that the second, 4 × 4 with stride 2, is 2 × 2 with stride 1 over 128 channels.
//!
//! With `aᵢ = ReLU(aᵢ₋₁ * Wᵢ + bᵢ)`, frames `a₀` and the embedding `y = tanh(a₃ W₄ + b₄)`.
//! **Backward**, given `g` by `y`:
//!
//! - `g₄ = g (1 − y²)`, `g₃ = g₄ W₄ᵀ ⊙ [a₃ > 0]`
//! - `dWᵢ = columns(aᵢ₋₁)ᵀ gᵢ`, `dbᵢ = Σ gᵢ`
//! - `gᵢ₋₁` at a place is the sum over the kernel's elements of `gᵢ Wᵢᵀ` at the place that the
//!   element takes it to, `⊙ [aᵢ₋₁ > 0]`
//!
//! The outputs of the layers are kept, and the weights in `bf16`.

mod passes;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::fusion::custom::TensorSpec;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Autodiff, Backend, DType, Dispatch, ExtensionType, backend_extension};
use burn::tensor::{Int, Shape, Tensor};
use burn_cubecl::CubeBackend;

use super::{FLAT, NatureWeights, STACK};
use crate::gpu::products::{fits, is_possible_on};
use crate::{Form, Half};

/// Whether the operation can embed these frames: bytes and `f32` parameters on an NVIDIA GPU, with
/// products of `bf16`.
pub(super) fn is_possible(frames: &Tensor<4, Int>, weights: &NatureWeights, form: Form) -> bool {
    let [sequences, length, _, _] = frames.dims();
    let stacks = sequences * (length + 1 - STACK);
    let [_, d] = weights.linear_weight.dims();
    // Parameters have one type.
    let is_f32 = weights.linear_weight.dtype() == DType::F32;
    form == Form::Mixed(Half::Bf16)
        && frames.dtype() == DType::U8
        && is_f32
        && fits(passes::PLACES[0] * stacks, d, FLAT)
        && is_possible_on(&frames.device())
}

/// The embeddings, where [`is_possible`] holds: `[sequences, t + 3, 84, 84]` → `[sequences * t, d]`.
pub(super) fn encode(frames: Tensor<4, Int>, weights: NatureWeights) -> Tensor<2> {
    let parameters = Parameters::new(weights.inputs());
    Tensor::from_dispatch(Dispatch::cuda_encoder(parameters, frames.into_dispatch()))
}

/// The parameters, or their gradients.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion)]
struct Parameters<B: Backend> {
    conv1_weight: FloatTensor<B>,
    conv1_bias: FloatTensor<B>,
    conv2_weight: FloatTensor<B>,
    conv2_bias: FloatTensor<B>,
    conv3_weight: FloatTensor<B>,
    conv3_bias: FloatTensor<B>,
    linear_weight: FloatTensor<B>,
    linear_bias: FloatTensor<B>,
}

impl<B: Backend> Parameters<B> {
    /// In the order of their declaration.
    fn new(parameters: [FloatTensor<B>; 8]) -> Self {
        let [
            conv1_weight,
            conv1_bias,
            conv2_weight,
            conv2_bias,
            conv3_weight,
            conv3_bias,
            linear_weight,
            linear_bias,
        ] = parameters;
        Self {
            conv1_weight,
            conv1_bias,
            conv2_weight,
            conv2_bias,
            conv3_weight,
            conv3_bias,
            linear_weight,
            linear_bias,
        }
    }

    fn into_array(self) -> [FloatTensor<B>; 8] {
        [
            self.conv1_weight,
            self.conv1_bias,
            self.conv2_weight,
            self.conv2_bias,
            self.conv3_weight,
            self.conv3_bias,
            self.linear_weight,
            self.linear_bias,
        ]
    }
}

/// The embedding, and the values that the backward pass needs.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion)]
struct Layers<B: Backend> {
    /// `[n, d]`, `f32`.
    embedding: FloatTensor<B>,
    /// `[n, 10 * 10 * 2 * 2 * 32]`; these and all following are `bf16`.
    conv1: FloatTensor<B>,
    /// `[n, 9 * 9 * 64]`
    conv2: FloatTensor<B>,
    /// `[n, 7 * 7 * 64]`
    conv3: FloatTensor<B>,
    /// `[2 * 2 * 128, 64]`
    conv2_weight: FloatTensor<B>,
    /// `[3 * 3 * 64, 64]`
    conv3_weight: FloatTensor<B>,
    /// `[7 * 7 * 64, d]`
    linear_weight: FloatTensor<B>,
}

/// The extension of burn: the embedding, with support for autodiff.
#[backend_extension(Cube, Autodiff, Fusion)]
trait CudaEncoder: Backend {
    #[fusion(meta = |parameters, frames| layers_of(parameters, frames).embedding)]
    fn cuda_encoder(
        #[extension_type] parameters: Parameters<Self>,
        frames: IntTensor<Self>,
    ) -> FloatTensor<Self>;
}

/// The passes.
#[backend_extension(Cube, Fusion)]
trait CudaEncoderPasses: Backend {
    #[fusion(meta = layers_of)]
    fn cuda_encoder_forward(
        #[extension_type] parameters: Parameters<Self>,
        frames: IntTensor<Self>,
    ) -> Layers<Self>;

    #[fusion(meta = |parameters, _layers, _frames, _by_embedding| parameters.clone())]
    fn cuda_encoder_backward(
        #[extension_type] parameters: Parameters<Self>,
        #[extension_type] layers: Layers<Self>,
        frames: IntTensor<Self>,
        by_embedding: FloatTensor<Self>,
    ) -> Parameters<Self>;
}

fn layers_of(parameters: &ParametersMetadata, frames: &TensorSpec) -> LayersMetadata {
    let [sequences, length, _, _] = frames.shape.dims();
    let [_, d] = parameters.linear_weight.shape.dims();
    let n = sequences * (length + 1 - STACK);
    let half = |shape: [usize; 2]| TensorSpec::new(Shape::new(shape), DType::BF16);
    let [conv1, conv2, conv3] = passes::WIDTHS.map(|width| half([n, width]));
    let [conv2_weight, conv3_weight] = passes::CONVOLUTIONS.map(half);
    LayersMetadata {
        embedding: TensorSpec::new(Shape::new([n, d]), DType::F32),
        conv1,
        conv2,
        conv3,
        conv2_weight,
        conv3_weight,
        linear_weight: half([FLAT, d]),
    }
}

impl CudaEncoder for CubeBackend {
    fn cuda_encoder(parameters: Parameters<Self>, frames: IntTensor<Self>) -> FloatTensor<Self> {
        passes::forward(parameters, frames).embedding
    }
}

impl CudaEncoderPasses for CubeBackend {
    fn cuda_encoder_forward(parameters: Parameters<Self>, frames: IntTensor<Self>) -> Layers<Self> {
        passes::forward(parameters, frames)
    }

    fn cuda_encoder_backward(
        parameters: Parameters<Self>,
        layers: Layers<Self>,
        frames: IntTensor<Self>,
        by_embedding: FloatTensor<Self>,
    ) -> Parameters<Self> {
        passes::backward(&parameters, &layers, frames, by_embedding)
    }
}

impl<B: CudaEncoder + CudaEncoderPasses, C: CheckpointStrategy> CudaEncoder for Autodiff<B, C> {
    fn cuda_encoder(parameters: Parameters<Self>, frames: IntTensor<Self>) -> FloatTensor<Self> {
        let parameters = parameters.into_array();
        let nodes = parameters.each_ref().map(|parameter| parameter.node());
        let parameters = Parameters::new(parameters.map(|parameter| parameter.into_primitive()));
        match EncoderStep.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(step) => {
                let layers = B::cuda_encoder_forward(parameters.clone(), frames.clone());
                let embedding = layers.embedding.clone();
                step.finish(EncoderState { parameters, layers, frames }, embedding)
            }
            OpsKind::UnTracked(step) => step.finish(B::cuda_encoder(parameters, frames)),
        }
    }
}

/// The encoder on the tape.
#[derive(Debug)]
struct EncoderStep;

/// Everything that the backward pass needs except the gradient.
#[derive(Clone, Debug)]
struct EncoderState<B: Backend> {
    parameters: Parameters<B>,
    layers: Layers<B>,
    frames: IntTensor<B>,
}

impl<B: CudaEncoderPasses> Backward<B, 8> for EncoderStep {
    type State = EncoderState<B>;

    fn backward(
        self,
        ops: Ops<Self::State, 8>,
        gradients: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let by_embedding = gradients.consume::<B>(&ops.node);
        let EncoderState { parameters, layers, frames } = ops.state;
        let by = B::cuda_encoder_backward(parameters, layers, frames, by_embedding);
        for (parent, by) in ops.parents.into_iter().zip(by.into_array()) {
            if let Some(parent) = parent {
                gradients.register::<B>(parent.id, by);
            }
        }
    }
}
