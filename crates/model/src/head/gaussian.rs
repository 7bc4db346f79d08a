//! A diagonal Gaussian over real-valued actions: the mean is `tanh` of one affine layer, the
//! standard deviation of each dimension a parameter of its own, the same for every input.

use burn::{
    module::{Module, Param},
    tensor::{Device, Tensor},
};
use overtone_core::seed::Generator;

use super::{HeadLoss, TanhHead};
use crate::init;

/// The narrowest standard deviation; where the mean can be learned exactly, the likelihood
/// would grow without end.
const MIN_STD: f64 = 1e-3;

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct GaussianHead {
    /// The mean.
    pub mean: TanhHead,
    /// `[dimensions]`: logarithms of the standard deviations.
    pub log_std: Param<Tensor<1>>,
}

impl GaussianHead {
    /// The mean as the [deterministic head](TanhHead); every standard deviation 1/√3, that of
    /// the uniform distribution on [-1, 1].
    pub fn init(
        d_model: usize,
        dimensions: usize,
        device: &Device,
        generator: &mut Generator,
    ) -> Self {
        Self {
            mean: TanhHead::init(d_model, dimensions, device, generator),
            log_std: init::constant([dimensions], -0.5 * 3.0f32.ln(), device),
        }
    }

    /// Mean of each row, `[rows, dimensions]`.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    pub fn means(&self, hidden: Tensor<2>) -> Tensor<2> {
        self.mean.forward(hidden)
    }

    /// Logarithm of each dimension's standard deviation, `[dimensions]`.
    pub fn log_stds(&self) -> Tensor<1> {
        self.log_std.val().clamp_min(MIN_STD.ln())
    }

    /// `½((y - μ)/σ)² + ln σ + ½ ln 2π`, added up over dimensions.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    /// - `targets`: `[rows, dimensions]`
    pub fn loss(&self, hidden: Tensor<2>, targets: Tensor<2>) -> HeadLoss {
        let log_stds = self.log_stds().unsqueeze::<2>();
        let distance = (targets - self.means(hidden)) * log_stds.clone().neg().exp();
        let constant = 0.5 * std::f64::consts::TAU.ln();
        let nll = distance.square() * 0.5 + log_stds + constant;
        HeadLoss { rows: nll.sum_dim(1).squeeze_dim::<1>(1), regularization: None }
    }
}
