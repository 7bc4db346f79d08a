//! Action heads: from a token to an action.
//!
//! There are two kinds, described in [`kinds`]. A new head is one file that implements the traits
//! of its kind, a line that names the file, and its line in the list below: the word that chooses
//! it (`head=fourier` is one head for a list of actions and another for numbers), the file, the
//! options and the head. The doc of that line and those of the options are what `--help` shows.
//!
//! | head | says | loss |
//! | --- | --- | --- |
//! | [`LinearHead`], [`FourierHead`], [`GmmHead`] | how probable each of a list of actions is | cross-entropy |
//! | [`PointwiseHead`], and its tanh | one number for each dimension | squared error |
//! | [`GaussianHead`] | for each dimension one bump, as wide everywhere | negative log-likelihood |
//! | [`GmmLikelihoodHead`] | G bumps, by default as wide everywhere | negative log-likelihood |
//! | [`FourierLikelihoodHead`] | any shape of N frequencies | negative log-likelihood |
//! | [`BinnedHead`] | a probability for each of m bins | cross-entropy |
//!
//! All learn by [`Head::loss`] and act by [`Head::decide`].
//!
//! A head on a list of actions returns logits by **environment action id**. One that orders its
//! bins otherwise (the Fourier head on Atari) permutes inside, so targets, inputs and played
//! actions all speak the environment's ids.

#[macro_use]
mod list;

pub mod action_order;
pub mod binned;
pub mod categorical;
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
pub mod mixture;
pub mod pointwise;
pub mod quadrature;

pub use action_order::{ActionOrder, OrderConfig};
pub use binned::{BinnedConfig, BinnedHead};
pub use decisions::{Decisions, LogitsDecisions, Marginals, NumbersDecisions};
pub use fourier::{FourierHead, FourierHeadConfig};
pub use fourier_density::FourierDensity;
pub use fourier_likelihood::{FourierLikelihoodConfig, FourierLikelihoodHead};
pub use fourier_options::{Domain, InitialCoefficients, Regularizer};
pub use gaussian::{GaussianConfig, GaussianHead};
pub use gmm::{GmmHead, GmmHeadConfig};
pub use gmm_likelihood::{GmmLikelihoodConfig, GmmLikelihoodHead};
pub use kinds::{
    ActedRows, BinsOptions, HeadLoss, HeadOutput, NumbersOptions, OnBins, OnNumbers, cross_entropy,
};
pub use linear::{LinearConfig, LinearHead};
pub use mixture::{GaussianMixture, MixtureLayout, MixtureStd, MixtureWeights};
pub use pointwise::{PointwiseConfig, PointwiseHead, TanhConfig};

use burn::module::{Module, ParamId};
use overtone_core::ActionSpace;
use serde::{Deserialize, Serialize};

use self::{
    decisions::{Points, read},
    kinds::{bins_loss, mean_squared_error},
};
use crate::{
    error::ModelError,
    init::Init,
    matrices::Matrices,
    options::{self, Choice},
};

heads! {
    bins {
        /// A list of actions, or bins: one affine layer without bias.
        "linear" linear: Linear(LinearConfig => LinearHead),
        /// A list of actions in an order, or bins: a Fourier series.
        "fourier" fourier: Fourier(FourierHeadConfig => FourierHead),
        /// A list of actions in an order, or bins: a mixture of Gaussians.
        "gmm" gmm: Gmm(GmmHeadConfig => GmmHead),
    }
    numbers {
        /// Real values: the tanh of an affine layer, by squared error, as the reference.
        "tanh" pointwise: Tanh(TanhConfig => PointwiseHead),
        /// Real values: an affine layer, by squared error.
        "pointwise" pointwise: Pointwise(PointwiseConfig => PointwiseHead),
        /// Real values: a diagonal Gaussian.
        "gaussian" gaussian: Gaussian(GaussianConfig => GaussianHead),
        /// Real values: a Fourier series for each number.
        "fourier" fourier_likelihood: FourierLikelihood(FourierLikelihoodConfig => FourierLikelihoodHead),
        /// Real values: a mixture of Gaussians for each number.
        "gmm" gmm_likelihood: GmmLikelihood(GmmLikelihoodConfig => GmmLikelihoodHead),
        /// Each number cut into bins; chosen by a head on bins and their number.
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
