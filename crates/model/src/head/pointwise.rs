//! Heads that predict one number for each dimension, trained by squared error. The pointwise head
//! is one affine layer, which can only learn the mean of its targets (the regression baseline of
//! Gillman et al. 2025, Table 6). The tanh head is its `tanh`, the deterministic head of the
//! Decision Transformer for continuous actions (Chen et al. 2021).

use burn::tensor::Tensor;

use super::{HeadLoss, Marginals, NumbersOptions, OnNumbers, Points, mean_squared_error, read};
use crate::parameters::{affine::Squashed, init::Init};

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
        Squashed::init([d_model, width], false, init)
    }
}

impl NumbersOptions for TanhConfig {
    type Head = PointwiseHead;

    fn init(&self, d_model: usize, width: usize, init: &mut Init<'_>) -> PointwiseHead {
        Squashed::init([d_model, width], true, init)
    }
}

/// One number for each dimension, `[d_model, dimensions]`.
pub type PointwiseHead = Squashed;

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
