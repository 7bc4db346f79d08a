//! An affine layer on a GPU, with or without ReLU. Small layers have [kernels](crate::gpu::layers) that do
//! the rest with the product. Gradients of weight and bias sum over rows: in large layers burn would do
//! this in few of the device's cores, and [`by_parameters_of_layer`] cuts the rows into parts.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::fusion::custom::TensorSpec;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, DType, Dispatch, Shape, TensorMetadata, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;

use crate::activation::Activation;
use crate::gpu::affine::{self, by_parameters_of_layer};
use crate::gpu::epilogues::times_slope;
use crate::gpu::layers::{self, is_small};
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

/// Its gradients. Through ReLU, `active` is the layer's result, else any tensor.
#[backend_extension(Cube, Fusion)]
trait CubeAffineGradients: Backend {
    /// Of a large layer: the gradient of the product, through ReLU.
    #[fusion(meta = |by_active, _active| by_active.clone())]
    fn cube_affine_by_product(
        by_active: FloatTensor<Self>,
        active: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    #[fusion(meta = |by_out, _active, weight, _has_relu| matrix(by_out.shape[0], weight.shape[0]))]
    fn cube_affine_by_rows(
        by_out: FloatTensor<Self>,
        active: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        has_relu: bool,
    ) -> FloatTensor<Self>;

    #[fusion(meta = |x, by_out, _active, _has_relu| {
        let n_out = by_out.shape[1];
        (matrix(x.shape[1], n_out), TensorSpec::new(Shape::new([n_out]), DType::F32))
    })]
    fn cube_affine_by_parameters(
        x: FloatTensor<Self>,
        by_out: FloatTensor<Self>,
        active: FloatTensor<Self>,
        has_relu: bool,
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
        if is_small(x.shape().dims(), bias.shape().num_elements()) {
            layers::forward(&x, &weight, &bias, has_relu)
        } else if has_relu {
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
        active: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        has_relu: bool,
    ) -> FloatTensor<Self> {
        let [by_out, active, weight] = [by_out, active, weight].map(into_contiguous);
        if is_small(by_out.shape().dims(), weight.shape()[0]) {
            layers::by_rows(&by_out, has_relu.then_some(&active), &weight)
        } else {
            affine::by_rows(&by_out, &weight)
        }
    }

    fn cube_affine_by_parameters(
        x: FloatTensor<Self>,
        by_out: FloatTensor<Self>,
        active: FloatTensor<Self>,
        has_relu: bool,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let [x, by_out, active] = [x, by_out, active].map(into_contiguous);
        let gradients = if is_small(x.shape().dims(), by_out.shape()[1]) {
            layers::by_parameters(&x, &by_out, has_relu.then_some(&active))
        } else {
            by_parameters_of_layer(&x, &by_out)
        };
        gradients.into()
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
                let n_in = x.shape()[1];
                Gradient::<B>::of(by_out, active, n_in).by_parameters(x).into()
            });
        }
        if !weight.is_tracked() && !bias.is_tracked() {
            let [weight, bias] = [weight, bias].map(|constant| constant.into_primitive());
            let forward = |[x]: [FloatTensor<B>; 1]| {
                let (out, active) = run(&x, &weight, bias);
                (out, (weight, active))
            };
            return tape::apply::<B, C, _, 1>([x], forward, |(weight, active), by_out| {
                let n_in = weight.shape()[0];
                [Gradient::<B>::of(by_out, active, n_in).by_rows(weight)]
            });
        }
        let forward = |[x, weight, bias]: [FloatTensor<B>; 3]| {
            let (out, active) = run(&x, &weight, bias);
            (out, (x, weight, active))
        };
        tape::apply::<B, C, _, 3>([x, weight, bias], forward, |(x, weight, active), by_out| {
            let n_in = x.shape()[1];
            let gradient = Gradient::<B>::of(by_out, active, n_in);
            let (by_weight, by_bias) = gradient.by_parameters(x);
            [gradient.by_rows(weight), by_weight, by_bias]
        })
    }
}

/// The gradient of a layer's result, and the result of ReLU if the gradient goes through it.
struct Gradient<B: Backend> {
    by_out: FloatTensor<B>,
    active: Option<FloatTensor<B>>,
}

impl<B: CubeAffineGradients> Gradient<B> {
    /// Through ReLU, if a large layer has it.
    fn of(by_out: FloatTensor<B>, active: Option<FloatTensor<B>>, n_in: usize) -> Self {
        let [rows, n_out] = by_out.shape().dims();
        match active {
            Some(active) if !is_small([rows, n_in], n_out) => {
                Self { by_out: B::cube_affine_by_product(by_out, active), active: None }
            }
            active => Self { by_out, active },
        }
    }

    fn by_rows(&self, weight: FloatTensor<B>) -> FloatTensor<B> {
        let (by_out, active, has_relu) = self.parts();
        B::cube_affine_by_rows(by_out, active, weight, has_relu)
    }

    fn by_parameters(&self, x: FloatTensor<B>) -> (FloatTensor<B>, FloatTensor<B>) {
        let (by_out, active, has_relu) = self.parts();
        B::cube_affine_by_parameters(x, by_out, active, has_relu)
    }

    fn parts(&self) -> (FloatTensor<B>, FloatTensor<B>, bool) {
        let active = self.active.as_ref().unwrap_or(&self.by_out);
        (self.by_out.clone(), active.clone(), self.active.is_some())
    }
}
