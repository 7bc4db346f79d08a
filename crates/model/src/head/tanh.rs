//! The deterministic head of the Decision Transformer on real-valued actions (Chen et al.
//! 2021): `tanh` of one affine layer, trained by squared error.

use burn::{
    module::{Module, Param, ParamId},
    tensor::Tensor,
};

use super::{HeadLoss, Marginals, NumbersOptions, OnNumbers, Points, mean_squared_error, read};
use crate::{init::Init, matrices::Matrices};

options! {
    /// The tanh head has no options.
    #[derive(Copy)]
    pub struct TanhConfig {}
}

impl NumbersOptions for TanhConfig {
    type Head = TanhHead;

    /// PyTorch's default for a linear layer, U(±1/√d_model) for weights and biases, as the
    /// reference.
    fn init(&self, d_model: usize, width: usize, init: &mut Init<'_>) -> TanhHead {
        let (weight, bias) = init.linear([d_model, width]);
        TanhHead { weight, bias }
    }
}

/// `y = tanh(x W + b)`, in (-1, 1).
#[derive(Module, Debug)]
pub struct TanhHead {
    /// `[d_model, dimensions]`
    pub weight: Param<Tensor<2>>,
    /// `[dimensions]`
    pub bias: Param<Tensor<1>>,
}

impl Matrices for TanhHead {
    fn matrices(&self) -> Vec<ParamId> {
        vec![self.weight.id]
    }
}

impl TanhHead {
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`; result `[rows, dimensions]`
    pub fn forward(&self, hidden: Tensor<2>) -> Tensor<2> {
        (hidden.matmul(self.weight.val()) + self.bias.val().unsqueeze()).tanh()
    }
}

impl OnNumbers for TanhHead {
    fn width(&self) -> usize {
        self.bias.dims()[0]
    }

    /// Squared error, averaged over dimensions.
    fn loss(&self, hidden: Tensor<2>, targets: Tensor<2>) -> HeadLoss {
        mean_squared_error(self.forward(hidden), targets)
    }

    fn point(&self, hidden: Tensor<2>) -> Option<Tensor<2>> {
        Some(self.forward(hidden))
    }

    fn marginals(&self, hidden: Tensor<2>) -> Box<dyn Marginals> {
        Box::new(Points(read(self.forward(hidden))))
    }
}
