//! One affine layer.

use burn::{
    module::{Module, Param},
    tensor::Tensor,
};
use overtone_kernels::{ReluLayer, affine};

use crate::parameters::init::Init;

/// `x W + b`.
#[derive(Module, Debug)]
pub struct Affine {
    /// `[in, out]`
    pub weight: Param<Tensor<2>>,
    /// `[out]`
    pub bias: Param<Tensor<1>>,
}

impl Affine {
    /// PyTorch's default for a linear layer `[in, out]`, U(±1/√in) for weights and biases.
    pub fn init(shape: [usize; 2], init: &mut Init<'_>) -> Self {
        let (weight, bias) = init.linear(shape);
        Self { weight, bias }
    }

    /// This layer as a layer of [`relu_layers`](overtone_kernels::relu_layers), with weight and
    /// bias of its norm.
    pub fn relu_layer(&self, norm: Option<[Tensor<1>; 2]>) -> ReluLayer {
        ReluLayer { weight: self.weight.val(), bias: self.bias.val(), norm }
    }

    /// # Shapes
    /// - `x`: `[rows, in]`; result `[rows, out]`
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        affine(x, self.weight.val(), self.bias.val())
    }
}

/// `x W + b`, or `tanh` of it.
#[derive(Module, Debug)]
pub struct Squashed {
    /// `[in, out]`
    pub weight: Param<Tensor<2>>,
    /// `[out]`
    pub bias: Param<Tensor<1>>,
    /// Whether the result goes through tanh.
    #[module(skip)]
    pub tanh: bool,
}

impl Squashed {
    /// PyTorch's default for a linear layer `[in, out]`, as in the reference.
    pub fn init(shape: [usize; 2], tanh: bool, init: &mut Init<'_>) -> Self {
        let (weight, bias) = init.linear(shape);
        Self { weight, bias, tanh }
    }

    /// # Shapes
    /// - `x`: `[rows, in]`; result `[rows, out]`
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let y = affine(x, self.weight.val(), self.bias.val());
        if self.tanh { y.tanh() } else { y }
    }
}
