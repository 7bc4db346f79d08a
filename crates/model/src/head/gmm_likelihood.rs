//! The Gaussian-mixture likelihood head: a density for each dimension of a real-valued action,
//! the baseline of Gillman et al. 2025, Appendix C.3.
//!
//! As the [`gmm`] head on bins, with the density read at the action itself and
//! trained by `-ln(p(z) + 1e-10)`. The density is not cut to [-1, 1].

use burn::{
    module::{Module, Param, ParamId},
    tensor::Tensor,
};
use overtone_core::seed::Generator;
use overtone_kernels::add_bias;
use rand::RngExt;

use super::{
    HeadLoss, Marginals, NumbersOptions, OnNumbers,
    fourier_likelihood::DENSITY_FLOOR,
    gmm::{self, GmmHeadConfig, check_components, standard_deviations},
};
use crate::{
    error::ModelError,
    init::{Init, standard_normal},
    matrices::Matrices,
};

options! {
    /// Options of the Gaussian-mixture likelihood head.
    pub struct GmmLikelihoodConfig {
        /// Number of Gaussians G of each number, as of the head on bins.
        pub components: usize = GmmHeadConfig::default().components,
    }
}

impl NumbersOptions for GmmLikelihoodConfig {
    type Head = GmmLikelihoodHead;

    fn size(&self) -> Option<usize> {
        Some(self.components)
    }

    fn validate(&self) -> Result<(), ModelError> {
        check_components(self.components)
    }

    /// The affine layer as PyTorch's default, U(±1/√d_model); every standard deviation
    /// ln 3 ≈ 1.1, which is the softplus of the reference's ln 2.
    fn init(&self, d_model: usize, width: usize, init: &mut Init<'_>) -> GmmLikelihoodHead {
        let all = width * self.components;
        let (weight, bias) = init.linear([d_model, all]);
        GmmLikelihoodHead {
            weight,
            bias,
            raw_std: init.constant([all], 2.0f32.ln()),
            dimensions: width,
            components: self.components,
        }
    }
}

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct GmmLikelihoodHead {
    /// `[d_model, dimensions · components]`: the components of each dimension together.
    pub weight: Param<Tensor<2>>,
    /// `[dimensions · components]`
    pub bias: Param<Tensor<1>>,
    /// `[dimensions · components]`: standard deviations before the softplus.
    pub raw_std: Param<Tensor<1>>,
    /// Numbers in an action.
    pub dimensions: usize,
    /// G.
    pub components: usize,
}

impl Matrices for GmmLikelihoodHead {
    fn matrices(&self) -> Vec<ParamId> {
        vec![self.weight.id]
    }
}

impl GmmLikelihoodHead {
    /// Means `[rows, dimensions, components]` and standard deviations
    /// `[1, dimensions, components]`.
    fn components(&self, hidden: Tensor<2>) -> (Tensor<3>, Tensor<3>) {
        let [rows, _] = hidden.dims();
        let means = add_bias(hidden.matmul(self.weight.val()), self.bias.val()).tanh();
        (
            means.reshape([rows, self.dimensions, self.components]),
            standard_deviations(self.raw_std.val()).reshape([1, self.dimensions, self.components]),
        )
    }

    /// `p(z)` of each dimension.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    /// - `z` and result: `[rows, dimensions]`
    pub fn density(&self, hidden: Tensor<2>, z: Tensor<2>) -> Tensor<2> {
        let (means, stds) = self.components(hidden);
        gmm::mixture(z.unsqueeze_dim::<3>(2), means, stds)
    }

    /// The density of each row and dimension, row by row.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    pub fn densities(&self, hidden: Tensor<2>) -> Vec<GaussianMixture> {
        let (means, stds) = self.components(hidden);
        let means: Vec<f64> = means.into_data().iter::<f64>().collect();
        let stds: Vec<f64> = stds.into_data().iter::<f64>().collect();
        means
            .chunks_exact(self.components)
            .zip(stds.chunks_exact(self.components).cycle())
            .map(|(means, stds)| GaussianMixture { means: means.into(), stds: stds.into() })
            .collect()
    }
}

impl OnNumbers for GmmLikelihoodHead {
    fn width(&self) -> usize {
        self.dimensions
    }

    /// `-ln(p(z) + 1e-10)`, added up over dimensions.
    fn loss(&self, hidden: Tensor<2>, targets: Tensor<2>) -> HeadLoss {
        let density = self.density(hidden, targets);
        let rows = (density + DENSITY_FLOOR).log().neg().sum_dim(1).squeeze_dim::<1>(1);
        HeadLoss { rows, regularization: None, hits: None }
    }

    fn marginals(&self, hidden: Tensor<2>) -> Box<dyn Marginals> {
        Box::new(self.densities(hidden))
    }
}

impl Marginals for Vec<GaussianMixture> {
    fn is_finite(&self, place: usize) -> bool {
        let GaussianMixture { means, stds } = &self[place];
        means.iter().chain(stds).all(|number| number.is_finite())
    }

    fn mode(&self, place: usize) -> f64 {
        self[place].mode()
    }

    fn draw(&self, place: usize, _temperature: f32, generator: &mut Generator) -> f64 {
        self[place].sample(generator)
    }

    fn quantile(&self, place: usize, q: f64) -> f64 {
        self[place].quantile(q)
    }
}

/// Gaussians of equal weight, on the host in double precision.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianMixture {
    /// μ of each component.
    pub means: Vec<f64>,
    /// σ of each component.
    pub stds: Vec<f64>,
}

impl GaussianMixture {
    /// `Normal(z; μ_g, σ_g)` of each component, not yet divided by their number.
    fn parts(&self, z: f64) -> impl Iterator<Item = f64> {
        self.means.iter().zip(&self.stds).map(move |(mean, std)| {
            let distance = (z - mean) / std;
            (-0.5 * distance * distance).exp() / (std * std::f64::consts::TAU.sqrt())
        })
    }

    /// The density at `z`.
    pub fn pdf(&self, z: f64) -> f64 {
        self.parts(z).sum::<f64>() / self.means.len() as f64
    }

    /// The share of it below `z`.
    pub fn cdf(&self, z: f64) -> f64 {
        let parts = self
            .means
            .iter()
            .zip(&self.stds)
            .map(|(mean, std)| 0.5 * libm::erfc((mean - z) / (std * std::f64::consts::SQRT_2)));
        parts.sum::<f64>() / self.means.len() as f64
    }

    /// What lies above a share `q` of it, `q` in (0, 1): between the lowest and the highest of
    /// its components' quantiles, so the search begins ten deviations around them and halves
    /// until double precision ends.
    pub fn quantile(&self, q: f64) -> f64 {
        let around = |sign: f64| {
            self.means.iter().zip(&self.stds).map(move |(mean, std)| mean + sign * 10.0 * std)
        };
        let mut low = around(-1.0).fold(f64::INFINITY, f64::min);
        let mut high = around(1.0).fold(f64::NEG_INFINITY, f64::max);
        loop {
            let middle = 0.5 * (low + high);
            // Also where the ends are NaN.
            if !(low < middle && middle < high) {
                return middle;
            }
            if self.cdf(middle) < q { low = middle } else { high = middle }
        }
    }

    /// A component, each equally likely, and a draw from it.
    pub fn sample(&self, generator: &mut Generator) -> f64 {
        let component = generator.random_range(0..self.means.len());
        self.means[component] + self.stds[component] * standard_normal(generator)
    }

    /// Where the density is largest. From each mean in turn
    /// `z ← Σ_g r_g μ_g/σ_g² / Σ_g r_g/σ_g²` climbs to a maximum, with `r_g` the components'
    /// densities at `z` (Carreira-Perpiñán 2000), until it stands still; the highest one counts.
    pub fn mode(&self) -> f64 {
        let step = |z: f64| {
            let (mut above, mut below) = (0.0, 0.0);
            for ((part, mean), std) in self.parts(z).zip(&self.means).zip(&self.stds) {
                let pull = part / (std * std);
                above += pull * mean;
                below += pull;
            }
            above / below
        };
        let climb = |start: f64| {
            let mut z = start;
            for _ in 0..200 {
                let before = z;
                z = step(before);
                if (z - before).abs() < 1e-12 {
                    break;
                }
            }
            z
        };
        let tops = self.means.iter().map(|&mean| climb(mean)).map(|z| (z, self.pdf(z)));
        tops.fold((0.0, f64::NEG_INFINITY), |best, top| if top.1 > best.1 { top } else { best }).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{Device, TensorData};
    use overtone_core::seed;

    fn mixture() -> GaussianMixture {
        GaussianMixture { means: vec![-0.5, 0.6], stds: vec![0.1, 0.2] }
    }

    #[test]
    fn the_density_by_hand() {
        // At 0.6 the first component is 11 of its σ away; the second's density is 1/(0.2·√2π).
        let expected = 0.5 / (0.2 * std::f64::consts::TAU.sqrt());
        assert!((mixture().pdf(0.6) - expected).abs() < 1e-12);
    }

    #[test]
    fn the_mode_is_the_narrow_component_s_mean() {
        assert!((mixture().mode() + 0.5).abs() < 1e-6);
        // Two that overlap: the top lies half-way.
        let both = GaussianMixture { means: vec![-0.1, 0.1], stds: vec![0.3, 0.3] };
        assert!(both.mode().abs() < 1e-6, "{}", both.mode());
    }

    #[test]
    fn quantiles_undo_the_distribution() {
        let one = GaussianMixture { means: vec![0.3], stds: vec![0.5] };
        assert!((one.quantile(0.5) - 0.3).abs() < 1e-15);
        // Φ⁻¹(0.975) = 1.959963984540054.
        assert!((one.quantile(0.975) - (0.3 + 0.5 * 1.959_963_984_540_054)).abs() < 1e-14);
        let broken = GaussianMixture { means: vec![f64::NAN; 2], stds: vec![0.1, 0.2] };
        assert!(broken.quantile(0.5).is_nan());
        for q in [0.001, 0.3, 0.5, 0.95, 0.999] {
            assert!((mixture().cdf(mixture().quantile(q)) - q).abs() < 1e-14, "{q}");
        }
    }

    #[test]
    fn samples_have_the_mixture_s_moments() {
        let mut generator = seed::generator(2, "policy");
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|_| mixture().sample(&mut generator)).collect();
        let mean = draws.iter().sum::<f64>() / n as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        // Mean (-0.5 + 0.6)/2; variance (0.01 + 0.04)/2 + 0.55². Five standard errors: 0.009.
        assert!((mean - 0.05).abs() < 0.009, "{mean}");
        assert!((variance - 0.3275).abs() < 0.009, "{variance}");
    }

    #[test]
    fn each_dimension_has_its_own_components() {
        let config = GmmLikelihoodConfig { components: 3 };
        let mut generator = seed::generator(1, "init");
        let device = Device::flex();
        let mut head = config.init(4, 2, &mut Init::drawn(&device, &mut generator));
        let raw: Vec<f32> = vec![0.1, -0.2, 0.3, -1.0, -2.0, 0.5];
        head.raw_std = Param::from_data(TensorData::from(&raw[..]), &device);
        let hidden = || {
            let values: Vec<f32> = (0..20).map(|i| (i as f32 * 0.7).sin()).collect();
            Tensor::<2>::from_data(TensorData::new(values, [5, 4]), &device)
        };
        let points: Vec<f32> = (0..10).map(|i| i as f32 * 0.2 - 1.0).collect();
        let z = Tensor::<2>::from_data(TensorData::new(points.clone(), [5, 2]), &device);
        let got = head.density(hidden(), z).into_data();
        let densities = head.densities(hidden());
        assert_eq!(densities.len(), 10);
        for ((got, density), z) in got.iter::<f64>().zip(densities).zip(points) {
            let expected = density.pdf(f64::from(z));
            assert!((got - expected).abs() < 1e-6, "{got} against {expected}");
        }
    }
}
