//! The hot operations of the Decision Transformer, each behind one function.
//!
//! Operations have up to three forms, which agree to rounding:
//!
//! - *reference*: plain burn tensors, on any device and any float type. It is the definition, and
//!   the expected result in the tests.
//! - *fused*: on the CPU in `f32`, a hand-written forward and backward pass over slices:
//!   the `gemm` crate for matrix products (one thread each), rayon across frames and
//!   sequences, so that one frame or one sequence stays in cache from start to end.
//! - *kernels*: on a GPU, hand-written forward and backward passes in CubeCL, in `f32` or in half
//!   precision with arithmetic in `f32`. [`attention_block`], [`mlp_block`], [`layer_norm`],
//!   [`dropout()`], [`affine()`], [`embedding()`] and the optimizer have them, with the feature `cuda` or `wgpu`. In mixed
//!   precision of `bf16` on an NVIDIA GPU of compute capability 8.0 or more, the encoder and the
//!   products of the blocks have kernels in CUDA C++ for tensor cores. On other GPUs the encoder
//!   has a form in plain tensors, with products instead of convolutions.
//!
//! The function selects the form: CPU and `f32` give the fused form, a GPU the kernels, everything
//! else the reference. [`Form::Reference`] forces the reference, and [`Form::Mixed`] rounds the
//! factors of matrix products to a half type. In all other forms, the gradient with respect to
//! every float input is exact. Results of the fused form and of the kernels, including gradients,
//! do not depend on the number of threads, and have the same bits in every run.
//!
//! | function | computes |
//! | --- | --- |
//! | [`nature_encoder`] | `u8` frames → one embedding per frame stack |
//! | [`attention_block`] | layer norm, masked self-attention, projection, dropout, residual |
//! | [`fourier_scores()`] | the Fourier integral kernel's scores of queries and keys |
//! | [`fourier_power()`] | the squared amplitude of Fourier series, the basis of densities |
//! | [`mlp_block`] | layer norm, two-layer perceptron, dropout, residual |
//! | [`quantile_huber()`] | the loss of quantile regression, each quantile against each target |
//! | [`relu_layers`](relu_layers()) | affine layers with ReLU between them |
//! | [`affine()`] | an affine layer |
//! | [`embedding()`] | rows of a table |
//! | [`layer_norm`], [`dropout`](dropout()) | each alone |
//! | [`polyak`](polyak()) | targets that follow parameters slowly |
//! | [`stored`] | memory that keeps its place, for steps that a GPU records and replays |
//! | [`AdamWState`] | the optimizer's step with clipping |

mod activation;
pub mod adamw;
mod affine;
mod attention;
mod buffer;
mod dropout;
mod embedding;
mod encoder;
mod flex;
mod form;
mod fourier_power;
pub mod fourier_scores;
#[cfg(feature = "cube")]
mod gpu;
mod mask;
pub mod math;
mod matrix;
mod mlp;
mod norm;
mod outer;
mod partitions;
mod polyak;
mod quantile_huber;
mod queries;
mod relu_layers;
mod rows;
mod scratch;
mod simd;
pub mod stored;

pub use activation::Activation;
pub use adamw::{AdamW, AdamWState, TensorSlot};
pub use affine::affine;
pub use attention::{AttentionOptions, AttentionWeights, Score, TensorScore, attention_block};
pub use dropout::{Dropout, dropout};
pub use embedding::embedding;
pub use encoder::{NatureWeights, nature_encoder};
pub use form::{Form, Half};
pub use fourier_power::fourier_power;
pub use fourier_scores::fourier_scores;
pub use mlp::{MlpWeights, mlp_block};
pub use norm::{LAYER_NORM_EPSILON, layer_norm};
pub use polyak::polyak;
pub use quantile_huber::quantile_huber;
pub use queries::Queries;
pub use relu_layers::{ReluLayer, relu_layers};

/// The README's example, compiled and run with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
