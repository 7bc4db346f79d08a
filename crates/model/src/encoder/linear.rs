//! One affine layer on a vector observation.

use burn::{
    module::{Module, Param, ParamId},
    tensor::Tensor,
};
use overtone_kernels::add_bias;

use crate::{init::Init, matrices::Matrices};

/// `o W + b`, or `tanh` of it.
#[derive(Module, Debug)]
pub struct LinearEncoder {
    /// `[width, d_model]`
    pub weight: Param<Tensor<2>>,
    /// `[d_model]`
    pub bias: Param<Tensor<1>>,
    /// Whether the result goes through tanh.
    #[module(skip)]
    pub tanh: bool,
}

impl Matrices for LinearEncoder {
    fn matrices(&self) -> Vec<ParamId> {
        vec![self.weight.id]
    }
}

impl LinearEncoder {
    /// PyTorch's default for a linear layer.
    pub fn init(width: usize, d_model: usize, tanh: bool, init: &mut Init<'_>) -> Self {
        let (weight, bias) = init.linear([width, d_model]);
        Self { weight, bias, tanh }
    }

    /// # Shapes
    /// - `observations`: `[rows, width]`; result `[rows, d_model]`
    pub fn forward(&self, observations: Tensor<2>) -> Tensor<2> {
        let embedded = add_bias(observations.matmul(self.weight.val()), self.bias.val());
        if self.tanh { embedded.tanh() } else { embedded }
    }
}
