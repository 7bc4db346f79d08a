//! What a batch of logged actions costs a model.

use burn::tensor::Tensor;

use crate::head::HeadLoss;

/// One batch's loss; each `[1]`.
pub struct Loss {
    /// What is differentiated: the head's loss plus regulariser.
    pub total: Tensor<1>,
    /// Mean loss of the logged actions in the head's own unit: nats, added up over the numbers of
    /// a real-valued action, or its squared error, averaged over them.
    pub action: Tensor<1>,
    /// Of a list of actions, the share whose logged action is the most probable one.
    pub accuracy: Option<Tensor<1>>,
}

impl Loss {
    /// Of rows that have these shares in the mean, `[rows]`.
    pub(crate) fn of(loss: HeadLoss, shares: Tensor<1>) -> Self {
        let accuracy = loss.hits.map(|hits| (hits * shares.clone()).sum().detach());
        let action = (loss.rows * shares.clone()).sum();
        let total = match loss.regularization {
            Some(rows) => action.clone() + (rows * shares).sum(),
            None => action.clone(),
        };
        Self { total, action: action.detach(), accuracy }
    }

    /// The same, with `more` of another part, `[1]`, to be made small as well.
    pub(crate) fn and(self, more: Tensor<1>) -> Self {
        Self { total: self.total + more, ..self }
    }
}
