//! Embedding of actions as tokens.

use burn::{
    module::{Module, Param},
    tensor::Tensor,
};
use overtone_core::ActionSpace;
use overtone_kernels::embedding;

use crate::{
    contexts::Acted,
    head::ActedRows,
    parameters::{
        affine::Affine,
        init::{GPT_STD, Init},
    },
};

/// Embeds actions.
#[derive(Module, Debug)]
pub enum ActionEmbedding {
    /// Discrete actions: one row for each.
    Table(ActionTable),
    /// Continuous actions: one affine layer.
    Linear(Affine),
}

/// One row for each discrete action.
#[derive(Module, Debug)]
pub struct ActionTable {
    /// `[n_actions, d_model]`
    pub table: Param<Tensor<2>>,
}

impl ActionEmbedding {
    /// A table drawn from N(0, 0.02²), or PyTorch's default for a linear layer.
    pub fn init(actions: &ActionSpace, d_model: usize, init: &mut Init<'_>) -> Self {
        let size = actions.size();
        match actions {
            ActionSpace::Discrete { .. } => {
                Self::Table(ActionTable { table: init.normal([size, d_model], GPT_STD) })
            }
            ActionSpace::Continuous { .. } => Self::Linear(Affine::init([size, d_model], init)),
        }
    }

    /// # Shapes
    /// - result: `[batch · time, d_model]`
    ///
    /// # Panics
    /// When the actions have another kind than the embedding's: a caller's bug.
    pub fn forward(&self, actions: &Acted) -> Tensor<2> {
        match (self, actions.rows()) {
            (Self::Table(table), ActedRows::Discrete(ids)) => embedding(table.table.val(), ids),
            (Self::Linear(layer), ActedRows::Continuous(numbers)) => layer.forward(numbers),
            _ => panic!("actions of another kind than the embedding's"),
        }
    }
}
