//! The Gaussian-mixture head on bins: the baseline of Gillman et al. 2025, Section 3.
//!
//! One affine layer and `tanh` give the means `μ_g` of G components with equal weights; their
//! standard deviations `σ_g = softplus(s_g)` are parameters, the same for every input. The
//! density at the m bin centres is `mean_g Normal(b_j; μ_g, σ_g)`, and the logits are
//! `ln(density + 1e-5)`; the softmax of the loss divides by their sum.
//!
//! As in the released code, and unlike the Fourier head, the 1e-5 is added before anything is
//! divided by the number of bins.

use burn::{
    module::{Module, Param, ParamId},
    tensor::{Tensor, TensorData, activation::softplus},
};
use overtone_kernels::add_bias;

use super::{
    ActionOrder, BinsOptions, HeadOutput, OnBins, OrderConfig, bin_centres, fourier::KAPPA,
};
use crate::{
    error::{ModelError, check_counts},
    init::Init,
    matrices::Matrices,
};

/// The narrowest component: far below a bin, and wide enough that the gradient, which divides
/// by its square, stays finite in `f32`.
const MIN_STD: f64 = 1e-6;

options! {
    /// Options of the Gaussian-mixture head.
    pub struct GmmHeadConfig {
        /// Number of Gaussians G; the paper's 2.
        pub components: usize = 2,
        /// Order of a list of actions along [-1, 1], as of the Fourier head.
        pub action_order: OrderConfig = OrderConfig::default(),
    }
}

impl BinsOptions for GmmHeadConfig {
    type Head = GmmHead;

    fn size(&self) -> Option<usize> {
        Some(self.components)
    }

    fn validate(&self, n: usize) -> Result<(), ModelError> {
        check_components(self.components)?;
        self.action_order.check(n)
    }

    /// The affine layer as PyTorch's default, U(±1/√d_model); every standard deviation one
    /// bin wide, 2/m. Both are the reference's.
    fn init(&self, d_model: usize, n: usize, init: &mut Init<'_>) -> GmmHead {
        let components = self.components;
        let (weight, bias) = init.linear([d_model, components]);
        GmmHead {
            weight,
            bias,
            raw_std: init.constant([components], raw_std(2.0 / n as f64)),
            n_actions: n,
            action_order: self.action_order.bins(),
        }
    }

    fn order(&mut self) -> Option<&mut OrderConfig> {
        Some(&mut self.action_order)
    }
}

/// # Errors
/// When there is none, or too many.
pub(super) fn check_components(components: usize) -> Result<(), ModelError> {
    check_counts(&[("head.components", components)])
}

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct GmmHead {
    /// `[d_model, components]`
    pub weight: Param<Tensor<2>>,
    /// `[components]`
    pub bias: Param<Tensor<1>>,
    /// `[components]`: standard deviations before the softplus.
    pub raw_std: Param<Tensor<1>>,
    /// Number of bins.
    pub n_actions: usize,
    /// The order of the bins.
    #[module(skip)]
    pub action_order: Option<ActionOrder>,
}

impl Matrices for GmmHead {
    fn matrices(&self) -> Vec<ParamId> {
        vec![self.weight.id]
    }
}

impl OnBins for GmmHead {
    fn forward(&self, hidden: Tensor<2>) -> HeadOutput {
        let means = add_bias(hidden.matmul(self.weight.val()), self.bias.val()).tanh();
        let centres =
            bin_centres(self.n_actions, self.action_order.as_ref().map(ActionOrder::bin_of));
        let options = (&means.device(), means.dtype());
        let centres =
            Tensor::<3>::from_data(TensorData::new(centres, [1, self.n_actions, 1]), options);
        let density = mixture(
            centres,
            means.unsqueeze_dim::<3>(1),
            standard_deviations(self.raw_std.val()).unsqueeze::<3>(),
        );
        HeadOutput { logits: (density + KAPPA).log(), regularization: None }
    }

    fn action_order(&self) -> Option<&ActionOrder> {
        self.action_order.as_ref()
    }
}

/// What [`standard_deviations`] makes `std` of: `ln(e^std - 1)`.
pub(super) fn raw_std(std: f64) -> f32 {
    std.exp_m1().ln() as f32
}

/// `softplus`, at least [`MIN_STD`].
pub(super) fn standard_deviations(raw: Tensor<1>) -> Tensor<1> {
    softplus(raw, 1.0).clamp_min(MIN_STD)
}

/// `mean_g Normal(z; μ_g, σ_g)`.
///
/// # Shapes
/// - `points`, `means`, `stds`: broadcast to `[rows, points, components]`
/// - result: `[rows, points]`
pub(super) fn mixture(points: Tensor<3>, means: Tensor<3>, stds: Tensor<3>) -> Tensor<2> {
    let distance = (points - means) / stds.clone();
    let density = (distance.square() * -0.5).exp() / stds;
    let [_, _, components] = density.dims();
    let scale = 1.0 / (components as f64 * std::f64::consts::TAU.sqrt());
    density.sum_dim(2).squeeze_dim::<2>(2) * scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;
    use overtone_core::seed;

    fn head(action_order: Option<ActionOrder>) -> GmmHead {
        let action_order = action_order.map(OrderConfig::BinOf).unwrap_or_default();
        let config = GmmHeadConfig { components: 2, action_order };
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
        // Every standard deviation begins as 2/5.
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

    #[test]
    fn gradients_stay_finite_when_a_component_collapses() {
        let device = Device::flex().autodiff();
        let raw = Tensor::<1>::from_data([-200.0f32, 0.3], &device).require_grad();
        let points = Tensor::<3>::from_data([[[-0.5f32], [0.25]]], &device);
        let means = Tensor::<3>::from_data([[[0.25f32, 0.1]]], &device);
        let stds = standard_deviations(raw.clone()).unsqueeze::<3>();
        let loss = (mixture(points, means, stds) + 1e-5).log().sum();
        let gradients = loss.backward();
        let gradient: Vec<f32> = raw
            .grad(&gradients)
            .into_iter()
            .flat_map(|g| g.into_data().iter::<f32>().collect::<Vec<_>>())
            .collect();
        assert_eq!(gradient.len(), 2);
        assert!(gradient.iter().all(|g| g.is_finite()), "{gradient:?}");
    }
}
