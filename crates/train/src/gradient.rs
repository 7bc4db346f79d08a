//! [`Gradient`]: a gradient as one list of numbers, which parts of a batch are summed as.

use burn::tensor::Tensor;

/// A gradient by every parameter of a network.
#[derive(Clone, Debug)]
pub struct Gradient {
    /// Flat, one after the other in the module's order; zeros where a parameter has none.
    pub values: Tensor<1>,
    /// Which parameters have one.
    pub present: Vec<bool>,
}
