//! A perceptron beside the transformer, from an observation to the action that is predicted at it:
//! `h_t += relu(e_t W₁ + b₁) W₂`, `e_t` being the embedded observation and `h_t` the
//! transformer's output before its final norm. `W₂` begins at zero.

use burn::{
    module::{Module, Param, ParamId},
    tensor::{Tensor, activation::relu},
};

use crate::{init::Init, matrices::Matrices};

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct ObservationSkip {
    /// `[d_model, d_model]`
    pub weight: Param<Tensor<2>>,
    /// `[d_model]`
    pub bias: Param<Tensor<1>>,
    /// `[d_model, d_model]`
    pub out_weight: Param<Tensor<2>>,
}

impl Matrices for ObservationSkip {
    fn matrices(&self) -> Vec<ParamId> {
        vec![self.weight.id, self.out_weight.id]
    }
}

impl ObservationSkip {
    /// PyTorch's default for the first layer, zeros for the second.
    pub fn init(d_model: usize, init: &mut Init<'_>) -> Self {
        let (weight, bias) = init.linear([d_model, d_model]);
        Self { weight, bias, out_weight: init.constant([d_model, d_model], 0.0) }
    }

    /// What is added.
    ///
    /// # Shapes
    /// - `embedded`: `[batch, time, d_model]`, of which the last `steps` count
    /// - result: `[batch, steps, d_model]`
    pub fn forward(&self, embedded: Tensor<3>, steps: usize) -> Tensor<3> {
        let [batch, time, d_model] = embedded.dims();
        let rows = embedded.narrow(1, time - steps, steps).reshape([batch * steps, d_model]);
        let hidden = relu(rows.matmul(self.weight.val()) + self.bias.val().unsqueeze());
        hidden.matmul(self.out_weight.val()).reshape([batch, steps, d_model])
    }
}
