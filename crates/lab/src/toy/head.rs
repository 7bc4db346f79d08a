//! Heads: from the network's results to a loss and its gradient, and to distributions.
//!
//! Quantised heads learn the bin of `z`, likelihood heads `z` itself. One form serves both
//! for a series of frequencies ([`fourier`]) and for a mixture of Gaussians ([`mixture`]).

pub mod fourier;
pub mod linear;
pub mod mixture;
pub mod pointwise;

#[cfg(test)]
mod agreement;

use std::fmt;

use fourier::Fourier;
use linear::Linear;
use mixture::Mixture;
use pointwise::Pointwise;

use super::data::BINS;
use super::network::ForLoss;
use super::number::Number;

/// Which head, with its options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HeadKind {
    /// Logits of the bins.
    Linear,
    /// A density of N frequencies, read at the bins' centres.
    Fourier {
        /// N, below the number of bins.
        frequencies: usize,
        /// γ of the reference's regulariser.
        gamma: f64,
    },
    /// Gaussians, read at the bins' centres.
    Gmm {
        /// Their number.
        components: usize,
    },
    /// The centre of the bin itself, by squared error.
    Pointwise,
    /// A density of N frequencies.
    FourierLikelihood {
        /// N.
        frequencies: usize,
        /// γ of the reference's regulariser.
        gamma: f64,
    },
    /// Gaussians.
    GmmLikelihood {
        /// Their number.
        components: usize,
    },
}

impl HeadKind {
    /// The family's name, for tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Fourier { .. } => "fourier",
            Self::Gmm { .. } => "gmm",
            Self::Pointwise => "pointwise",
            Self::FourierLikelihood { .. } => "fourier-mle",
            Self::GmmLikelihood { .. } => "gmm-mle",
        }
    }

    /// N, when there are frequencies.
    pub fn frequencies(self) -> Option<usize> {
        match self {
            Self::Fourier { frequencies, .. } | Self::FourierLikelihood { frequencies, .. } => {
                Some(frequencies)
            }
            _ => None,
        }
    }

    /// γ, when there are frequencies.
    pub fn gamma(self) -> Option<f64> {
        match self {
            Self::Fourier { gamma, .. } | Self::FourierLikelihood { gamma, .. } => Some(gamma),
            _ => None,
        }
    }
}

/// `fourier-12 γ=1e-6`
impl fmt::Display for HeadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let (Some(frequencies), Some(gamma)) = (self.frequencies(), self.gamma()) {
            write!(f, "-{frequencies} γ={}", gamma_text(gamma))?;
        }
        Ok(())
    }
}

/// γ as it is written: `0`, `1e-6`.
pub fn gamma_text(gamma: f64) -> String {
    if gamma == 0.0 { "0".into() } else { format!("{gamma:e}") }
}

/// What a loss compares with, row by row.
#[derive(Clone, Copy, Debug)]
pub struct Targets<'a, T> {
    /// The bin of `z`, for quantised heads.
    pub bins: &'a [usize],
    /// `z` for likelihood heads; the centre of its bin for pointwise regression.
    pub values: &'a [T],
}

/// A head with its constants.
#[derive(Clone, Debug)]
pub enum Head<T> {
    /// See [`Linear`].
    Linear(Linear),
    /// See [`Fourier`].
    Fourier(Fourier<T>),
    /// See [`Mixture`].
    Mixture(Mixture<T>),
    /// See [`Pointwise`].
    Pointwise(Pointwise),
}

impl<T: Number> Head<T> {
    /// The head of a kind, on [`BINS`] bins where it has bins.
    pub fn new(kind: HeadKind) -> Self {
        match kind {
            HeadKind::Linear => Self::Linear(Linear { bins: BINS }),
            HeadKind::Fourier { frequencies, gamma } => {
                Self::Fourier(Fourier::quantised(frequencies, gamma, BINS))
            }
            HeadKind::Gmm { components } => Self::Mixture(Mixture::quantised(components, BINS)),
            HeadKind::Pointwise => Self::Pointwise(Pointwise),
            HeadKind::FourierLikelihood { frequencies, gamma } => {
                Self::Fourier(Fourier::likelihood(frequencies, gamma))
            }
            HeadKind::GmmLikelihood { components } => {
                Self::Mixture(Mixture::likelihood(components))
            }
        }
    }

    /// Results of the network that it needs.
    pub fn outputs(&self) -> usize {
        match self {
            Self::Linear(head) => head.bins,
            Self::Fourier(head) => head.outputs(),
            Self::Mixture(head) => head.components(),
            Self::Pointwise(_) => 1,
        }
    }

    /// Initial values of parameters beside the network's.
    pub fn free(&self) -> Vec<f64> {
        match self {
            Self::Mixture(head) => head.free(),
            _ => Vec::new(),
        }
    }

    /// Divides the last layer's initial weights and biases.
    pub fn divisor(&self) -> f64 {
        match self {
            Self::Fourier(_) => fourier::DIVISOR,
            _ => 1.0,
        }
    }

    /// The mean loss of a batch; leaves its gradients in `parts`.
    pub fn loss(&mut self, parts: ForLoss<'_, T>, targets: Targets<'_, T>) -> f64 {
        match self {
            Self::Linear(head) => head.loss(parts, targets.bins),
            Self::Fourier(head) => head.loss(parts, targets),
            Self::Mixture(head) => head.loss(parts, targets),
            Self::Pointwise(head) => head.loss(parts, targets.values),
        }
    }

    /// Probabilities of the bins of each row, row after row; for pointwise regression all of
    /// it in the bin that holds the prediction. A likelihood head's are its densities at the
    /// centres of `m` bins times the bin's width, which need not add up to 1.
    ///
    /// # Shapes
    /// - `outputs`: `[rows, columns]`
    pub fn probs(&self, outputs: &[T], columns: usize, free: &[T], m: usize) -> Vec<f64> {
        match self {
            Self::Linear(head) => head.probs(outputs, columns),
            Self::Fourier(head) => head.probs(outputs, columns, m),
            Self::Mixture(head) => head.probs(outputs, columns, free, m),
            Self::Pointwise(head) => head.probs(outputs, columns, m),
        }
    }

    /// The density of each row at its own point; `None` for heads on bins.
    pub fn densities(
        &self,
        outputs: &[T],
        columns: usize,
        free: &[T],
        points: &[f64],
    ) -> Option<Vec<f64>> {
        match self {
            Self::Fourier(head) => head.densities(outputs, columns, points),
            Self::Mixture(head) => head.densities(outputs, columns, free, points),
            Self::Linear(_) | Self::Pointwise(_) => None,
        }
    }
}
