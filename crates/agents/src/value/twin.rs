//! [`Twin`]: two critics; the smaller value is used (Fujimoto et al. 2018).

use burn::{module::Module, tensor::Tensor};
use overtone_kernels::Form;
use overtone_model::init::Init;

use super::{
    network::{Hidden, Mlp, constant_like},
    steps::Steps,
};

/// Two critics with the same shape and different initial weights.
#[derive(Module, Debug)]
pub struct Twin {
    /// The critic that improves the actor, if only one is used.
    pub first: Mlp,
    /// The other critic.
    pub second: Mlp,
}

impl Twin {
    /// Critics of observations and actions of these widths.
    pub fn init([observations, actions]: [usize; 2], hidden: Hidden, init: &mut Init<'_>) -> Self {
        let mut critic = || Mlp::init([observations + actions, 1], hidden, init);
        Self { first: critic(), second: critic() }
    }

    /// The same critics with this form of computation.
    #[must_use]
    pub fn with_form(self, form: Form) -> Self {
        Self { first: Mlp { form, ..self.first }, second: Mlp { form, ..self.second } }
    }

    /// Values of both critics for every row of [`concat()`], each `[rows, 1]`.
    pub fn values(&self, inputs: Tensor<2>) -> [Tensor<2>; 2] {
        [self.first.forward(inputs.clone()), self.second.forward(inputs)]
    }

    /// The smaller value of both, `[rows, 1]`.
    pub fn smaller(&self, inputs: Tensor<2>) -> Tensor<2> {
        let [first, second] = self.values(inputs);
        first.min_pair(second)
    }
}

/// Observations and actions concatenated, the input of a critic: `[rows, width]`.
pub fn concat(observations: Tensor<2>, actions: Tensor<2>) -> Tensor<2> {
    let observations = constant_like(observations, &actions);
    Tensor::cat(vec![observations, actions], 1)
}

/// [`mean`](Steps::mean) `Σ_i (value_i − target)²` over both critics, `[1]`. `target` is a constant.
pub fn squared_errors(values: &[Tensor<2>; 2], target: Tensor<2>, steps: &Steps) -> Tensor<1> {
    let [first, second] = values;
    let target = constant_like(target, first);
    let error = |values: &Tensor<2>| (values.clone() - target.clone()).square();
    steps.mean(error(first) + error(second))
}

/// [`mean`](Steps::mean) `v / mean |v|`, `[1]`, in which the divisor is a constant without the steps' weights:
/// it is the unit of values.
pub fn per_size(values: Tensor<2>, steps: &Steps) -> Tensor<1> {
    // If all values are exactly 0, their mean size is 0 and the gradient is 0.
    let size = steps.mean_of_counting(values.clone().detach().abs());
    let size = size.clamp_min(f64::from(f32::MIN_POSITIVE));
    steps.mean(values) / size
}
