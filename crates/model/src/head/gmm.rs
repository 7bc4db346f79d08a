//! The Gaussian-mixture head on bins: the baseline of Gillman et al. 2025, Section 3.
//!
//! The density of a [`mixture`] is evaluated at the m bin centres, and the logits are
//! `ln(density + 1e-5)`; the softmax of the loss divides by their sum. By default, the weights are
//! equal and the standard deviations are parameters, as in the paper.
//!
//! As in the released code, and unlike in the Fourier head, the 1e-5 is added before the division
//! by the number of bins.

use burn::{
    module::{Module, Param},
    tensor::Tensor,
};
use overtone_kernels::stored::constant;

use super::{
    ActionOrder, BinsOptions, HeadOutput, OnBins, OrderConfig, bin_centres,
    fourier::KAPPA,
    mixture::{self, MixtureLayout, MixtureParameters, MixtureStd, MixtureWeights},
};
use crate::{error::ModelError, parameters::init::Init};

options! {
    /// Options of the Gaussian-mixture head.
    pub struct GmmHeadConfig {
        /// Number of Gaussians G; the paper's 2.
        pub components: usize = 2,
        /// Weights of the Gaussians. equal: 1/G each, as in the paper. learned: a softmax of an
        /// affine layer, an option of the reference's head for continuous actions.
        pub weights: MixtureWeights = MixtureWeights::Equal,
        /// Standard deviations of the Gaussians. shared: parameters, the same for every
        /// observation, as in the paper. fixed: always init_std, an option of the reference. state:
        /// from an affine layer, for noise that depends on the observation.
        pub std: MixtureStd = MixtureStd::Shared,
        /// Initial standard deviation. 0: the reference's. For m bins or discrete actions, that is
        /// 2/m, the width of a bin. For continuous actions it is ln 3, or 2 with std=fixed, which
        /// exceeds the distance of most actions.
        pub init_std: f64 = 0.0,
        /// Order of discrete actions along [-1, 1], as in the Fourier head.
        pub action_order: OrderConfig = OrderConfig::default(),
    }
}

impl BinsOptions for GmmHeadConfig {
    type Head = GmmHead;

    fn size(&self) -> Option<usize> {
        Some(self.components)
    }

    fn validate(&self, n: usize) -> Result<(), ModelError> {
        mixture::check(self.components, self.weights, self.init_std)?;
        self.action_order.check(n)
    }

    fn init(&self, d_model: usize, n: usize, init: &mut Init<'_>) -> GmmHead {
        let layout = self.layout(n);
        let MixtureParameters { weight, bias, raw_std } =
            layout.init(d_model, mixture::raw_std(layout.fixed_std), init);
        GmmHead {
            weight,
            bias,
            raw_std,
            n_actions: n,
            layout,
            action_order: self.action_order.bins(),
        }
    }

    fn order(&mut self) -> Option<&mut OrderConfig> {
        Some(&mut self.action_order)
    }
}

impl GmmHeadConfig {
    /// The layout of a head on `n` bins.
    pub fn layout(&self, n: usize) -> MixtureLayout {
        let &Self { components, weights, std, init_std, .. } = self;
        // One bin wide, as in the reference.
        let fixed_std = if init_std == 0.0 { 2.0 / n as f64 } else { init_std };
        MixtureLayout { dimensions: 1, components, weights, std, fixed_std }
    }
}

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct GmmHead {
    /// `[d_model, outputs]`: means, then the other inputs of the [layout](MixtureLayout).
    pub weight: Param<Tensor<2>>,
    /// `[outputs]`
    pub bias: Param<Tensor<1>>,
    /// `[components]`: shared standard deviations before the softplus.
    pub raw_std: Option<Param<Tensor<1>>>,
    /// Number of bins.
    pub n_actions: usize,
    /// Layout of the outputs.
    #[module(skip)]
    pub layout: MixtureLayout,
    /// The order of the bins.
    #[module(skip)]
    pub action_order: Option<ActionOrder>,
}

impl OnBins for GmmHead {
    fn forward(&self, hidden: Tensor<2>) -> HeadOutput {
        let centres =
            bin_centres(self.n_actions, self.action_order.as_ref().map(ActionOrder::bin_of));
        let shape = [1, self.n_actions, 1];
        let centres = constant(centres, shape, &hidden.device(), hidden.dtype());
        let mixtures =
            self.layout.mixtures(hidden, &self.weight, &self.bias, self.raw_std.as_ref());
        HeadOutput { logits: (mixtures.density(centres) + KAPPA).log(), regularization: None }
    }

    fn action_order(&self) -> Option<&ActionOrder> {
        self.action_order.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;
    use overtone_core::seed;

    fn head(action_order: Option<ActionOrder>) -> GmmHead {
        let action_order = action_order.map(OrderConfig::BinOf).unwrap_or_default();
        let config = GmmHeadConfig { action_order, ..Default::default() };
        let generator = &mut seed::generator(4, "init");
        config.init(3, 5, &mut Init::drawn(&Device::flex(), generator))
    }

    fn logits(head: &GmmHead) -> Vec<f64> {
        let hidden = Tensor::from_data([[0.4f32, -1.0, 2.0]], &Device::flex());
        head.forward(hidden).logits.into_data().iter::<f64>().collect()
    }

    #[test]
    fn logits_are_the_mixture_at_the_centres() {
        let head = head(None);
        let read = |tensor: Tensor<1>| tensor.into_data().iter::<f64>().collect::<Vec<_>>();
        let weight: Vec<f64> = head.weight.val().into_data().iter::<f64>().collect();
        let bias = read(head.bias.val());
        // Every initial standard deviation is 2/5.
        let std = 0.4;
        for (j, logit) in logits(&head).into_iter().enumerate() {
            let b = -1.0 + (2 * j + 1) as f64 / 5.0;
            let density: f64 = (0..2)
                .map(|g| {
                    let x = 0.4 * weight[g] - weight[2 + g] + 2.0 * weight[4 + g] + bias[g];
                    let distance: f64 = (b - x.tanh()) / std;
                    (-0.5 * distance * distance).exp() / (std * std::f64::consts::TAU.sqrt())
                })
                .sum();
            let expected = (density / 2.0 + 1e-5).ln();
            assert!((logit - expected).abs() < 1e-5, "{logit} against {expected}");
        }
    }

    #[test]
    fn columns_follow_the_action_order() {
        let order = [2, 0, 4, 3, 1];
        let bins = logits(&head(None));
        let actions = logits(&head(ActionOrder::new(order.to_vec())));
        for (action, bin) in order.into_iter().enumerate() {
            assert!((actions[action] - bins[bin]).abs() < 1e-6);
        }
    }
}
