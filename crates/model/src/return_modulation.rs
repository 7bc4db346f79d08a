//! The return still to come as scale and shift of what the head reads: adaptive layer norm
//! ("adaLN"), as the Decoupled Decision Transformer has it.
//!
//! Given the return at `t`, returns before `t` say nothing more about the action: observations,
//! actions and rewards in between tell them. So the transformer reads `s, a` alone, two tokens a
//! step in place of three, and with the final norm's output `h_t`
//!
//! ```text
//! y_t = (1 + γ_t) ⊙ h_t + β_t,   [γ_t, β_t] = R̂_t W + b
//! ```
//!
//! is what the head reads. `W` and `b` begin at zero: before the first step this is behaviour
//! cloning.

use burn::{
    module::{Module, Param, ParamId},
    tensor::Tensor,
};

use crate::{init::Init, matrices::Matrices};

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct ReturnModulation {
    /// `[1, 2·d_model]`: γ's half first.
    pub weight: Param<Tensor<2>>,
    /// `[2·d_model]`
    pub bias: Param<Tensor<1>>,
}

impl Matrices for ReturnModulation {
    fn matrices(&self) -> Vec<ParamId> {
        vec![self.weight.id]
    }
}

impl ReturnModulation {
    /// Zeros.
    pub fn init(d_model: usize, init: &mut Init<'_>) -> Self {
        Self {
            weight: init.constant([1, 2 * d_model], 0.0),
            bias: init.constant([2 * d_model], 0.0),
        }
    }

    /// # Shapes
    /// - `hidden`: `[batch, steps, d_model]`
    /// - `returns_to_go`: `[batch, time]`, of which the last `steps` count
    /// - result: as `hidden`
    pub fn forward(&self, hidden: Tensor<3>, returns_to_go: Tensor<2>) -> Tensor<3> {
        let [batch, steps, d_model] = hidden.dims();
        let [_, time] = returns_to_go.dims();
        let returns = returns_to_go.narrow(1, time - steps, steps).reshape([batch * steps, 1]);
        let both = returns.matmul(self.weight.val()) + self.bias.val().unsqueeze();
        let both = both.reshape([batch, steps, 2 * d_model]);
        let scale = both.clone().narrow(2, 0, d_model) + 1.0;
        hidden * scale + both.narrow(2, d_model, d_model)
    }
}
