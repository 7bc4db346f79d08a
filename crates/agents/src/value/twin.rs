//! [`Twin`]: two critics, of which the smaller value counts (Fujimoto et al. 2018).

use burn::{
    module::{Module, ParamId},
    tensor::Tensor,
};
use overtone_kernels::Form;
use overtone_model::{init::Init, matrices::Matrices};

use super::network::{Hidden, Mlp, constant_beside};

/// Two critics of one shape that differ in their initial weights.
#[derive(Module, Debug)]
pub struct Twin {
    /// The one that an actor is improved by where only one is asked.
    pub first: Mlp,
    /// The other.
    pub second: Mlp,
}

impl Matrices for Twin {
    fn matrices(&self) -> Vec<ParamId> {
        [self.first.matrices(), self.second.matrices()].concat()
    }
}

impl Twin {
    /// Critics of observations and actions of these widths.
    pub fn init([observations, actions]: [usize; 2], hidden: Hidden, init: &mut Init<'_>) -> Self {
        let mut critic = || Mlp::init([observations + actions, 1], hidden, init);
        Self { first: critic(), second: critic() }
    }

    /// The same, computed in this form.
    #[must_use]
    pub fn with_form(self, form: Form) -> Self {
        Self { first: Mlp { form, ..self.first }, second: Mlp { form, ..self.second } }
    }

    /// What both say of every row of [`beside`], each `[rows, 1]`.
    pub fn values(&self, beside: Tensor<2>) -> [Tensor<2>; 2] {
        [self.first.forward(beside.clone()), self.second.forward(beside)]
    }

    /// The smaller of both, `[rows, 1]`.
    pub fn smaller(&self, beside: Tensor<2>) -> Tensor<2> {
        let [first, second] = self.values(beside);
        first.min_pair(second)
    }
}

/// Observations and actions side by side, as a critic reads them: `[rows, width]`.
pub fn beside(observations: Tensor<2>, actions: Tensor<2>) -> Tensor<2> {
    let observations = constant_beside(observations, &actions);
    Tensor::cat(vec![observations, actions], 1)
}

/// `mean (value − target)²` of each critic, added up, `[1]`. `target` is a constant.
pub fn squared_errors(values: &[Tensor<2>; 2], target: Tensor<2>) -> Tensor<1> {
    let [first, second] = values;
    let target = constant_beside(target, first);
    let error = |values: &Tensor<2>| (values.clone() - target.clone()).square().mean();
    error(first) + error(second)
}
