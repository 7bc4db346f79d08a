//! The linear head: logits are one affine map of the token, without bias.

use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor},
};
use overtone_core::seed::Generator;

use crate::init;

/// `logits = x W`, as in the Decision Transformer (Chen et al. 2021).
#[derive(Module, Debug)]
pub struct LinearHead {
    /// `[d_model, n_actions]`
    pub weight: Param<Tensor<2>>,
}

impl LinearHead {
    /// Weights N(0, 0.02²), the initialiser of the whole transformer.
    pub fn init(
        d_model: usize,
        n_actions: usize,
        device: &Device,
        generator: &mut Generator,
    ) -> Self {
        Self { weight: init::normal([d_model, n_actions], init::GPT_STD, device, generator) }
    }

    /// # Shapes
    /// - `hidden`: `[rows, d_model]`; result `[rows, n_actions]`
    pub fn forward(&self, hidden: Tensor<2>) -> Tensor<2> {
        hidden.matmul(self.weight.val())
    }
}
