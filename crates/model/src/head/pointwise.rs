//! Pointwise regression: one affine layer to the numbers themselves, trained by squared error.
//! It can only learn the mean of what it is shown (the regression baseline of Gillman et al.
//! 2025, Table 6).

use burn::{
    module::{Module, Param, ParamId},
    tensor::Tensor,
};

use super::{HeadLoss, Marginals, NumbersOptions, OnNumbers, Points, mean_squared_error, read};
use crate::{init::Init, matrices::Matrices};

options! {
    /// The pointwise head has no options.
    #[derive(Copy)]
    pub struct PointwiseConfig {}
}

impl NumbersOptions for PointwiseConfig {
    type Head = PointwiseHead;

    /// PyTorch's default for a linear layer, U(±1/√d_model) for weights and biases.
    fn init(&self, d_model: usize, width: usize, init: &mut Init<'_>) -> PointwiseHead {
        let (weight, bias) = init.linear([d_model, width]);
        PointwiseHead { weight, bias }
    }
}

/// `y = x W + b`.
#[derive(Module, Debug)]
pub struct PointwiseHead {
    /// `[d_model, dimensions]`
    pub weight: Param<Tensor<2>>,
    /// `[dimensions]`
    pub bias: Param<Tensor<1>>,
}

impl Matrices for PointwiseHead {
    fn matrices(&self) -> Vec<ParamId> {
        vec![self.weight.id]
    }
}

impl PointwiseHead {
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`; result `[rows, dimensions]`
    pub fn forward(&self, hidden: Tensor<2>) -> Tensor<2> {
        hidden.matmul(self.weight.val()) + self.bias.val().unsqueeze()
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

    fn point(&self, hidden: Tensor<2>) -> Option<Tensor<2>> {
        Some(self.forward(hidden))
    }

    fn marginals(&self, hidden: Tensor<2>) -> Box<dyn Marginals> {
        Box::new(Points(read(self.forward(hidden))))
    }
}

/// The bin of `value` among `m` equal ones on [-1, 1], its lower edge included. Values outside
/// belong to the first and last bin.
pub fn bin_holding(value: f64, m: usize) -> usize {
    let edge = |j: usize| -1.0 + j as f64 * (2.0 / m as f64);
    let mut bin = (((value + 1.0) * 0.5 * m as f64).max(0.0) as usize).min(m - 1);
    // The product may round across an edge.
    if bin + 1 < m && value >= edge(bin + 1) {
        bin += 1;
    } else if bin > 0 && value < edge(bin) {
        bin -= 1;
    }
    bin
}

#[cfg(test)]
mod tests {
    use super::bin_holding;

    #[test]
    fn bins_hold_their_lower_edge_and_the_ends_hold_what_lies_outside() {
        // Four bins with edges -1, -0.5, 0, 0.5, 1.
        let got = [-7.0, -1.0, -0.51, -0.5, 0.0, 0.49, 0.5, 1.0, 3.0].map(|x| bin_holding(x, 4));
        assert_eq!(got, [0, 0, 0, 1, 2, 2, 3, 3, 3]);
    }

    #[test]
    fn every_edge_begins_its_bin() {
        for m in [1, 7, 18, 50, 4096] {
            for bin in 0..m {
                let edge = -1.0 + bin as f64 * (2.0 / m as f64);
                assert_eq!(bin_holding(edge, m), bin, "m {m}");
                assert_eq!(bin_holding(edge + 0.999 / m as f64, m), bin, "m {m}");
            }
        }
    }
}
