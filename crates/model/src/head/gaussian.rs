//! A diagonal Gaussian over continuous actions. The mean is `tanh` of one affine layer. The
//! standard deviation of each dimension is a parameter, the same for every input.

use burn::{
    module::{Module, Param},
    tensor::Tensor,
};
use overtone_core::seed::Generator;

use super::{HeadLoss, Marginals, NumbersOptions, OnNumbers, PointwiseHead, TanhConfig, read};
use crate::parameters::init::{Init, standard_normal};

options! {
    /// The Gaussian head has no options.
    #[derive(Copy)]
    pub struct GaussianConfig {}
}

impl NumbersOptions for GaussianConfig {
    type Head = GaussianHead;

    /// The mean is initialised like the [deterministic head](TanhConfig). Every standard deviation
    /// is 1/√3, as in the uniform distribution on [-1, 1].
    fn init(&self, d_model: usize, width: usize, init: &mut Init<'_>) -> GaussianHead {
        GaussianHead {
            mean: TanhConfig {}.init(d_model, width, init),
            log_std: init.constant([width], -0.5 * 3.0f32.ln()),
        }
    }
}

/// Minimum standard deviation. If the mean can be learned exactly, the likelihood would otherwise
/// grow without bound.
const MIN_STD: f64 = 1e-3;

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct GaussianHead {
    /// The mean.
    pub mean: PointwiseHead,
    /// `[dimensions]`: logarithms of the standard deviations.
    pub log_std: Param<Tensor<1>>,
}

impl GaussianHead {
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
}

impl OnNumbers for GaussianHead {
    fn width(&self) -> usize {
        self.log_std.dims()[0]
    }

    /// `½((y - μ)/σ)² + ln σ + ½ ln 2π`, added up over dimensions.
    fn loss(&self, hidden: Tensor<2>, targets: Tensor<2>) -> HeadLoss {
        let log_stds = self.log_stds().unsqueeze::<2>();
        let distance = (targets - self.means(hidden)) * log_stds.clone().neg().exp();
        let constant = 0.5 * std::f64::consts::TAU.ln();
        let nll = distance.square() * 0.5 + log_stds + constant;
        let rows = nll.sum_dim(1).squeeze_dim::<1>(1);
        HeadLoss { rows, regularization: None, hits: None }
    }

    fn marginals(&self, hidden: Tensor<2>) -> Box<dyn Marginals> {
        let (means, stds) = (read(self.means(hidden)), read(self.log_stds().exp()));
        Box::new(Gaussians { means, stds })
    }
}

/// Gaussians on the host.
struct Gaussians {
    /// By place.
    means: Vec<f64>,
    /// By dimension.
    stds: Vec<f64>,
}

impl Gaussians {
    fn std(&self, place: usize) -> f64 {
        self.stds[place % self.stds.len()]
    }
}

impl Marginals for Gaussians {
    fn is_finite(&self, place: usize) -> bool {
        self.means[place].is_finite() && self.std(place).is_finite()
    }

    fn mode(&self, place: usize) -> f64 {
        self.means[place]
    }

    fn draw(&self, place: usize, _temperature: f32, generator: &mut Generator) -> f64 {
        self.means[place] + self.std(place) * standard_normal(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::init::Init;
    use burn::tensor::{Device, TensorData};
    use overtone_core::seed;

    fn head(dimensions: usize) -> GaussianHead {
        let generator = &mut seed::generator(5, "init");
        let init = &mut Init::drawn(&Device::flex(), generator);
        let mut head = GaussianConfig {}.init(1, dimensions, init);
        head.mean.weight = head.mean.weight.map(|weight| weight.zeros_like());
        head
    }

    fn set(values: &[f32]) -> Param<Tensor<1>> {
        Param::from_data(TensorData::from(values), &Device::flex())
    }

    #[test]
    fn the_loss_by_hand() {
        let device = Device::flex();
        let mut head = head(2);
        head.mean.bias = set(&[0.0, 0.5f32.atanh()]);
        head.log_std = set(&[0.5f32.ln(), 2.0f32.ln()]);
        let targets = Tensor::from_data([[0.25f32, -0.5]], &device);
        let got: f64 = head.loss(Tensor::ones([1, 1], &device), targets).rows.into_scalar();
        // Means 0 and ½, σ ½ and 2: both are ½ σ away; ln ½ + ln 2 = 0.
        let expected = 2.0 * 0.5 * 0.25 + std::f64::consts::TAU.ln();
        assert!((got - expected).abs() < 1e-6, "{got} against {expected}");
    }

    #[test]
    fn draws_have_its_moments() {
        let mut head = head(1);
        head.mean.bias = set(&[0.2f32.atanh()]);
        head.log_std = set(&[0.1f32.ln()]);
        let n = 20_000;
        let marginals = head.marginals(Tensor::ones([n, 1], &Device::flex()));
        let draw = |row| marginals.draw(row, 1.0, &mut seed::generator(row as u64, "policy"));
        let draws: Vec<f64> = (0..n).map(draw).collect();
        let mean = draws.iter().sum::<f64>() / n as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        // Five standard errors: 5·0.1/√n and 5·0.01·√(2/n).
        assert!((mean - 0.2).abs() < 0.0036, "{mean}");
        assert!((variance - 0.01).abs() < 0.0005, "{variance}");
    }
}
