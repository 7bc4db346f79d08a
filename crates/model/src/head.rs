//! Action heads: from a token to logits over the environment's actions.
//!
//! Every [`Head`] returns logits by **environment action id**. A head that orders its bins
//! otherwise (the Fourier head on Atari) permutes inside, so targets, inputs and played
//! actions all speak the environment's ids.
//!
//! Heads for real-valued actions are a second enum, [`ContinuousHead`]. One of them,
//! [`BinnedHead`], cuts every number of an action into bins and has a [`Head`] for each. Where
//! other real values are to be categories of a head on bins, [`Binning`] says which value is
//! in which bin.

pub mod action_order;
pub mod binned;
pub mod binning;
pub mod continuous;
pub mod fourier;
pub mod fourier_density;
pub mod fourier_likelihood;
pub mod fourier_options;
pub mod gaussian;
pub mod gmm;
pub mod gmm_likelihood;
pub mod linear;
pub mod pointwise;
pub mod quadrature;
pub mod tanh;

use burn::{
    module::Module,
    tensor::{Device, Tensor, activation::log_softmax},
};
use overtone_core::seed::Generator;
use serde::{Deserialize, Serialize};

pub use action_order::ActionOrder;
pub use binned::{BinnedConfig, BinnedHead};
pub use binning::{Binning, BinningConfig, Precision};
pub use continuous::{ContinuousHead, ContinuousHeadConfig};
pub use fourier::{FourierHead, FourierHeadConfig};
pub use fourier_density::FourierDensity;
pub use fourier_likelihood::{FourierLikelihoodConfig, FourierLikelihoodHead};
pub use fourier_options::{Domain, InitialCoefficients, Regularizer};
pub use gaussian::GaussianHead;
pub use gmm::{GmmHead, GmmHeadConfig};
pub use gmm_likelihood::{GaussianMixture, GmmLikelihoodConfig, GmmLikelihoodHead};
pub use linear::LinearHead;
pub use pointwise::PointwiseHead;
pub use tanh::TanhHead;

use crate::{config::config_error, error::ModelError};

/// Which head, with its own options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum HeadConfig {
    /// One affine layer without bias.
    Linear,
    /// A density on [-1, 1] made of Fourier frequencies, read at the bin centres.
    Fourier(FourierHeadConfig),
    /// A mixture of Gaussians, read at the bin centres.
    Gmm(GmmHeadConfig),
}

impl HeadConfig {
    /// # Errors
    /// When an option does not fit the number of actions.
    pub fn validate(&self, n_actions: usize) -> Result<(), ModelError> {
        match self {
            Self::Linear => Ok(()),
            Self::Fourier(config) => config.validate(n_actions),
            Self::Gmm(config) => config.validate(n_actions),
        }
    }

    /// In a few words: `Fourier head of 14 frequencies`.
    pub fn describe(&self) -> String {
        match self {
            Self::Linear => "linear head".into(),
            Self::Fourier(config) => format!("Fourier head of {} frequencies", config.frequencies),
            Self::Gmm(config) => {
                format!("Gaussian-mixture head of {} components", config.components)
            }
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
            Self::Gmm(config) => {
                Head::Gmm(GmmHead::init(config, d_model, n_actions, device, generator))
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
    /// See [`GmmHead`].
    Gmm(GmmHead),
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
            Self::Gmm(head) => head.forward(hidden),
        }
    }

    /// The head's own order of the actions, `None` when it is the environment's.
    pub fn action_order(&self) -> Option<&ActionOrder> {
        match self {
            Self::Linear(_) => None,
            Self::Fourier(head) => head.action_order.as_ref(),
            Self::Gmm(head) => head.action_order.as_ref(),
        }
    }
}

/// The centres `b_j = -1 + (2j + 1)/m` of `m` bins on [-1, 1], column by column of a head's
/// logits.
///
/// `bin_of` names each column's bin; `None`: columns are bins.
fn bin_centres(m: usize, bin_of: Option<&[usize]>) -> Vec<f64> {
    (0..m)
        .map(|column| bin_of.map_or(column, |bins| bins[column]))
        .map(|bin| -1.0 + (2 * bin + 1) as f64 / m as f64)
        .collect()
}

/// # Errors
/// When the order is not of `n_actions` actions.
fn check_order(order: Option<&ActionOrder>, n_actions: usize) -> Result<(), ModelError> {
    match order {
        Some(order) if order.bin_of().len() != n_actions => Err(config_error(
            "head.action_order",
            format!("{} actions", order.bin_of().len()),
            "must order exactly the environment's actions",
        )),
        _ => Ok(()),
    }
}

/// What a head for real-valued actions loses on a batch.
pub struct HeadLoss {
    /// Each row's loss, `[rows]`, to be averaged.
    pub rows: Tensor<1>,
    /// Regularisation of each row, `[rows]`, to be averaged and added to the loss.
    pub regularization: Option<Tensor<1>>,
}

/// Squared error of each row, averaged over dimensions.
fn mean_squared_error(predictions: Tensor<2>, targets: Tensor<2>) -> HeadLoss {
    let rows = (predictions - targets).square().mean_dim(1).squeeze_dim::<1>(1);
    HeadLoss { rows, regularization: None }
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
