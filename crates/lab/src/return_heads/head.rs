//! [`ReturnHead`]: the heads that are compared, and what each learns by.
//!
//! Most are heads of the library with their own loss. HL-Gauss (Farebrother et al. 2024, "Stop
//! Regressing") is the softmax on bins, learned from bins smoothed by a Gaussian; the expectile
//! is the head of one number, learned by an asymmetric squared error.

use std::{fmt, str::FromStr};

use burn::tensor::{Tensor, TensorData, activation::log_softmax};
use overtone_model::head::{
    ActedRows, BinnedConfig, BinsHeadConfig, Domain, FourierLikelihoodConfig, GaussianConfig,
    GaussianMixture, GmmLikelihoodConfig, Head, HeadConfig, LinearConfig, PointwiseConfig,
};

/// Bins of the softmax and of HL-Gauss.
pub const BINS: usize = 120;
/// The deviation of HL-Gauss's targets, in bins.
const SMOOTHING: f64 = 0.75;
/// What the expectile's loss weighs errors above the prediction with.
const EXPECTILE: f64 = 0.99;
/// Frequencies of the Fourier likelihoods.
const FREQUENCIES: usize = 12;
/// Where the Fourier likelihood with a margin has its ends.
const MARGIN: f64 = 0.8;

/// How a distribution of returns, or one number of it, is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReturnHead {
    /// Twelve frequencies whose period is [-1, 1].
    Fourier,
    /// The same, the returns put on [-0.8, 0.8] of the period: best and worst are no neighbours.
    FourierMargin,
    /// The same, [-1, 1] being half of the period.
    FourierHalf,
    /// Bins of one width.
    Softmax,
    /// The same bins, learned from smoothed targets.
    HlGauss,
    /// Five Gaussians of equal weight, each as wide everywhere.
    Gmm,
    /// One Gaussian, as wide everywhere.
    Gaussian,
    /// One number.
    Expectile,
}

impl ReturnHead {
    /// Every head, in the order of the tables.
    pub const ALL: [Self; 8] = [
        Self::Fourier,
        Self::FourierMargin,
        Self::FourierHalf,
        Self::Softmax,
        Self::HlGauss,
        Self::Gmm,
        Self::Gaussian,
        Self::Expectile,
    ];

    /// The word that asks for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fourier => "fourier12",
            Self::FourierMargin => "fourier12-margin",
            Self::FourierHalf => "fourier12-half",
            Self::Softmax => "softmax120",
            Self::HlGauss => "hl-gauss120",
            Self::Gmm => "gmm5",
            Self::Gaussian => "gaussian",
            Self::Expectile => "expectile99",
        }
    }

    /// Whether it tells a distribution.
    pub fn has_density(self) -> bool {
        self != Self::Expectile
    }

    /// The library's head that gives its numbers.
    pub fn config(self) -> HeadConfig {
        let fourier = FourierLikelihoodConfig::new(FREQUENCIES);
        match self {
            Self::Fourier | Self::FourierMargin => HeadConfig::FourierLikelihood(fourier),
            Self::FourierHalf => HeadConfig::FourierLikelihood(FourierLikelihoodConfig {
                domain: Domain::HalfRange,
                ..fourier
            }),
            Self::Softmax | Self::HlGauss => {
                let head = BinsHeadConfig::Linear(LinearConfig {});
                HeadConfig::Binned(BinnedConfig { bins: BINS, head })
            }
            Self::Gmm => HeadConfig::GmmLikelihood(GmmLikelihoodConfig {
                components: 5,
                ..Default::default()
            }),
            Self::Gaussian => HeadConfig::Gaussian(GaussianConfig::default()),
            Self::Expectile => HeadConfig::Pointwise(PointwiseConfig {}),
        }
    }

    /// What returns are multiplied by before the head reads them.
    fn stretch(self) -> f64 {
        if self == Self::FourierMargin { MARGIN } else { 1.0 }
    }

    /// What is descended, `[1]`.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, width]`
    /// - `told`: as many returns, in [-1, 1]
    pub fn loss(self, head: &Head, hidden: Tensor<2>, told: &[f32]) -> Tensor<1> {
        let device = hidden.device();
        let rows = told.len();
        match (self, head) {
            (Self::HlGauss, Head::Binned(head)) => {
                let targets: Vec<f32> = told.iter().flat_map(|&z| smoothed(f64::from(z))).collect();
                let targets = TensorData::new(targets, [rows, BINS]);
                let log_probs = log_softmax(head.forward(hidden).logits, 1);
                let product = log_probs * Tensor::from_data(targets, &device);
                product.sum_dim(1).neg().mean()
            }
            (Self::Expectile, Head::Pointwise(head)) => {
                let told = TensorData::new(told.to_vec(), [rows, 1]);
                let error = Tensor::<2>::from_data(told, &device) - head.forward(hidden);
                asymmetric(error).mean()
            }
            _ => self.rows(head, hidden, told).mean(),
        }
    }

    /// The log density of each return, in nats for a unit of `z`; `None` without a distribution.
    ///
    /// # Shapes
    /// - as of [`loss`](Self::loss)
    pub fn log_density(self, head: &Head, hidden: Tensor<2>, told: &[f32]) -> Option<Vec<f64>> {
        // Bins are told as the probability of one; in it, values are equally likely.
        let unit = match self {
            Self::Softmax | Self::HlGauss => (BINS as f64 / 2.0).ln(),
            Self::Expectile => return None,
            _ => self.stretch().ln(),
        };
        let rows = self.rows(head, hidden, told).into_data();
        Some(rows.iter::<f64>().map(|nats| unit - nats).collect())
    }

    /// The `q`-quantile of each row, in [-1, 1]; where there is no distribution, the number.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, width]`
    pub fn quantiles(self, head: &Head, hidden: Tensor<2>, qs: &[f64]) -> Vec<Vec<f64>> {
        let rows = hidden.dims()[0];
        let Some(decisions) = head.decide(hidden).numbers() else { return Vec::new() };
        let quantile = |row, q| decisions.quantile(row, q)[0] / self.stretch();
        let of_row = |row| qs.iter().map(|&q| quantile(row, q).clamp(-1.0, 1.0)).collect();
        (0..rows).map(of_row).collect()
    }

    /// The library's loss of each row.
    fn rows(self, head: &Head, hidden: Tensor<2>, told: &[f32]) -> Tensor<1> {
        let stretch = self.stretch() as f32;
        let told: Vec<f32> = told.iter().map(|z| z * stretch).collect();
        let told = TensorData::new(told, [hidden.dims()[0], 1]);
        let told = Tensor::from_data(told, &hidden.device());
        head.loss(hidden, ActedRows::Continuous(told)).rows
    }
}

/// `|τ − 1(e < 0)| e²`.
fn asymmetric(error: Tensor<2>) -> Tensor<2> {
    let is_below = error.clone().lower_elem(0.0).float();
    let weight = is_below * (1.0 - 2.0 * EXPECTILE) + EXPECTILE;
    weight * error.square()
}

/// The probability of each of [`BINS`] bins under a Gaussian around `z`, cut to [-1, 1].
fn smoothed(z: f64) -> Vec<f32> {
    let width = 2.0 / BINS as f64;
    let gaussian = GaussianMixture { means: vec![z], stds: vec![SMOOTHING * width], weights: None };
    let below: Vec<f64> = (0..=BINS)
        .map(|edge| -1.0 + width * edge as f64)
        .map(|edge| match edge - z {
            // Ten deviations away nothing is left.
            away if away < -10.0 * SMOOTHING * width => 0.0,
            away if away > 10.0 * SMOOTHING * width => 1.0,
            _ => gaussian.cdf(edge),
        })
        .collect();
    let total = below[BINS] - below[0];
    below.windows(2).map(|edges| ((edges[1] - edges[0]) / total) as f32).collect()
}

impl fmt::Display for ReturnHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// A word that is no head.
#[derive(Debug, thiserror::Error)]
#[error("there is no return head {word:?}; choose among {}", ReturnHead::ALL.map(ReturnHead::word).join(", "))]
pub struct UnknownReturnHead {
    word: String,
}

impl FromStr for ReturnHead {
    type Err = UnknownReturnHead;

    fn from_str(word: &str) -> Result<Self, UnknownReturnHead> {
        let known = Self::ALL.into_iter().find(|head| head.word() == word);
        known.ok_or_else(|| UnknownReturnHead { word: word.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn smoothed_targets_are_distributions_around_their_value() {
        for z in [-1.0, -0.995, 0.0, 0.31, 1.0] {
            let probs = smoothed(z);
            let sum: f64 = probs.iter().map(|&p| f64::from(p)).sum();
            assert!((sum - 1.0).abs() < 1e-5, "{z}: {sum}");
            let centre = |bin: usize| -1.0 + (2 * bin + 1) as f64 / BINS as f64;
            let mean: f64 = probs.iter().enumerate().map(|(j, &p)| f64::from(p) * centre(j)).sum();
            // A cut Gaussian leans inwards by up to 0.8 deviations.
            let most = if z.abs() > 0.9 { 0.015 } else { 1e-4 };
            assert!((mean - z).abs() < most, "{z}: {mean}");
        }
        // By hand at an edge between bins: Φ(1/.75) − Φ(0) for each neighbour.
        assert!((smoothed(0.0)[BINS / 2] - 0.408_789).abs() < 1e-5, "{}", smoothed(0.0)[60]);
    }

    /// Of returns 0 and 1 in equal parts the .99-expectile is .99.
    #[test]
    fn the_expectile_of_two_values() {
        let loss = |prediction: f64| -> f64 {
            let errors = [-prediction as f32, (1.0 - prediction) as f32];
            let errors = Tensor::<2>::from_data([[errors[0]], [errors[1]]], &Device::flex());
            asymmetric(errors).mean().into_scalar()
        };
        assert!(loss(0.99) < loss(0.985) && loss(0.99) < loss(0.995));
    }

    #[test]
    fn words_are_read_back() {
        for head in ReturnHead::ALL {
            assert_eq!(head.to_string().parse::<ReturnHead>().unwrap(), head);
        }
        let refused = "softmax".parse::<ReturnHead>().unwrap_err().to_string();
        assert!(refused.contains("softmax120"), "{refused}");
    }
}
