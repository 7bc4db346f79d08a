//! The two kinds of heads, and the traits that a head's file implements.
//!
//! A head *on bins* computes logits for discrete actions, or for the bins of one dimension
//! ([`BinnedHead`](super::BinnedHead)). A head *on numbers* learns and selects continuous actions
//! in [-1, 1]. The head's options, declared with `options!`, implement [`BinsOptions`] or
//! [`NumbersOptions`]; the head itself implements [`OnBins`] or [`OnNumbers`].

use burn::tensor::{Int, Tensor, activation::log_softmax};

use super::{ActionOrder, Marginals, OrderConfig};
use crate::{error::ModelError, parameters::init::Init};

/// Options of a head on bins.
pub trait BinsOptions {
    /// The head with these options.
    type Head: OnBins;

    /// The number in the head's name as part of a run's name: the 14 of `fourier14`.
    fn size(&self) -> Option<usize> {
        None
    }

    /// # Errors
    /// When an option is not valid for `n` bins.
    fn validate(&self, _n: usize) -> Result<(), ModelError> {
        Ok(())
    }

    /// A head on `n` bins.
    fn init(&self, d_model: usize, n: usize, init: &mut Init<'_>) -> Self::Head;

    /// The option that orders discrete actions along the bins, if the head has one.
    fn order(&mut self) -> Option<&mut OrderConfig> {
        None
    }
}

/// A head on bins.
pub trait OnBins {
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    fn forward(&self, hidden: Tensor<2>) -> HeadOutput;

    /// The order of discrete actions along the bins; `None`: the environment's.
    fn action_order(&self) -> Option<&ActionOrder> {
        None
    }
}

/// Output of a head on bins for a batch of tokens.
pub struct HeadOutput {
    /// `[rows, n]`, by environment action id.
    pub logits: Tensor<2>,
    /// Regularisation of each row, `[rows]`, to be averaged and added to the loss.
    pub regularization: Option<Tensor<1>>,
}

/// Options of a head on numbers.
pub trait NumbersOptions {
    /// The head with these options.
    type Head: OnNumbers;

    /// The number in the head's name as part of a run's name: the 2 of `gmm2`.
    fn size(&self) -> Option<usize> {
        None
    }

    /// # Errors
    /// When an option is not valid.
    fn validate(&self) -> Result<(), ModelError> {
        Ok(())
    }

    /// A head for actions of `width` dimensions.
    fn init(&self, d_model: usize, width: usize, init: &mut Init<'_>) -> Self::Head;
}

/// A head on numbers.
pub trait OnNumbers {
    /// Number of action dimensions.
    fn width(&self) -> usize;

    /// The loss of each row of recorded actions.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    /// - `targets`: `[rows, width]`, in [-1, 1]
    fn loss(&self, hidden: Tensor<2>, targets: Tensor<2>) -> HeadLoss;

    /// The head's distribution of each dimension of each row, on the host.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    fn marginals(&self, hidden: Tensor<2>) -> Box<dyn Marginals>;
}

/// Recorded actions, one per row.
#[derive(Clone, Debug)]
pub enum ActedRows {
    /// `[rows]`: environment action ids.
    Discrete(Tensor<1, Int>),
    /// `[rows, width]`, in [-1, 1].
    Continuous(Tensor<2>),
}

/// A head's loss on a batch.
pub struct HeadLoss {
    /// Each row's loss, `[rows]`, to be averaged: squared error, averaged over an action's
    /// dimensions, or nats, added up over them.
    pub rows: Tensor<1>,
    /// Regularisation of each row, `[rows]`, to be averaged and added to the loss.
    pub regularization: Option<Tensor<1>>,
    /// For discrete actions, `[rows]`: 1 if the recorded action is the most probable one, else 0.
    pub hits: Option<Tensor<1>>,
}

/// Added to the logit of an action that is not allowed. Its exponential is 0 in every float type.
pub const NOT_ALLOWED: f32 = -1e9;

/// Added to the logit of a discrete action: 0 if it is allowed, else [`NOT_ALLOWED`].
pub fn penalty(is_allowed: bool) -> f32 {
    if is_allowed { 0.0 } else { NOT_ALLOWED }
}

/// Cross-entropy of recorded actions among all actions, or among those without a penalty.
///
/// # Shapes
/// - `penalties`: `[rows, n]`: 0 for an allowed action, else [`NOT_ALLOWED`]
pub(super) fn bins_loss(
    output: HeadOutput,
    targets: Tensor<1, Int>,
    penalties: Option<Tensor<2>>,
) -> HeadLoss {
    let HeadOutput { logits, regularization } = output;
    let logits = match penalties {
        None => logits,
        Some(penalties) => logits + penalties,
    };
    let most_probable = logits.clone().argmax(1).squeeze_dim::<1>(1);
    let hits = most_probable.equal(targets.clone()).float().cast(logits.dtype());
    HeadLoss { rows: cross_entropy(logits, targets), regularization, hits: Some(hits) }
}

/// Squared error of each row, averaged over dimensions.
pub(super) fn mean_squared_error(predictions: Tensor<2>, targets: Tensor<2>) -> HeadLoss {
    let rows = (predictions - targets).square().mean_dim(1).squeeze_dim::<1>(1);
    HeadLoss { rows, regularization: None, hits: None }
}

/// Negative log-likelihood of each row's target, in nats.
///
/// # Shapes
/// - `logits`: `[rows, n_actions]`
/// - `targets`: `[rows]`, environment action ids
/// - result: `[rows]`
pub fn cross_entropy(logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
    let log_probs = log_softmax(logits, 1);
    log_probs.gather(1, targets.unsqueeze_dim::<2>(1)).squeeze_dim::<1>(1).neg()
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    /// The loss among two of three actions is that of the two logits alone, and so is the most
    /// probable action.
    #[test]
    fn actions_that_are_not_allowed_do_not_count() {
        let device = Device::flex();
        let loss = |logits: Tensor<2>, penalties| {
            let output = HeadOutput { logits, regularization: None };
            let HeadLoss { rows, hits, .. } =
                bins_loss(output, Tensor::from_data([1, 0], &device), penalties);
            [rows, hits.unwrap()].map(|tensor| tensor.into_data().iter::<f32>().collect::<Vec<_>>())
        };
        let three = Tensor::from_data([[0.5f32, 2.0, 9.0], [-1.0, 0.25, 0.5]], &device);
        let two = Tensor::from_data([[0.5f32, 2.0], [-1.0, 0.25]], &device);
        let penalties = Tensor::from_data([[0.0f32, 0.0, NOT_ALLOWED]; 2], &device);
        let [rows, hits] = loss(three, Some(penalties));
        assert_eq!([&rows, &hits], loss(two, None).each_ref());
        assert_eq!(hits, [1.0, 0.0]);
    }
}
