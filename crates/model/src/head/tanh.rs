//! The deterministic head of the Decision Transformer on real-valued actions (Chen et al.
//! 2021): `tanh` of one affine layer, trained by squared error.

use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor},
};
use overtone_core::seed::Generator;

use super::{HeadLoss, mean_squared_error};
use crate::init;

/// `y = tanh(x W + b)`, in (-1, 1).
#[derive(Module, Debug)]
pub struct TanhHead {
    /// `[d_model, dimensions]`
    pub weight: Param<Tensor<2>>,
    /// `[dimensions]`
    pub bias: Param<Tensor<1>>,
}

impl TanhHead {
    /// PyTorch's default for a linear layer, U(±1/√d_model) for weights and biases, as the
    /// reference.
    pub fn init(
        d_model: usize,
        dimensions: usize,
        device: &Device,
        generator: &mut Generator,
    ) -> Self {
        let (weight, bias) = init::linear([d_model, dimensions], device, generator);
        Self { weight, bias }
    }

    /// # Shapes
    /// - `hidden`: `[rows, d_model]`; result `[rows, dimensions]`
    pub fn forward(&self, hidden: Tensor<2>) -> Tensor<2> {
        (hidden.matmul(self.weight.val()) + self.bias.val().unsqueeze()).tanh()
    }

    /// Squared error, averaged over dimensions.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    /// - `targets`: `[rows, dimensions]`
    pub fn loss(&self, hidden: Tensor<2>, targets: Tensor<2>) -> HeadLoss {
        mean_squared_error(self.forward(hidden), targets)
    }
}
