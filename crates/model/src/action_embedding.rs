//! From an action to a token.

use burn::{
    module::{Module, Param, ParamId},
    tensor::Tensor,
};
use overtone_core::ActionSpace;

use crate::{
    contexts::Acted,
    head::ActedRows,
    init::{GPT_STD, Init},
    matrices::Matrices,
};

/// Embeds actions.
#[derive(Module, Debug)]
pub enum ActionEmbedding {
    /// A list of actions: one row for each.
    Table(ActionTable),
    /// Real-valued actions: one affine layer.
    Linear(ActionLinear),
}

impl Matrices for ActionEmbedding {
    fn matrices(&self) -> Vec<ParamId> {
        match self {
            // Rows are looked up, not multiplied.
            Self::Table(_) => Vec::new(),
            Self::Linear(layer) => vec![layer.weight.id],
        }
    }
}

/// One row for each of a list of actions.
#[derive(Module, Debug)]
pub struct ActionTable {
    /// `[n_actions, d_model]`
    pub table: Param<Tensor<2>>,
}

/// `a W + b`.
#[derive(Module, Debug)]
pub struct ActionLinear {
    /// `[width, d_model]`
    pub weight: Param<Tensor<2>>,
    /// `[d_model]`
    pub bias: Param<Tensor<1>>,
}

impl ActionEmbedding {
    /// A table N(0, 0.02²), or PyTorch's default for a linear layer.
    pub fn init(actions: &ActionSpace, d_model: usize, init: &mut Init<'_>) -> Self {
        let size = actions.size();
        match actions {
            ActionSpace::Discrete { .. } => {
                Self::Table(ActionTable { table: init.normal([size, d_model], GPT_STD) })
            }
            ActionSpace::Continuous { .. } => {
                let (weight, bias) = init.linear([size, d_model]);
                Self::Linear(ActionLinear { weight, bias })
            }
        }
    }

    /// # Shapes
    /// - result: `[batch · time, d_model]`
    ///
    /// # Panics
    /// When the actions are of another kind than the embedding's: a caller's bug.
    pub fn forward(&self, actions: &Acted) -> Tensor<2> {
        match (self, actions.rows()) {
            (Self::Table(table), ActedRows::Discrete(ids)) => table.table.val().select(0, ids),
            (Self::Linear(linear), ActedRows::Continuous(numbers)) => {
                numbers.matmul(linear.weight.val()) + linear.bias.val().unsqueeze()
            }
            _ => panic!("actions of another kind than the embedding's"),
        }
    }
}
