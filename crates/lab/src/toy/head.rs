//! The heads: losses and distributions from the outputs of the network's last layer, by the
//! functions of `overtone-model`.

use std::fmt;

use burn::tensor::{Int, Tensor, TensorData, activation::softmax};
use overtone_model::head::{
    Domain, MixtureLayout, MixtureStd, MixtureWeights, Regularizer, cross_entropy,
    fourier::{self, KAPPA},
    fourier_likelihood::{DENSITY_FLOOR, density},
};

use super::data::{BINS, bin_centre};

/// Divides initial weights and biases of the Fourier head, as in the reference.
const FOURIER_DIVISOR: f64 = 100.0;

/// A head and its options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HeadKind {
    /// Logits of the bins.
    Linear,
    /// A density of N frequencies: on bins, or of `z` itself.
    Fourier {
        /// N.
        frequencies: usize,
        /// γ of the reference's regulariser.
        gamma: f64,
        /// Whether it learns `z` itself.
        likelihood: bool,
    },
    /// A mixture of Gaussians: on bins, or of `z` itself.
    Gmm {
        /// Their number.
        components: usize,
        /// Whether it learns `z` itself.
        likelihood: bool,
    },
    /// One number, by squared error: it can only learn the mean.
    Pointwise,
}

/// What a loss compares with, a number for each row.
#[derive(Clone, Debug)]
pub struct Targets {
    /// The bin of `z`.
    pub bins: Tensor<1, Int>,
    /// `z` for likelihood heads, else the centre of its bin.
    pub values: Tensor<1>,
}

impl HeadKind {
    /// N and γ, when there are frequencies.
    pub fn series(self) -> Option<(usize, f64)> {
        match self {
            Self::Fourier { frequencies, gamma, .. } => Some((frequencies, gamma)),
            _ => None,
        }
    }

    /// Whether it learns `z` itself, from `x` and `y` themselves.
    pub fn is_likelihood(self) -> bool {
        matches!(self, Self::Fourier { likelihood: true, .. } | Self::Gmm { likelihood: true, .. })
    }

    /// Outputs of the network's last layer.
    pub fn outputs(self) -> usize {
        match self {
            Self::Linear => BINS,
            Self::Fourier { frequencies, .. } => 2 * (frequencies + 1),
            Self::Gmm { components, .. } => components,
            Self::Pointwise => 1,
        }
    }

    /// Divides the last layer's initial weights and biases.
    pub fn divisor(self) -> f64 {
        if self.series().is_some() { FOURIER_DIVISOR } else { 1.0 }
    }

    /// Standard deviations before the softplus, one for each Gaussian: on bins of one bin's
    /// width, else `ln 2`, which makes 1.1. Both are the reference's.
    pub fn raw_stds(self) -> Vec<f32> {
        match self {
            Self::Gmm { components, likelihood } => {
                let raw = if likelihood { 2f64.ln() } else { (2.0 / BINS as f64).exp_m1().ln() };
                vec![raw as f32; components]
            }
            _ => Vec::new(),
        }
    }

    /// The loss of each row in nats (squared error for pointwise regression), and the
    /// regulariser of each row.
    ///
    /// # Shapes
    /// - `outputs`: `[rows, outputs]`, of a mixture `[rows, 2 · components]`: raw standard
    ///   deviations behind the means
    pub fn losses(self, outputs: Tensor<2>, targets: &Targets) -> (Tensor<1>, Option<Tensor<1>>) {
        let regularizer = match self.series() {
            Some((_, gamma)) if gamma > 0.0 => {
                let scale = gamma * Regularizer::Reference.scale(BINS);
                Some(fourier::roughness(outputs.clone()) * scale)
            }
            _ => None,
        };
        let rows = match self {
            Self::Fourier { likelihood: true, .. } => {
                let density = density(outputs, targets.values.clone(), Domain::Periodic);
                (density + DENSITY_FLOOR).log().neg()
            }
            Self::Gmm { likelihood: true, .. } => {
                let z = targets.values.clone().unsqueeze_dim::<2>(1).unsqueeze_dim::<3>(2);
                let density = self.mixture_density(outputs, z).squeeze_dim::<1>(1);
                (density + DENSITY_FLOOR).log().neg()
            }
            Self::Pointwise => (outputs.squeeze_dim::<1>(1) - targets.values.clone()).square(),
            _ => cross_entropy(self.logits(outputs, BINS), targets.bins.clone()),
        };
        (rows, regularizer)
    }

    /// Probabilities of `m` bins, row by row. Those of a likelihood head are its densities at
    /// the centres times the bins' width, which need not add up to 1; those of pointwise
    /// regression are all in the bin of the prediction.
    pub fn probs(self, outputs: Tensor<2>, m: usize) -> Vec<f64> {
        let read = |tensor: Tensor<2>| tensor.into_data().iter::<f64>().collect::<Vec<_>>();
        match self {
            // `ln(y + κ)`, where `y = p(b) · 2/m`: there are more bins than frequencies.
            Self::Fourier { likelihood: true, .. } => {
                read(self.logits(outputs, m).exp()).iter().map(|y| y - KAPPA).collect()
            }
            Self::Gmm { likelihood: true, .. } => {
                read(self.mixture_density(outputs.clone(), centres(m, &outputs)) * (2.0 / m as f64))
            }
            Self::Pointwise => {
                let mut probs = Vec::new();
                for prediction in read(outputs) {
                    let bin = ((prediction + 1.0) * 0.5 * m as f64).max(0.0) as usize;
                    probs.extend((0..m).map(|j| f64::from(u8::from(j == bin.min(m - 1)))));
                }
                probs
            }
            _ => read(softmax(self.logits(outputs, m), 1)),
        }
    }

    /// Logits of `m` bins, `[rows, m]`.
    fn logits(self, outputs: Tensor<2>, m: usize) -> Tensor<2> {
        match self {
            Self::Fourier { .. } => fourier::logits(outputs, m, None, Domain::Periodic),
            Self::Gmm { .. } => {
                let centres = centres(m, &outputs);
                (self.mixture_density(outputs, centres) + KAPPA).log()
            }
            Self::Linear | Self::Pointwise => outputs,
        }
    }

    /// Of each row at its own point `[rows, 1, 1]`, or at all points `[1, m, 1]`.
    fn mixture_density(self, outputs: Tensor<2>, points: Tensor<3>) -> Tensor<2> {
        let layout = MixtureLayout {
            dimensions: 1,
            components: outputs.dims()[1] / 2,
            weights: MixtureWeights::Equal,
            // Shared by all rows of a run; a stack has several runs.
            std: MixtureStd::State,
            fixed_std: 0.0,
        };
        layout.read(outputs, None).density(points)
    }
}

/// `[1, m, 1]`
fn centres(m: usize, like: &Tensor<2>) -> Tensor<3> {
    let centres: Vec<f64> = (0..m).map(|bin| bin_centre(bin, m)).collect();
    Tensor::from_data(TensorData::new(centres, [1, m, 1]), (&like.device(), like.dtype()))
}

/// `fourier-12 γ=1e-6`
impl fmt::Display for HeadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Linear => "linear",
            Self::Fourier { .. } => "fourier",
            Self::Gmm { .. } => "gmm",
            Self::Pointwise => "pointwise",
        })?;
        f.write_str(if self.is_likelihood() { "-mle" } else { "" })?;
        match self.series() {
            Some((n, 0.0)) => write!(f, "-{n} γ=0"),
            Some((n, gamma)) => write!(f, "-{n} γ={gamma:e}"),
            None => Ok(()),
        }
    }
}
