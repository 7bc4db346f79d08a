//! [`Gradient`]: a gradient as one list of numbers, which parts of a batch are summed as.

use burn::{
    module::{Module, ModuleVisitor, Param},
    tensor::Tensor,
};

/// A gradient by every parameter of a network.
#[derive(Clone, Debug)]
pub struct Gradient {
    /// Flat, one after the other in the module's order; zeros where a parameter has none.
    pub values: Tensor<1>,
    /// Which parameters have one.
    pub present: Vec<bool>,
}

impl Gradient {
    /// This gradient and that of a second network behind it.
    #[must_use]
    pub fn and(self, second: Self) -> Self {
        let values = Tensor::cat(vec![self.values, second.values], 0);
        Self { values, present: [self.present, second.present].concat() }
    }

    /// The gradient of `first`, and that of the network [behind it](Self::and).
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
