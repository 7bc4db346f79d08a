//! Action heads: from a token to an action.
//!
//! There are two kinds, described in [`kinds`]. A new head is one file that implements the traits
//! of its kind, a line that names the file, and a line in the list below.
//!
//! | head | says | loss |
//! | --- | --- | --- |
//! | [`LinearHead`], [`FourierHead`], [`GmmHead`] | how probable each of a list of actions is | cross-entropy |
//! | [`TanhHead`], [`PointwiseHead`] | one number for each dimension | squared error |
//! | [`GaussianHead`] | for each dimension one bump, as wide everywhere | negative log-likelihood |
//! | [`GmmLikelihoodHead`] | G bumps, as wide everywhere | negative log-likelihood |
//! | [`FourierLikelihoodHead`] | any shape of N frequencies | negative log-likelihood |
//! | [`BinnedHead`] | a probability for each of m bins | cross-entropy |
//!
//! All learn by [`Head::loss`] and act by [`Head::decide`].
//!
//! A head on a list of actions returns logits by **environment action id**. One that orders its
//! bins otherwise (the Fourier head on Atari) permutes inside, so targets, inputs and played
//! actions all speak the environment's ids. Where real values are to be categories,
//! [`Binning`] says which value is in which bin.

#[macro_use]
mod list;

pub mod action_order;
pub mod binned;
pub mod binning;
pub mod decisions;
pub mod fourier;
pub mod fourier_alone;
pub mod fourier_density;
pub mod fourier_likelihood;
pub mod fourier_options;
pub mod gaussian;
pub mod gmm;
pub mod gmm_likelihood;
pub mod kinds;
pub mod linear;
pub mod pointwise;
pub mod quadrature;
pub mod tanh;

pub use action_order::ActionOrder;
pub use binned::{BinnedConfig, BinnedHead};
pub use binning::{Binning, BinningConfig, Precision};
pub use decisions::{Decisions, LogitsDecisions, Marginals, NumbersDecisions};
pub use fourier::{FourierHead, FourierHeadConfig};
pub use fourier_density::FourierDensity;
pub use fourier_likelihood::{FourierLikelihoodConfig, FourierLikelihoodHead};
pub use fourier_options::{Domain, InitialCoefficients, Regularizer};
pub use gaussian::{GaussianConfig, GaussianHead};
pub use gmm::{GmmHead, GmmHeadConfig};
pub use gmm_likelihood::{GaussianMixture, GmmLikelihoodConfig, GmmLikelihoodHead};
pub use kinds::{
    ActedRows, BinsOptions, HeadLoss, HeadOutput, NumbersOptions, OnBins, OnNumbers, cross_entropy,
};
pub use linear::{LinearConfig, LinearHead};
pub use pointwise::{PointwiseConfig, PointwiseHead};
pub use tanh::{TanhConfig, TanhHead};

use burn::module::{Module, ParamId};
use overtone_core::ActionSpace;
use serde::{Deserialize, Serialize};

use self::{
    decisions::{Points, read},
    kinds::{bins_loss, mean_squared_error},
};
use crate::{
    error::{ModelError, config_error},
    init::Init,
    matrices::Matrices,
};

heads! {
    bins {
        /// One affine layer without bias.
        linear: Linear(LinearConfig => LinearHead),
        /// A density on [-1, 1] made of Fourier frequencies, read at the bin centres.
        fourier: Fourier(FourierHeadConfig => FourierHead),
        /// A mixture of Gaussians, read at the bin centres.
        gmm: Gmm(GmmHeadConfig => GmmHead),
    }
    numbers {
        /// `tanh` of an affine layer, squared error.
        tanh: Tanh(TanhConfig => TanhHead),
        /// An affine layer, squared error.
        pointwise: Pointwise(PointwiseConfig => PointwiseHead),
        /// A diagonal Gaussian.
        gaussian: Gaussian(GaussianConfig => GaussianHead),
        /// A density of Fourier frequencies for each number.
        fourier_likelihood: FourierLikelihood(FourierLikelihoodConfig => FourierLikelihoodHead),
        /// A mixture of Gaussians for each number.
        gmm_likelihood: GmmLikelihood(GmmLikelihoodConfig => GmmLikelihoodHead),
        /// Each number cut into bins.
        binned: Binned(BinnedConfig => BinnedHead),
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
