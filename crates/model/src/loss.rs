//! [`Loss`]: the loss of a batch.

use burn::tensor::Tensor;

use crate::head::HeadLoss;

/// The loss of a batch; each tensor `[1]`.
pub struct Loss {
    /// The loss to differentiate: the head's loss plus its regulariser.
    pub total: Tensor<1>,
    /// Mean loss of the recorded actions in the head's own unit: nats, summed over the dimensions
    /// of a continuous action, or squared error, averaged over them.
    pub action: Tensor<1>,
    /// The fraction of timesteps whose recorded action is the most probable one (discrete actions
    /// only).
    pub accuracy: Option<Tensor<1>>,
}

impl Loss {
    /// The loss of rows with these weights in the mean, `[rows]`.
    pub(crate) fn of(loss: HeadLoss, weights: Tensor<1>) -> Self {
        let accuracy = loss.hits.map(|hits| (hits * weights.clone()).sum().detach());
        let action = (loss.rows * weights.clone()).sum();
        let total = match loss.regularization {
            Some(rows) => action.clone() + (rows * weights).sum(),
            None => action.clone(),
        };
        Self { total, action: action.detach(), accuracy }
    }
}
