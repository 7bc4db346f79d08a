//! [`Gradient`]: a gradient as one flat vector, the form in which parts of a batch are summed.

use burn::{
    module::{Module, ModuleVisitor, Param},
    tensor::Tensor,
};

/// A gradient with respect to all parameters of a network.
#[derive(Clone, Debug)]
pub struct Gradient {
    /// Flat, concatenated in the module's order; zeros for a parameter without gradient.
    pub values: Tensor<1>,
    /// Whether each parameter has a gradient.
    pub present: Vec<bool>,
}

impl Gradient {
    /// This gradient, followed by the gradient of a second network.
    #[must_use]
    pub fn and(self, second: Self) -> Self {
        let values = Tensor::cat(vec![self.values, second.values], 0);
        Self { values, present: [self.present, second.present].concat() }
    }

    /// The gradient of `first`, and the gradient of the network [after it](Self::and).
    pub fn split<M: Module>(self, first: &M) -> [Self; 2] {
        struct Count(usize);
        impl ModuleVisitor for Count {
            fn visit_float<const D: usize>(&mut self, _: &Param<Tensor<D>>) {
                self.0 += 1;
            }
        }
        let mut n_parameters = Count(0);
        first.visit(&mut n_parameters);
        let (n, [all]) = (first.num_params(), self.values.dims());
        let (of_first, of_second) = self.present.split_at(n_parameters.0);
        [(0, n, of_first), (n, all - n, of_second)].map(|(start, length, present)| Self {
            values: self.values.clone().narrow(0, start, length),
            present: present.to_vec(),
        })
    }
}
