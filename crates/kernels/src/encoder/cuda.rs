//! The encoder on an NVIDIA GPU: one operation forward, one backward, on tensor cores.
//!
//! Kernels in CUDA C++ read the bytes of the frames and write factors of the next products: `bf16`,
//! or in [`Form::Auto`] `f32` with the precision of TF32, in which burn computes products of `f32`
//! too. Sums, biases, the embedding and all gradients by parameters are `f32`. A convolution is a product whose left matrix, the
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
//! The outputs of the layers are kept, and the weights as factors.

mod passes;

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::fusion::custom::TensorSpec;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Autodiff, Backend, DType, Dispatch, ExtensionType, backend_extension};
use burn::tensor::{Int, Shape, Tensor};
use burn_cubecl::CubeBackend;

use super::{FLAT, NatureWeights, STACK};
use crate::gpu::products::{fits, is_possible_on};
use crate::gpu::sources::Factor;
use crate::gpu::tape;
use crate::{Form, Half};

/// The factors with which the operation can embed these frames: bytes and `f32` parameters on an
/// NVIDIA GPU, and a form with factors of `bf16` or `f32`.
pub(super) fn factor(
    frames: &Tensor<4, Int>,
    weights: &NatureWeights,
    form: Form,
) -> Option<Factor> {
    let factor = match form {
        Form::Auto => Factor::Tf32,
        Form::Mixed(Half::Bf16) => Factor::Bf16,
        Form::Reference | Form::Mixed(Half::F16) => return None,
    };
    let [sequences, length, _, _] = frames.dims();
    let stacks = sequences * (length + 1 - STACK);
    let [_, d] = weights.linear_weight.dims();
    // Parameters have one type.
    let is_f32 = weights.linear_weight.dtype() == DType::F32;
    let is_possible = frames.dtype() == DType::U8
        && is_f32
        && fits(passes::PLACES[0] * stacks, d, FLAT)
        && is_possible_on(&frames.device());
    is_possible.then_some(factor)
}

/// The embeddings, with factors from [`factor`]: `[sequences, t + 3, 84, 84]` →
/// `[sequences * t, d]`.
pub(super) fn encode(frames: Tensor<4, Int>, weights: NatureWeights, factor: Factor) -> Tensor<2> {
    let parameters = Parameters::new(weights.inputs());
    Tensor::from_dispatch(Dispatch::cuda_encoder(parameters, frames.into_dispatch(), factor))
}

/// The parameters, or their gradients, in the order of [`NatureWeights`].
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion)]
struct Parameters<B: Backend>(
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
    FloatTensor<B>,
);

impl<B: Backend> Parameters<B> {
    fn new([w1, b1, w2, b2, w3, b3, w4, b4]: [FloatTensor<B>; 8]) -> Self {
        Self(w1, b1, w2, b2, w3, b3, w4, b4)
    }

    fn into_array(self) -> [FloatTensor<B>; 8] {
        let Self(w1, b1, w2, b2, w3, b3, w4, b4) = self;
        [w1, b1, w2, b2, w3, b3, w4, b4]
    }
}

/// The embedding, and the values that the backward pass needs.
#[derive(ExtensionType, Clone, Debug)]
#[extension_type(fusion)]
struct Layers<B: Backend> {
    /// `[n, d]`, `f32`.
    embedding: FloatTensor<B>,
    /// `[n, 10 * 10 * 2 * 2 * 32]`; this and all following are factors.
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
    #[fusion(meta = |parameters, frames, factor| layers_of(parameters, frames, factor).embedding)]
    fn cuda_encoder(
        #[extension_type] parameters: Parameters<Self>,
        frames: IntTensor<Self>,
        factor: Factor,
    ) -> FloatTensor<Self>;
}

/// The passes.
#[backend_extension(Cube, Fusion)]
trait CudaEncoderPasses: Backend {
    #[fusion(meta = layers_of)]
    fn cuda_encoder_forward(
        #[extension_type] parameters: Parameters<Self>,
        frames: IntTensor<Self>,
        factor: Factor,
    ) -> Layers<Self>;

    #[fusion(meta = |parameters, _layers, _frames, _by_embedding, _factor| parameters.clone())]
    fn cuda_encoder_backward(
        #[extension_type] parameters: Parameters<Self>,
        #[extension_type] layers: Layers<Self>,
        frames: IntTensor<Self>,
        by_embedding: FloatTensor<Self>,
        factor: Factor,
    ) -> Parameters<Self>;
}

fn layers_of(
    parameters: &ParametersMetadata,
    frames: &TensorSpec,
    factor: &Factor,
) -> LayersMetadata {
    let [sequences, length, _, _] = frames.shape.dims();
    let ParametersMetadata(.., linear_weight, _) = parameters;
    let [_, d] = linear_weight.shape.dims();
    let n = sequences * (length + 1 - STACK);
    let factors = |shape: [usize; 2]| TensorSpec::new(Shape::new(shape), factor.dtype());
    let [conv1, conv2, conv3] = passes::WIDTHS.map(|width| factors([n, width]));
    let [conv2_weight, conv3_weight] = passes::CONVOLUTIONS.map(factors);
    LayersMetadata {
        embedding: TensorSpec::new(Shape::new([n, d]), DType::F32),
        conv1,
        conv2,
        conv3,
        conv2_weight,
        conv3_weight,
        linear_weight: factors([FLAT, d]),
    }
}

impl CudaEncoder for CubeBackend {
    fn cuda_encoder(
        parameters: Parameters<Self>,
        frames: IntTensor<Self>,
        factor: Factor,
    ) -> FloatTensor<Self> {
        passes::forward(parameters, frames, factor).embedding
    }
}

impl CudaEncoderPasses for CubeBackend {
    fn cuda_encoder_forward(
        parameters: Parameters<Self>,
        frames: IntTensor<Self>,
        factor: Factor,
    ) -> Layers<Self> {
        passes::forward(parameters, frames, factor)
    }

    fn cuda_encoder_backward(
        parameters: Parameters<Self>,
        layers: Layers<Self>,
        frames: IntTensor<Self>,
        by_embedding: FloatTensor<Self>,
        factor: Factor,
    ) -> Parameters<Self> {
        passes::backward(parameters, &layers, frames, by_embedding, factor)
    }
}

impl<B: CudaEncoderPasses, C: CheckpointStrategy> CudaEncoder for Autodiff<B, C> {
    fn cuda_encoder(
        parameters: Parameters<Self>,
        frames: IntTensor<Self>,
        factor: Factor,
    ) -> FloatTensor<Self> {
        let forward = |parameters| {
            let parameters = Parameters::new(parameters);
            let layers = B::cuda_encoder_forward(parameters.clone(), frames.clone(), factor);
            (layers.embedding.clone(), (parameters, layers, frames, factor))
        };
        let backward = |(parameters, layers, frames, factor), by_embedding| {
            B::cuda_encoder_backward(parameters, layers, frames, by_embedding, factor).into_array()
        };
        tape::apply::<B, C, _, 8>(parameters.into_array(), forward, backward)
    }
}
