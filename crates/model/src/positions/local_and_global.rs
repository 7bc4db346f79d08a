//! One position for each token in the context, and one for the context in its episode where that
//! is told.

use burn::{
    module::{Module, Param},
    tensor::Tensor,
};

use super::{Embedded, rows_of};
use crate::{contexts::Contexts, init::Init, tokens};

/// Local positions count from each context's first real token; the global one is that of the
/// context's first real timestep, unless [`is_of_newest`](Self::is_of_newest).
#[derive(Module, Debug)]
pub struct LocalAndGlobal {
    /// `[3·context_length + 1, d_model]`: position of a token in the context.
    pub local: Param<Tensor<2>>,
    /// `[max_timestep + 1, d_model]`: position of the context in its episode.
    pub global: Option<Param<Tensor<2>>>,
    /// Whether the global position is that of the context's newest timestep: so in the released
    /// evaluation on Atari, never in training.
    #[module(skip)]
    pub is_of_newest: bool,
}

impl LocalAndGlobal {
    /// Zeros, as in the reference.
    pub fn init(
        context_length: usize,
        max_timestep: Option<usize>,
        d_model: usize,
        init: &mut Init<'_>,
    ) -> Self {
        Self {
            local: init.constant([3 * context_length + 1, d_model], 0.0),
            global: max_timestep.map(|last| init.constant([last + 1, d_model], 0.0)),
            is_of_newest: false,
        }
    }

    /// The tokens of each step side by side, with their positions: `[batch, tokens, d_model]`.
    pub fn tokens(&self, steps: Embedded, contexts: &Contexts) -> Tensor<3> {
        let [_, time, _] = steps.observations.dims();
        let tokens = tokens::interleave(steps.returns_to_go, steps.observations, steps.actions);
        let [_, n_tokens, _] = tokens.dims();
        let placed = tokens + self.local(&contexts.n_padding, n_tokens, n_tokens / time);
        match &self.global {
            Some(table) => {
                let timesteps = if self.is_of_newest {
                    contexts.newest_timesteps()
                } else {
                    contexts.first_timesteps()
                };
                let rows = rows_of(table.val(), timesteps);
                placed + rows.unsqueeze_dim::<3>(1)
            }
            None => placed,
        }
    }

    /// `[batch or 1, tokens, d_model]`.
    fn local(&self, n_padding: &[usize], n_tokens: usize, per_step: usize) -> Tensor<3> {
        let table = self.local.val();
        if n_padding.iter().all(|&pad| pad == 0) {
            return table.narrow(0, 0, n_tokens).unsqueeze_dim::<3>(0);
        }
        let places: Vec<i32> = n_padding
            .iter()
            .map(|pad| per_step * pad)
            .flat_map(|first| (0..n_tokens).map(move |token| token.saturating_sub(first) as i32))
            .collect();
        let [_, d_model] = table.dims();
        rows_of(table, places).reshape([n_padding.len(), n_tokens, d_model])
    }
}
