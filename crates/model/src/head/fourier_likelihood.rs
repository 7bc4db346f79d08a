//! The Fourier likelihood head: a density on [-1, 1] for each dimension of a continuous action
//! (Gillman et al. 2025, Appendix C.3), from the same affine layer as the [`fourier`] head on bins.
//!
//! `p(z) = |A(z)|² / ∫ |A|²`, trained by `-ln(p(z) + 1e-10)`. For acting,
//! [`FourierLikelihoodHead::densities`] returns each row's [`FourierDensity`] with its closed
//! cumulative distribution, samples and mode.
//!
//! Differs from the released code:
//! - `p` is a squared amplitude, so it is never negative; all-zero coefficients are uniform.
//! - Sampling bisects to double precision, not 25 times.
//! - Several dimensions are supported, independent given the token; their losses add up.

use burn::{
    module::{Module, Param},
    tensor::Tensor,
};
use overtone_core::seed::Generator;
use overtone_kernels::{Form, affine, fourier_power, stored::constant};
use rand::RngExt;

use super::{
    HeadLoss, Marginals, NumbersOptions, OnNumbers,
    fourier::{self, FourierHeadConfig, TINY, check_series},
    fourier_density::FourierDensity,
    fourier_options::{Domain, InitialCoefficients, Regularizer},
    quadrature::gauss_legendre,
};
use crate::{error::ModelError, parameters::init::Init};

/// Added to a density before its logarithm, as in the reference: the loss of a target is at most
/// 23.03 nats.
pub const DENSITY_FLOOR: f64 = 1e-10;

options! {
    /// Options of the Fourier likelihood head.
    pub struct FourierLikelihoodConfig {
        /// Highest frequency N, as in the head on bins.
        pub frequencies: usize = FourierHeadConfig::default().frequencies,
        /// Weight of the reference's smoothness regulariser, as in the head on bins. The paper's
        /// formula divides by the number of bins, which does not exist here.
        pub gamma: f64 = FourierHeadConfig::default().gamma,
        /// Mapping of [-1, 1] to the period, as in the head on bins.
        pub domain: Domain = Domain::default(),
        /// Initial coefficients, as in the head on bins.
        pub initial: InitialCoefficients = InitialCoefficients::default(),
    }
}

impl FourierLikelihoodConfig {
    /// N frequencies without a regulariser, and the other defaults.
    pub fn new(frequencies: usize) -> Self {
        Self { frequencies, gamma: 0.0, ..Self::default() }
    }
}

impl NumbersOptions for FourierLikelihoodConfig {
    type Head = FourierLikelihoodHead;

    fn size(&self) -> Option<usize> {
        Some(self.frequencies)
    }

    fn validate(&self) -> Result<(), ModelError> {
        check_series(self.frequencies, self.gamma)?;
        self.initial.validate()
    }

    /// The affine layer is [initialised by the options](InitialCoefficients).
    fn init(&self, d_model: usize, width: usize, init: &mut Init<'_>) -> FourierLikelihoodHead {
        let (weight, bias) = self.initial.draw(d_model, width, self.frequencies, init);
        FourierLikelihoodHead {
            weight,
            bias,
            frequencies: self.frequencies,
            dimensions: width,
            gamma: self.gamma,
            domain: self.domain,
        }
    }
}

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct FourierLikelihoodHead {
    /// `[d_model, dimensions · 2(N+1)]`: for each dimension the N+1 real parts, then the
    /// N+1 imaginary parts.
    pub weight: Param<Tensor<2>>,
    /// `[dimensions · 2(N+1)]`
    pub bias: Param<Tensor<1>>,
    /// N.
    pub frequencies: usize,
    /// Number of action dimensions.
    pub dimensions: usize,
    /// γ.
    pub gamma: f64,
    /// Mapping of [-1, 1] to the period.
    #[module(skip)]
    pub domain: Domain,
}

impl FourierLikelihoodHead {
    /// The coefficients of every row and dimension, `[rows · dimensions, 2(N+1)]`.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    pub fn coefficients(&self, hidden: Tensor<2>) -> Tensor<2> {
        let [rows, _] = hidden.dims();
        let flat = affine(hidden, self.weight.val(), self.bias.val());
        flat.reshape([rows * self.dimensions, 2 * (self.frequencies + 1)])
    }

    /// The density of each row and dimension, row by row.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    pub fn densities(&self, hidden: Tensor<2>) -> Vec<FourierDensity> {
        let values: Vec<f64> = self.coefficients(hidden).into_data().iter::<f64>().collect();
        values
            .chunks_exact(2 * (self.frequencies + 1))
            .map(|row| FourierDensity::new(row, self.domain))
            .collect()
    }
}

impl OnNumbers for FourierLikelihoodHead {
    fn width(&self) -> usize {
        self.dimensions
    }

    /// `-ln(p(z) + 1e-10)`, added up over dimensions, and the regulariser of each row. Targets are
    /// clamped to [-1, 1], the domain of the density, as in an environment.
    fn loss(&self, hidden: Tensor<2>, targets: Tensor<2>) -> HeadLoss {
        let [rows, dimensions] = targets.dims();
        let coefficients = self.coefficients(hidden);
        let targets = targets.clamp(-1.0, 1.0).reshape([rows * dimensions]);
        let density = density(coefficients.clone(), targets, self.domain);
        let per_row =
            |values: Tensor<1>| values.reshape([rows, dimensions]).sum_dim(1).squeeze_dim::<1>(1);
        HeadLoss {
            rows: per_row((density + DENSITY_FLOOR).log().neg()),
            regularization: (self.gamma > 0.0).then(|| {
                // There are no bins: the reference's scale does not depend on their number.
                let scale = self.gamma * Regularizer::Reference.scale(0);
                per_row(fourier::roughness(coefficients)) * scale
            }),
            hits: None,
        }
    }

    fn marginals(&self, hidden: Tensor<2>) -> Box<dyn Marginals> {
        Box::new(self.densities(hidden))
    }
}

impl Marginals for Vec<FourierDensity> {
    fn is_finite(&self, place: usize) -> bool {
        self[place].is_finite()
    }

    fn mode(&self, place: usize) -> f64 {
        self[place].mode()
    }

    fn draw(&self, place: usize, _temperature: f32, generator: &mut Generator) -> f64 {
        self[place].inverse_cdf(generator.random())
    }
}

/// `p(z)` of each row, differentiable in the coefficients and in `z`.
///
/// # Shapes
/// - `coefficients`: `[rows, 2(N+1)]`, real parts first
/// - `z` and result: `[rows]`
pub fn density(coefficients: Tensor<2>, z: Tensor<1>, domain: Domain) -> Tensor<1> {
    let power = fourier_power(coefficients.clone(), z, domain.stretch(), Form::Auto) + TINY;
    power / (integral(coefficients, domain).squeeze_dim::<1>(1) + 2.0 * TINY)
}

/// `∫ |A(sz)|² dz` over [-1, 1], `[rows, 1]`.
///
/// On the whole period it is `2 Σ |a_l|²`. On half of it, a Gauss–Legendre rule is used: the closed
/// form loses digits if little of the amplitude lies inside, and this sum of squares cannot be
/// negative. `N + 12` points resolve frequencies up to `Nπ/2` to rounding.
fn integral(coefficients: Tensor<2>, domain: Domain) -> Tensor<2> {
    let n = coefficients.dims()[1] / 2 - 1;
    match domain {
        Domain::Periodic => coefficients.square().sum_dim(1) * 2.0,
        Domain::HalfRange => {
            let (nodes, weights): (Vec<f64>, Vec<f64>) = gauss_legendre(n + 12).into_iter().unzip();
            let points: Vec<f64> = nodes.iter().map(|z| z * domain.stretch()).collect();
            let (re, im) = fourier::amplitudes(&coefficients, &points);
            let shape = [1, weights.len()];
            let (device, dtype) = (coefficients.device(), coefficients.dtype());
            let weights = constant(weights, shape, &device, dtype);
            ((re.square() + im.square()) * weights).sum_dim(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{DType, Device, TensorData};

    #[test]
    fn tensors_and_the_host_agree() {
        let points = [-0.83, 0.12, 0.97];
        for n in [1, 12, 64] {
            let width = 2 * (n + 1);
            let values: Vec<f64> = (0..3 * width).map(|i| (1.7 * (i * i) as f64).sin()).collect();
            for domain in [Domain::Periodic, Domain::HalfRange] {
                let options = (&Device::flex(), DType::F64);
                let coefficients = TensorData::new(values.clone(), [3, width]);
                let coefficients = Tensor::<2>::from_data(coefficients, options);
                let z = Tensor::<1>::from_data(TensorData::from(&points[..]), options);
                let got = density(coefficients, z, domain).into_data();
                for ((got, row), z) in got.iter::<f64>().zip(values.chunks(width)).zip(points) {
                    let expected = FourierDensity::new(row, domain).pdf(z);
                    let difference = (got - expected).abs();
                    assert!(difference < 1e-11 * expected, "N {n}: {got} against {expected}");
                }
            }
        }
    }

    #[test]
    fn zero_coefficients_are_uniform_and_their_gradient_is_zero() {
        let device = Device::flex().autodiff();
        for domain in [Domain::Periodic, Domain::HalfRange] {
            let coefficients = Tensor::<2>::zeros([1, 8], &device).require_grad();
            let z = Tensor::<1>::from_data([0.3f32], &device);
            let density = density(coefficients.clone(), z, domain);
            let gradients = density.clone().backward();
            let value: f32 = density.inner().into_scalar();
            assert!((value - 0.5).abs() < 1e-6, "{value}");
            let gradient = coefficients.grad(&gradients).map(Tensor::into_data);
            let gradient: Vec<f32> = gradient.iter().flat_map(|g| g.iter::<f32>()).collect();
            assert_eq!(gradient, [0.0; 8]);
        }
    }
}
