//! An affine layer on a GPU, and ReLU in the launch that adds the bias. Gradients of weight and bias sum
//! over rows: burn would do this in few of the device's cores, [`by_parameters_of_layer`] cuts the rows
//! into parts.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::fusion::custom::TensorSpec;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, DType, Dispatch, Shape, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;

use crate::activation::Activation;
use crate::gpu::affine::{self, by_parameters_of_layer};
use crate::gpu::epilogues::times_slope;
use crate::gpu::{is_on_gpu, tape};

/// Whether the operation can compute this layer.
pub(super) fn is_possible(x: &Tensor<2>, weight: &Tensor<2>, bias: &Tensor<1>) -> bool {
    let ([rows, n_in], [_, n_out]) = (x.dims(), weight.dims());
    let dtypes = [x.dtype(), weight.dtype(), bias.dtype()];
    is_on_gpu(x) && dtypes == [DType::F32; 3] && rows * n_in * n_out > 0
}

/// The layer, for which [`is_possible`] holds, and ReLU of its result if `has_relu`.
pub(super) fn affine(
    x: Tensor<2>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    has_relu: bool,
) -> Tensor<2> {
    let (x, weight, bias) = (x.into_dispatch(), weight.into_dispatch(), bias.into_dispatch());
    Tensor::from_dispatch(Dispatch::cube_affine(x, weight, bias, has_relu))
}

/// The extension of burn: the layer, with support for autodiff.
#[backend_extension(Cube, Autodiff, Fusion)]
trait CubeAffine: Backend {
    #[fusion(meta = |x, weight, _bias, _has_relu| matrix(x.shape[0], weight.shape[1]))]
    fn cube_affine(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        has_relu: bool,
    ) -> FloatTensor<Self>;
}

/// Its gradients.
#[backend_extension(Cube, Fusion)]
trait CubeAffineGradients: Backend {
    /// Through ReLU, whose result is `active`.
    #[fusion(meta = |by_active, _active| by_active.clone())]
    fn cube_affine_by_product(
        by_active: FloatTensor<Self>,
        active: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    #[fusion(meta = |by_out, weight| matrix(by_out.shape[0], weight.shape[0]))]
    fn cube_affine_by_rows(
        by_out: FloatTensor<Self>,
        weight: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    #[fusion(meta = |x, by_out| {
        let n_out = by_out.shape[1];
        (matrix(x.shape[1], n_out), TensorSpec::new(Shape::new([n_out]), DType::F32))
    })]
    fn cube_affine_by_parameters(
        x: FloatTensor<Self>,
        by_out: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
}

fn matrix(rows: usize, columns: usize) -> TensorSpec {
    TensorSpec::new(Shape::new([rows, columns]), DType::F32)
}

impl CubeAffine for CubeBackend {
    fn cube_affine(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        has_relu: bool,
    ) -> FloatTensor<Self> {
        let [x, weight, bias] = [x, weight, bias].map(into_contiguous);
        if has_relu {
            affine::affine_relu(&x, &weight, bias)
        } else {
            affine::affine(&x, &weight, bias)
        }
    }
}

impl CubeAffineGradients for CubeBackend {
    fn cube_affine_by_product(
        by_active: FloatTensor<Self>,
        active: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        times_slope(&into_contiguous(by_active), active, Activation::Relu)
    }

    fn cube_affine_by_rows(
        by_out: FloatTensor<Self>,
        weight: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let [by_out, weight] = [by_out, weight].map(into_contiguous);
        affine::by_rows(&by_out, &weight)
    }

    fn cube_affine_by_parameters(
        x: FloatTensor<Self>,
        by_out: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let [x, by_out] = [x, by_out].map(into_contiguous);
        by_parameters_of_layer(&x, &by_out).into()
    }
}

impl<B: CubeAffine + CubeAffineGradients, C: CheckpointStrategy> CubeAffine for Autodiff<B, C> {
    fn cube_affine(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        has_relu: bool,
    ) -> FloatTensor<Self> {
        let run = |x: &FloatTensor<B>, weight: &FloatTensor<B>, bias| {
            let out = B::cube_affine(x.clone(), weight.clone(), bias, has_relu);
            (out.clone(), has_relu.then_some(out))
        };
        if !x.is_tracked() {
            let x = x.into_primitive();
            let forward = |[weight, bias]: [FloatTensor<B>; 2]| {
                let (out, active) = run(&x, &weight, bias);
                (out, (x, active))
            };
            return tape::apply::<B, C, _, 2>([weight, bias], forward, |(x, active), by_out| {
                B::cube_affine_by_parameters(x, by_product::<B>(by_out, active)).into()
            });
        }
        if !weight.is_tracked() && !bias.is_tracked() {
            let [weight, bias] = [weight, bias].map(|constant| constant.into_primitive());
            let forward = |[x]: [FloatTensor<B>; 1]| {
                let (out, active) = run(&x, &weight, bias);
                (out, (weight, active))
            };
            return tape::apply::<B, C, _, 1>([x], forward, |(weight, active), by_out| {
                [B::cube_affine_by_rows(by_product::<B>(by_out, active), weight)]
            });
        }
        let forward = |[x, weight, bias]: [FloatTensor<B>; 3]| {
            let (out, active) = run(&x, &weight, bias);
            (out, (x, weight, active))
        };
        tape::apply::<B, C, _, 3>([x, weight, bias], forward, |(x, weight, active), by_out| {
            let by_product = by_product::<B>(by_out, active);
            let (by_weight, by_bias) = B::cube_affine_by_parameters(x, by_product.clone());
            [B::cube_affine_by_rows(by_product, weight), by_weight, by_bias]
        })
    }
}

/// The gradient of `x W + b` from the gradient of a layer's result, which is `active` after ReLU.
fn by_product<B: CubeAffineGradients>(
    by_out: FloatTensor<B>,
    active: Option<FloatTensor<B>>,
) -> FloatTensor<B> {
    match active {
        Some(active) => B::cube_affine_by_product(by_out, active),
        None => by_out,
    }
}
