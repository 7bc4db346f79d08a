//! The linear head: logits are one affine map of the token, without bias.

use burn::{
    module::{Module, Param},
    tensor::Tensor,
};

use super::{BinsOptions, HeadOutput, OnBins};
use crate::parameters::init::{GPT_STD, Init};

options! {
    /// The linear head has no options.
    #[derive(Copy)]
    pub struct LinearConfig {}
}

impl BinsOptions for LinearConfig {
    type Head = LinearHead;

    /// Weights N(0, 0.02²), the initialization of the whole transformer.
    fn init(&self, d_model: usize, n: usize, init: &mut Init<'_>) -> LinearHead {
        LinearHead { weight: init.normal([d_model, n], GPT_STD) }
    }
}

/// `logits = x W`, as in the Decision Transformer (Chen et al. 2021).
#[derive(Module, Debug)]
pub struct LinearHead {
    /// `[d_model, n_actions]`
    pub weight: Param<Tensor<2>>,
}

impl OnBins for LinearHead {
    fn forward(&self, hidden: Tensor<2>) -> HeadOutput {
        HeadOutput { logits: hidden.matmul(self.weight.val()), regularization: None }
    }
}
