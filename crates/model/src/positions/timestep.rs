//! One position for each timestep in its episode, and a layer norm over every token.

use burn::{
    module::{Module, Param},
    tensor::Tensor,
};
use overtone_kernels::{Form, layer_norm};

use super::{Embedded, rows_of};
use crate::{contexts::Contexts, init::Init, tokens};

/// The same row is added to each token of a timestep; nothing, where there is no table.
#[derive(Module, Debug)]
pub struct Timestep {
    /// `[horizon, d_model]`: place of a timestep in its episode.
    pub table: Option<Param<Tensor<2>>>,
    /// `[d_model]`
    pub norm_weight: Param<Tensor<1>>,
    /// `[d_model]`
    pub norm_bias: Param<Tensor<1>>,
}

impl Timestep {
    /// A table of so many rows, N(0, std²), if there is one; the norm 1 and 0.
    pub fn init(table: Option<(usize, f64)>, d_model: usize, init: &mut Init<'_>) -> Self {
        Self {
            table: table.map(|(horizon, std)| init.normal([horizon, d_model], std)),
            norm_weight: init.constant([d_model], 1.0),
            norm_bias: init.constant([d_model], 0.0),
        }
    }

    /// The tokens of each step side by side, with their positions: `[batch, tokens, d_model]`.
    pub fn tokens(&self, steps: Embedded, contexts: &Contexts, form: Form) -> Tensor<3> {
        let shape = steps.observations.dims();
        let rows = |table: &Param<Tensor<2>>| {
            rows_of(table.val(), contexts.timesteps.clone()).reshape(shape)
        };
        let places: Option<Tensor<3>> = self.table.as_ref().map(rows);
        let placed = |tokens: Tensor<3>| match &places {
            Some(places) => tokens + places.clone(),
            None => tokens,
        };
        let tokens = tokens::interleave(
            steps.returns_to_go.map(placed),
            placed(steps.observations),
            placed(steps.actions),
        );
        layer_norm(tokens, self.norm_weight.val(), self.norm_bias.val(), form)
    }
}
