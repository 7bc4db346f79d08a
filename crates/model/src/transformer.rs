//! The transformer of every Decision Transformer: what lies between a context's tokens and
//! the action head.

use burn::{
    module::{Module, Param, ParamId},
    tensor::Tensor,
};
use overtone_core::seed;
use overtone_kernels::{Dropout, Form, Queries, layer_norm};

use crate::{
    init::Init,
    matrices::Matrices,
    tokens::{self, Steps},
    transformer_block::{BlockOptions, TransformerBlock},
    transformer_config::TransformerConfig,
};

/// Which dropout masks a training step draws; `None` while playing.
#[derive(Clone, Copy, Debug)]
pub struct DropoutSeed(pub u64);

/// Blocks, and a norm after the last.
#[derive(Module, Debug)]
pub struct Transformer {
    /// In the order in which they run.
    pub blocks: Vec<TransformerBlock>,
    /// `[d_model]`; none where returns scale and shift instead.
    pub final_norm_weight: Param<Tensor<1>>,
    /// `[d_model]`; likewise.
    pub final_norm_bias: Param<Tensor<1>>,
    /// What it was built from.
    #[module(skip)]
    pub config: TransformerConfig,
}

impl Matrices for Transformer {
    fn matrices(&self) -> Vec<ParamId> {
        self.blocks.matrices()
    }
}

impl Transformer {
    /// Blocks as [they begin](TransformerBlock::init); the norm 1 and 0.
    pub fn init(config: &TransformerConfig, init: &mut Init<'_>) -> Self {
        let d = config.d_model;
        Self {
            blocks: (0..config.n_layers).map(|_| TransformerBlock::init(config, init)).collect(),
            final_norm_weight: init.constant([d], 1.0),
            final_norm_bias: init.constant([d], 0.0),
            config: *config,
        }
    }

    /// Dropout and the blocks, at the observation tokens of some steps. The last block computes
    /// nothing else. The [final norm](Self::normed) is yet to come.
    ///
    /// A token sees itself and what came before it in its context, padding excepted.
    ///
    /// # Shapes
    /// - `tokens`: `[batch, tokens_per_timestep·time, d_model]`, positions included
    /// - `n_padding`: padded timesteps at the start of each context
    /// - result: `[batch, steps, d_model]`; rows of padded steps are finite and mean nothing
    pub fn at_observations(
        &self,
        mut tokens: Tensor<3>,
        steps: Steps,
        n_padding: &[usize],
        dropout: Option<DropoutSeed>,
        form: Form,
    ) -> Tensor<3> {
        let conditioning = self.config.conditioning;
        let rate = self.config.dropout;
        let seeds = dropout.filter(|_| rate > 0.0).map(|DropoutSeed(step_seed)| {
            move |use_idx: u64| Dropout {
                probability: rate as f32,
                seed: seed::derive_nth(step_seed, use_idx),
            }
        });
        if let Some(nth) = &seeds {
            tokens = overtone_kernels::dropout(tokens, nth(0), form);
        }
        let per_step = conditioning.tokens_per_timestep();
        let first_token: Vec<usize> = n_padding.iter().map(|pad| per_step * pad).collect();
        let padded = first_token.iter().any(|&token| token > 0);
        let [_, n_tokens, _] = tokens.dims();
        let observations = tokens::observations(steps, conditioning, n_tokens);
        for (layer_idx, block) in (0u64..).zip(&self.blocks) {
            tokens = block.forward(
                tokens,
                &BlockOptions {
                    n_heads: self.config.n_heads,
                    attention: self.config.attention,
                    activation: self.config.activation,
                    queries: match layer_idx + 1 == self.blocks.len() as u64 {
                        true => observations,
                        false => Queries::ALL,
                    },
                    first_token: padded.then_some(&first_token[..]),
                    dropout: seeds
                        .as_ref()
                        .map(|nth| [nth(1 + 2 * layer_idx), nth(2 + 2 * layer_idx)]),
                    form,
                },
            );
        }
        tokens
    }

    /// The final norm.
    pub fn normed(&self, hidden: Tensor<3>, form: Form) -> Tensor<3> {
        layer_norm(hidden, self.final_norm_weight.val(), self.final_norm_bias.val(), form)
    }
}
