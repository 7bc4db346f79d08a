//! Heads that predict one number for each dimension, trained by squared error. The pointwise head
//! is one affine layer, which can only learn the mean of its targets (the regression baseline of
//! Gillman et al. 2025, Table 6). The tanh head is its `tanh`, the deterministic head of the
//! Decision Transformer for continuous actions (Chen et al. 2021).

use burn::{
    module::{Module, Param, ParamId},
    tensor::Tensor,
};
use overtone_kernels::add_bias;

use super::{HeadLoss, Marginals, NumbersOptions, OnNumbers, Points, mean_squared_error, read};
use crate::{init::Init, matrices::Matrices};

options! {
    /// The pointwise head has no options.
    #[derive(Copy)]
    pub struct PointwiseConfig {}
}

options! {
    /// The tanh head has no options.
    #[derive(Copy)]
    pub struct TanhConfig {}
}

impl NumbersOptions for PointwiseConfig {
    type Head = PointwiseHead;

    fn init(&self, d_model: usize, width: usize, init: &mut Init<'_>) -> PointwiseHead {
        PointwiseHead::init(d_model, width, false, init)
    }
}

impl NumbersOptions for TanhConfig {
    type Head = PointwiseHead;

    fn init(&self, d_model: usize, width: usize, init: &mut Init<'_>) -> PointwiseHead {
        PointwiseHead::init(d_model, width, true, init)
    }
}

/// `y = x W + b`, or `tanh` of it, in (-1, 1).
#[derive(Module, Debug)]
pub struct PointwiseHead {
    /// `[d_model, dimensions]`
    pub weight: Param<Tensor<2>>,
    /// `[dimensions]`
    pub bias: Param<Tensor<1>>,
    /// Whether the result goes through tanh.
    #[module(skip)]
    pub tanh: bool,
}

impl Matrices for PointwiseHead {
    fn matrices(&self) -> Vec<ParamId> {
        vec![self.weight.id]
    }
}

impl PointwiseHead {
    /// PyTorch's default for a linear layer, U(±1/√d_model) for weights and biases, as in the
    /// reference.
    fn init(d_model: usize, width: usize, tanh: bool, init: &mut Init<'_>) -> Self {
        let (weight, bias) = init.linear([d_model, width]);
        Self { weight, bias, tanh }
    }

    /// # Shapes
    /// - `hidden`: `[rows, d_model]`; result `[rows, dimensions]`
    pub fn forward(&self, hidden: Tensor<2>) -> Tensor<2> {
        let numbers = add_bias(hidden.matmul(self.weight.val()), self.bias.val());
        if self.tanh { numbers.tanh() } else { numbers }
    }
}

impl OnNumbers for PointwiseHead {
    fn width(&self) -> usize {
        self.bias.dims()[0]
    }

    /// Squared error, averaged over dimensions.
    fn loss(&self, hidden: Tensor<2>, targets: Tensor<2>) -> HeadLoss {
        mean_squared_error(self.forward(hidden), targets)
    }

    fn marginals(&self, hidden: Tensor<2>) -> Box<dyn Marginals> {
        Box::new(Points(read(self.forward(hidden))))
    }
}
