//! [`ReturnModel`]: the distribution of returns from an observation, which bounds an agent's target.
//!
//! A Decision Transformer with a target that no episode achieved from its state must extrapolate.
//! Here a perceptron predicts the distribution `p(ẑ | o)` of the transformer's return input `ẑ`
//! from an observation, by [HL-Gauss](ReturnModelConfig::hl_gauss). While acting, the agent is
//! conditioned on
//!
//! ```text
//! min(ẑ of the rest of the target, F⁻¹(q | o))
//! ```
//!
//! at each timestep of its context, where `F` is the cumulative distribution: a target that a state
//! does not allow becomes the `q`-quantile of the returns from similar states. With a target above
//! every recorded return, the agent is conditioned only on that quantile and does not need a
//! target. Lee et al. (2022, "Multi-Game Decision Transformers") condition their agents on expert
//! returns in this way.
//!
//! It shares no weights with the model of actions, and has its own loss and optimizer.

use burn::{
    module::Module,
    tensor::{Device, Tensor, TensorData, activation::log_softmax},
};
use overtone_core::{ActionSpace, ObservationSpace};
use overtone_kernels::{Form, stored::constant};
use serde::{Deserialize, Serialize};

use crate::{
    contexts::{Contexts, Observed},
    error::{ModelError, config_error},
    head::{BinnedConfig, BinnedHead, BinsHeadConfig, Head, HeadConfig, LinearConfig},
    parameters::{
        init::Init,
        weights::{self, NamedTensors},
    },
    perceptron::{Perceptron, PerceptronConfig},
};

/// Name prefix of the return model's tensors.
pub const PART: &str = "return_model";

/// Options of a [`ReturnModel`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReturnModelConfig {
    /// Hidden layers.
    pub n_layers: usize,
    /// Width of a hidden layer.
    pub width: usize,
    /// Conversion of the last layer to a distribution over [-1, 1]: a linear head on bins.
    pub head: HeadConfig,
    /// Standard deviation, in bins, of the Gaussian that spreads a return over bins.
    pub smoothing: f64,
}

impl ReturnModelConfig {
    /// Two hidden layers of 256, 1 % of the cost of the transformers that it is used with, and
    /// HL-Gauss (Imani and White 2018; a deviation of 0.75 bins as in Farebrother et al. 2024, "Stop
    /// regressing"): a softmax over 120 bins that learns
    ///
    /// ```text
    /// p_j = Φ((e_{j+1} - z) / σ) - Φ((e_j - z) / σ), divided by their sum over [-1, 1]
    /// ```
    ///
    /// for a return `z`, by cross-entropy; `e_j` are the bins' edges and σ is the deviation.
    pub fn hl_gauss() -> Self {
        let linear = BinsHeadConfig::Linear(LinearConfig {});
        let head = HeadConfig::Binned(BinnedConfig { bins: 120, head: linear });
        Self { n_layers: 2, width: 256, head, smoothing: 0.75 }
    }

    fn perceptron(&self) -> PerceptronConfig {
        PerceptronConfig {
            n_layers: self.n_layers,
            width: self.width,
            context_length: 1,
            dropout: 0.0,
            conditioning: None,
            head: self.head.clone(),
        }
    }

    /// Checks the values that the types do not.
    ///
    /// # Errors
    /// Names the first key with an invalid value.
    pub fn validate(&self, observations: &ObservationSpace) -> Result<(), ModelError> {
        if matches!(observations, ObservationSpace::Pixels { .. }) {
            let expected = "must be none: a return model reads vectors, not pixels";
            return Err(config_error("model.return_head", "set", expected));
        }
        let is_linear = |head: &BinnedConfig| matches!(head.head, BinsHeadConfig::Linear(_));
        if !matches!(&self.head, HeadConfig::Binned(head) if is_linear(head)) {
            let expected = "must be hl_gauss";
            return Err(config_error("model.return_head", self.head.name(), expected));
        }
        if !(self.smoothing > 0.0 && self.smoothing.is_finite()) {
            let expected = "must be a number of bins above 0";
            return Err(config_error("return_model.smoothing", self.smoothing, expected));
        }
        self.perceptron().validate(observations, &ActionSpace::unit(1))
    }
}

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct ReturnModel {
    /// A perceptron whose "action" is the return.
    pub perceptron: Perceptron,
    /// As in [`ReturnModelConfig`].
    pub smoothing: f64,
}

impl ReturnModel {
    /// A new model, initialised as a [`Perceptron`].
    ///
    /// # Errors
    /// When `config` is not valid for such observations.
    pub fn init(
        config: &ReturnModelConfig,
        observations: &ObservationSpace,
        init: &mut Init<'_>,
    ) -> Result<Self, ModelError> {
        config.validate(observations)?;
        let smoothing = config.smoothing;
        let config = config.perceptron();
        let perceptron = Perceptron::init(&config, observations, &ActionSpace::unit(1), init)?;
        Ok(Self { perceptron, smoothing })
    }

    /// A new model on `device` with these weights, which must fit `config` exactly.
    ///
    /// # Errors
    /// As [`Model::from_weights`](crate::Model::from_weights).
    pub fn from_weights(
        config: &ReturnModelConfig,
        observations: &ObservationSpace,
        tensors: &NamedTensors,
        device: &Device,
    ) -> Result<Self, ModelError> {
        if config.n_layers > tensors.len() {
            let expected = format!("the weights are {} tensors, too few", tensors.len());
            return Err(config_error("return_model.n_layers", config.n_layers, expected));
        }
        let described = Self::init(config, observations, &mut Init::shapes(device))?;
        weights::restore(described, tensors)
    }

    /// Mean loss over the real timesteps of contexts with conditioned returns, `[1]`, in nats.
    /// Contexts of a top percent do not count, because the distribution is over the whole dataset.
    ///
    /// # Panics
    /// When the observations are not vectors: a caller's bug.
    pub fn mean_loss(&self, contexts: &Contexts) -> Tensor<1> {
        let Observed::Vectors(observations) = &contexts.observations else {
            panic!("a return model reads vectors");
        };
        let rows = self.loss(observations.clone(), contexts.returns_to_go.clone());
        let weights = contexts.return_weights(&rows.device(), rows.dtype());
        (rows * weights).sum()
    }

    /// Loss of each row, in nats.
    ///
    /// # Shapes
    /// - `observations`: `[batch, time, width]`
    /// - `returns`: `[batch, time]`; values beyond [-1, 1] are clamped
    /// - result: `[batch · time]`
    pub fn loss(&self, observations: Tensor<3>, returns: Tensor<2>) -> Tensor<1> {
        let [batch, time] = returns.dims();
        let returns = returns.clamp(-1.0, 1.0).reshape([batch * time, 1]);
        let head = self.head();
        let log_probs = log_softmax(head.forward(self.hidden(observations)).logits, 1);
        let probabilities = bin_probabilities(returns, head.bins, self.smoothing);
        (probabilities * log_probs).sum_dim(1).squeeze_dim::<1>(1).neg()
    }

    fn head(&self) -> &BinnedHead {
        match &self.perceptron.head {
            Head::Binned(head) => head,
            _ => panic!("a head on bins: the configuration was checked"),
        }
    }

    /// The `q`-quantile of the returns of each observation, computed on the host.
    ///
    /// # Shapes
    /// - `observations`: `[batch, time, width]`
    /// - result: `[batch, time]`, in [-1, 1]; NaN if the weights are broken
    pub fn quantiles(&self, observations: Tensor<3>, q: f64) -> Tensor<2> {
        let [batch, time, _] = observations.dims();
        let (device, dtype) = (observations.device(), observations.dtype());
        let returns = self.head().distributions(self.hidden(observations));
        let quantiles: Vec<f32> =
            (0..batch * time).map(|row| returns.quantile(row, q) as f32).collect();
        Tensor::from_data(TensorData::new(quantiles, [batch, time]), (&device, dtype))
    }

    /// The same with its operations in this form.
    pub fn with_form(self, form: Form) -> Self {
        Self { perceptron: Perceptron { form, ..self.perceptron }, ..self }
    }

    /// The head's input for each observation, `[batch · time, width]`.
    ///
    /// # Shapes
    /// - `observations`: `[batch, time, width]`
    pub fn hidden(&self, observations: Tensor<3>) -> Tensor<2> {
        let [batch, time, width] = observations.dims();
        self.perceptron.through_layers(observations.reshape([batch * time, width]), None)
    }
}

/// Probabilities of `m` bins on [-1, 1] under Gaussians around `returns` with a deviation of
/// `smoothing` bins, normalized over [-1, 1].
///
/// # Shapes
/// - `returns`: `[rows, 1]`
/// - result: `[rows, m]`
fn bin_probabilities(returns: Tensor<2>, m: usize, smoothing: f64) -> Tensor<2> {
    let width = 2.0 / m as f64;
    let edges = (0..=m).map(|edge| edge as f64 * width - 1.0).collect();
    let edges = constant(edges, [1, m + 1], &returns.device(), returns.dtype());
    let below = ((edges - returns) / (smoothing * width * std::f64::consts::SQRT_2)).erf();
    let probabilities = below.clone().narrow(1, 1, m) - below.narrow(1, 0, m);
    let sum = probabilities.clone().sum_dim(1);
    probabilities / sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    #[test]
    fn bin_probabilities_are_those_of_a_gaussian() {
        let returns = Tensor::from_data([[0.25f32], [1.0]], &Device::flex());
        let got: Vec<f32> = bin_probabilities(returns, 4, 0.5).into_data().iter().collect();
        // Bins 0.5 wide and a deviation of 0.25. Around 0.25, a bin's centre, Φ(±1) and Φ(±3):
        // 0.0013, 0.1573, 0.6827 and 0.1573. The last of these is cut off at 1, three deviations
        // away. At the end, half of the Gaussian remains: Φ(0) - Φ(-2) of 0.5.
        let inside = 0.998_65;
        for (got, expected) in got[..4].iter().zip([0.001_318, 0.157_305, 0.682_689, 0.157_305]) {
            assert!((f64::from(*got) - expected / inside).abs() < 2e-4, "{got} {expected}");
        }
        for (got, expected) in got[4..].iter().zip([0.0, 0.000_063, 0.045_437, 0.954_500]) {
            assert!((f64::from(*got) - expected).abs() < 2e-4, "{got} {expected}");
        }
    }
}
