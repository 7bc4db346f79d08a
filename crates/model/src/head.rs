//! Action heads: conversion of a token to an action.
//!
//! There are two kinds, described in [`kinds`]. A new head is one file that implements the traits
//! of its kind, a line with the file's name, and a line in the list below. That line has the head's
//! word in configurations, the file, the options and the head. (`head=fourier` is one head for
//! discrete and another for continuous actions.) `--help` shows the docs of that line and of the
//! options.
//!
//! | head | output | loss |
//! | --- | --- | --- |
//! | [`LinearHead`], [`FourierHead`], [`GmmHead`] | a probability for each discrete action | cross-entropy |
//! | [`PointwiseHead`], and its tanh | one number for each dimension | squared error |
//! | [`GaussianHead`] | for each dimension one bump, with one width for all inputs | negative log-likelihood |
//! | [`GmmLikelihoodHead`] | G bumps, by default with one width for all inputs | negative log-likelihood |
//! | [`FourierLikelihoodHead`] | any density of N frequencies | negative log-likelihood |
//! | [`BinnedHead`] | a probability for each of m bins | cross-entropy |
//!
//! All learn with [`Head::loss`] and act with [`Head::decide`].
//!
//! A head for discrete actions returns logits by **environment action id**. A head with another
//! order of bins (the Fourier head on Atari) permutes internally, so targets, inputs and chosen
//! actions all use the environment's ids.

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
    ActedRows, BinsOptions, HeadLoss, HeadOutput, NOT_ALLOWED, NumbersOptions, OnBins, OnNumbers,
    cross_entropy, penalty,
};
pub use linear::{LinearConfig, LinearHead};
pub use mixture::{GaussianMixture, MixtureLayout, MixtureStd, MixtureWeights};
pub use pointwise::{PointwiseConfig, PointwiseHead, TanhConfig};

use burn::module::Module;
use overtone_core::ActionSpace;
use serde::{Deserialize, Serialize};

use self::{
    decisions::{Points, read},
    kinds::{bins_loss, mean_squared_error},
};
use crate::{
    error::ModelError,
    options::{self, Choice},
    parameters::init::Init,
};

heads! {
    bins {
        /// Discrete actions, or bins: one affine layer without bias.
        "linear" linear: Linear(LinearConfig => LinearHead),
        /// Discrete actions in an order, or bins: a Fourier series.
        "fourier" fourier: Fourier(FourierHeadConfig => FourierHead),
        /// Discrete actions in an order, or bins: a mixture of Gaussians.
        "gmm" gmm: Gmm(GmmHeadConfig => GmmHead),
    }
    numbers {
        /// Continuous actions: the tanh of an affine layer, by squared error, as in the reference.
        "tanh" pointwise: Tanh(TanhConfig => PointwiseHead),
        /// Continuous actions: an affine layer, by squared error.
        "pointwise" pointwise: Pointwise(PointwiseConfig => PointwiseHead),
        /// Continuous actions: a diagonal Gaussian.
        "gaussian" gaussian: Gaussian(GaussianConfig => GaussianHead),
        /// Continuous actions: a Fourier series for each dimension.
        "fourier" fourier_likelihood: FourierLikelihood(FourierLikelihoodConfig => FourierLikelihoodHead),
        /// Continuous actions: a mixture of Gaussians for each dimension.
        "gmm" gmm_likelihood: GmmLikelihood(GmmLikelihoodConfig => GmmLikelihoodHead),
        /// Continuous actions with each dimension cut into bins: a head on bins, and their number.
        binned: Binned(BinnedConfig => BinnedHead),
    }
}

/// The centres `b_j = -1 + (2j + 1)/m` of `m` bins on [-1, 1], column by column of a head's
/// logits.
///
/// `bin_of` contains the bin of each column; `None`: columns are bins.
fn bin_centres(m: usize, bin_of: Option<&[usize]>) -> Vec<f64> {
    (0..m)
        .map(|column| bin_of.map_or(column, |bins| bins[column]))
        .map(|bin| -1.0 + (2 * bin + 1) as f64 / m as f64)
        .collect()
}
