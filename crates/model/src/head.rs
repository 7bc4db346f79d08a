//! Action heads: from a token to logits over the environment's actions.
//!
//! Every head returns logits by **environment action id**. A head that orders its bins
//! otherwise (the Fourier head on Atari) permutes inside, so targets, inputs and played
//! actions all speak the environment's ids.

pub mod action_order;
pub mod fourier;
pub mod linear;

use burn::{
    module::Module,
    tensor::{Device, Tensor, activation::log_softmax},
};
use overtone_core::seed::Generator;
use serde::{Deserialize, Serialize};

pub use action_order::ActionOrder;
pub use fourier::{FourierHead, FourierHeadConfig};
pub use linear::LinearHead;

use crate::error::ModelError;

/// Which head, with its own options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum HeadConfig {
    /// One affine layer without bias.
    Linear,
    /// A density on [-1, 1] made of Fourier frequencies, read at the bin centres.
    Fourier(FourierHeadConfig),
}

impl HeadConfig {
    /// # Errors
    /// When an option does not fit the number of actions.
    pub fn validate(&self, n_actions: usize) -> Result<(), ModelError> {
        match self {
            Self::Linear => Ok(()),
            Self::Fourier(config) => config.validate(n_actions),
        }
    }

    /// A head for `n_actions` actions, its weights drawn from `generator`.
    pub fn init(
        &self,
        d_model: usize,
        n_actions: usize,
        device: &Device,
        generator: &mut Generator,
    ) -> Head {
        match self {
            Self::Linear => Head::Linear(LinearHead::init(d_model, n_actions, device, generator)),
            Self::Fourier(config) => {
                Head::Fourier(FourierHead::init(config, d_model, n_actions, device, generator))
            }
        }
    }
}

/// An action head.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // one head per model
pub enum Head {
    /// See [`LinearHead`].
    Linear(LinearHead),
    /// See [`FourierHead`].
    Fourier(FourierHead),
}

/// What a head says about a batch of tokens.
pub struct HeadOutput {
    /// `[rows, n_actions]`, by environment action id.
    pub logits: Tensor<2>,
    /// Regularisation of each row, `[rows]`, to be averaged and added to the loss.
    pub regularization: Option<Tensor<1>>,
}

impl Head {
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    pub fn forward(&self, hidden: Tensor<2>) -> HeadOutput {
        match self {
            Self::Linear(head) => HeadOutput { logits: head.forward(hidden), regularization: None },
            Self::Fourier(head) => head.forward(hidden),
        }
    }

    /// The head's own order of the actions, `None` when it is the environment's.
    pub fn action_order(&self) -> Option<&ActionOrder> {
        match self {
            Self::Linear(_) => None,
            Self::Fourier(head) => head.action_order.as_ref(),
        }
    }
}

/// Negative log-likelihood of each row's target, in nats.
///
/// # Shapes
/// - `logits`: `[rows, n_actions]`
/// - `targets`: `[rows]`, environment action ids
/// - result: `[rows]`
pub fn cross_entropy(logits: Tensor<2>, targets: Tensor<1, burn::tensor::Int>) -> Tensor<1> {
    let log_probs = log_softmax(logits, 1);
    log_probs.gather(1, targets.unsqueeze_dim::<2>(1)).squeeze_dim::<1>(1).neg()
}
