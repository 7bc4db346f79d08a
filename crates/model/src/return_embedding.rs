//! From a return-to-go to a token.

use burn::{
    module::{Module, Param, ParamId},
    tensor::Tensor,
};

use crate::{init::Init, matrices::Matrices};

/// `R̂ W + b`.
#[derive(Module, Debug)]
pub struct ReturnEmbedding {
    /// `[1, d_model]`
    pub weight: Param<Tensor<2>>,
    /// `[d_model]`
    pub bias: Param<Tensor<1>>,
}

impl Matrices for ReturnEmbedding {
    fn matrices(&self) -> Vec<ParamId> {
        vec![self.weight.id]
    }
}

impl ReturnEmbedding {
    /// PyTorch's default for a linear layer: U(-1, 1).
    pub fn init(d_model: usize, init: &mut Init<'_>) -> Self {
        let (weight, bias) = init.linear([1, d_model]);
        Self { weight, bias }
    }

    /// # Shapes
    /// - `returns_to_go`: `[batch, time]`; result `[batch · time, d_model]`
    pub fn forward(&self, returns_to_go: Tensor<2>) -> Tensor<2> {
        let [batch, time] = returns_to_go.dims();
        let returns = returns_to_go.reshape([batch * time, 1]);
        returns.matmul(self.weight.val()) + self.bias.val().unsqueeze()
    }
}
