//! Mixtures of Gaussians, shared by the mixture heads on bins and on numbers.
//!
//! One affine layer computes the means `μ_g = tanh(·)` of G Gaussians for each dimension of an
//! action, followed by `s_g` with [`MixtureStd::State`], and by `w_g` with
//! [`MixtureWeights::Learned`]. The density is `Σ_g π_g Normal(z; μ_g, σ_g)`:
//!
//! | option | value | source |
//! | --- | --- | --- |
//! | `weights=equal` | `π_g = 1/G` | the paper's |
//! | `weights=learned` | `π = softmax(w)` | the released likelihood head's `mixture_weights_learned` |
//! | `std=shared` | `σ_g = softplus(s_g)`, `s_g` a parameter | the paper's |
//! | `std=fixed` | `σ_g` a constant | the released heads' `learn_stds=False` |
//! | `std=state` | `σ_g = softplus(s_g)`, `s_g` from the layer | mixture density networks (Bishop 1994) |
//!
//! The released head on bins has neither learned weights nor deviations that depend on the
//! observation. Here both heads have all options.

use burn::{
    module::Param,
    tensor::{
        Tensor,
        activation::{softmax, softplus},
    },
};
use overtone_core::seed::Generator;
use overtone_kernels::{affine, stored::constant};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::Marginals;
use crate::{
    error::{ModelError, check_counts, config_error},
    parameters::init::{Init, fan_in_bound, standard_normal},
};

/// The weights of the Gaussians of a mixture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MixtureWeights {
    /// 1/G each.
    #[default]
    Equal,
    /// A softmax of affine functions of the token.
    Learned,
}

/// The standard deviations of the Gaussians of a mixture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MixtureStd {
    /// Parameters, the same for every token.
    #[default]
    Shared,
    /// Constants.
    Fixed,
    /// Functions of the token.
    State,
}

/// Minimum shared deviation: far below a bin, and wide enough that the gradient, which divides by
/// its square, stays finite in `f32`.
const MIN_SHARED: f64 = 1e-6;
/// Minimum deviation of a state, the same as in the Gaussian head. If the mean can be learned
/// exactly for some states, their likelihood would otherwise grow without bound.
const MIN_STATE: f64 = 1e-3;
/// Valid deviations, on [-1, 1].
const STDS: std::ops::RangeInclusive<f64> = 1e-3..=10.0;

/// Checks the options that both mixture heads have.
///
/// # Errors
/// Names the first invalid option.
pub(super) fn check(
    components: usize,
    weights: MixtureWeights,
    init_std: f64,
) -> Result<(), ModelError> {
    check_counts(&[("head.components", components)])?;
    if weights == MixtureWeights::Learned && components == 1 {
        let expected = "must be equal: one Gaussian has nothing to weigh. Or use \
                        head.components=2 or more";
        return Err(config_error("head.weights", "learned", expected));
    }
    if init_std != 0.0 && !STDS.contains(&init_std) {
        let expected = "must be 0 (the reference's), or lie in [0.001, 10]";
        return Err(config_error("head.init_std", init_std, expected));
    }
    Ok(())
}

/// The inverse of the softplus at `std`: `ln(e^std - 1)`.
pub(super) fn raw_std(std: f64) -> f32 {
    std.exp_m1().ln() as f32
}

/// A head's layer, and the layout of its outputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MixtureLayout {
    /// Number of action dimensions, each with its own mixture.
    pub dimensions: usize,
    /// G.
    pub components: usize,
    /// Source of the weights.
    pub weights: MixtureWeights,
    /// Source of the standard deviations.
    pub std: MixtureStd,
    /// Every σ, with [`MixtureStd::Fixed`].
    pub fixed_std: f64,
}

/// Parameters of a mixture head, as they are initialised.
pub(super) struct MixtureParameters {
    /// `[d_model, outputs]`
    pub weight: Param<Tensor<2>>,
    /// `[outputs]`
    pub bias: Param<Tensor<1>>,
    /// `[dimensions · components]` with [`MixtureStd::Shared`]
    pub raw_std: Option<Param<Tensor<1>>>,
}

impl MixtureLayout {
    /// Number of Gaussians over all dimensions: the columns of one group of outputs.
    fn gaussians(&self) -> usize {
        self.dimensions * self.components
    }

    /// Columns of the affine layer: means, then deviations, then weights, grouped by dimension.
    pub fn outputs(&self) -> usize {
        let groups = 1
            + usize::from(self.std == MixtureStd::State)
            + usize::from(self.weights == MixtureWeights::Learned);
        groups * self.gaussians()
    }

    /// The affine layer with PyTorch's default initialization, U(±1/√d_model). Only the columns of
    /// [`MixtureStd::State`] have initial weights of 0, so that σ starts like the shared one: the
    /// softplus of `raw`.
    pub(super) fn init(&self, d_model: usize, raw: f32, init: &mut Init<'_>) -> MixtureParameters {
        let (gaussians, outputs) = (self.gaussians(), self.outputs());
        let bound = fan_in_bound(d_model);
        let is_std = |column: usize| {
            self.std == MixtureStd::State && (gaussians..2 * gaussians).contains(&column)
        };
        let drawn = |generator: &mut Generator| generator.random_range(-bound..bound) as f32;
        let weight = init.filled([d_model, outputs], |place, generator| {
            if is_std(place % outputs) { 0.0 } else { drawn(generator) }
        });
        let bias = init.filled(
            [outputs],
            |column, generator| {
                if is_std(column) { raw } else { drawn(generator) }
            },
        );
        let is_shared = self.std == MixtureStd::Shared;
        MixtureParameters {
            weight,
            bias,
            raw_std: is_shared.then(|| init.constant([gaussians], raw)),
        }
    }

    /// The mixtures of each row.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    pub(super) fn mixtures(
        &self,
        hidden: Tensor<2>,
        weight: &Param<Tensor<2>>,
        bias: &Param<Tensor<1>>,
        raw_std: Option<&Param<Tensor<1>>>,
    ) -> Mixtures {
        let outputs = affine(hidden, weight.val(), bias.val());
        self.read(outputs, raw_std.map(Param::val))
    }

    /// The mixtures of the affine layer's outputs.
    ///
    /// # Shapes
    /// - `outputs`: `[rows, outputs]`
    /// - `raw_std`: `[dimensions · components]`, with [`MixtureStd::Shared`]
    ///
    /// # Panics
    /// When shared deviations are missing: a caller's bug.
    pub fn read(&self, outputs: Tensor<2>, raw_std: Option<Tensor<1>>) -> Mixtures {
        let [rows, _] = outputs.dims();
        let gaussians = self.gaussians();
        let shape = |rows| [rows, self.dimensions, self.components];
        let mut next_column = 0;
        let mut group = || {
            let columns = outputs.clone().narrow(1, next_column, gaussians);
            next_column += gaussians;
            columns
        };
        let means = group().tanh().reshape(shape(rows));
        let stds = match (self.std, raw_std) {
            (MixtureStd::Shared, Some(raw)) => deviations(raw, MIN_SHARED).reshape(shape(1)),
            (MixtureStd::Shared, None) => panic!("no shared deviations"),
            (MixtureStd::State, _) => deviations(group(), MIN_STATE).reshape(shape(rows)),
            (MixtureStd::Fixed, _) => {
                let stds = vec![self.fixed_std; gaussians];
                constant(stds, shape(1), &means.device(), means.dtype())
            }
        };
        let weights = (self.weights == MixtureWeights::Learned)
            .then(|| softmax(group().reshape(shape(rows)), 2));
        Mixtures { means, stds, weights }
    }
}

/// `softplus`, at least `least`.
fn deviations<const D: usize>(raw: Tensor<D>, least: f64) -> Tensor<D> {
    softplus(raw, 1.0).clamp_min(least)
}

/// Mixtures of Gaussians as tensors, one for each dimension of each row.
pub struct Mixtures {
    /// `[rows, dimensions, components]`
    means: Tensor<3>,
    /// The same shape, or one row for all.
    stds: Tensor<3>,
    /// The same shape; `None`: equal.
    weights: Option<Tensor<3>>,
}

impl Mixtures {
    /// `Σ_g π_g Normal(z; μ_g, σ_g)`.
    ///
    /// # Shapes
    /// - `points`: `[rows, dimensions, 1]`, or for one dimension `[1, points, 1]`
    /// - result: `[rows, dimensions]`, or `[rows, points]`
    pub fn density(self, points: Tensor<3>) -> Tensor<2> {
        let [_, _, components] = self.means.dims();
        let distance = (points - self.means) / self.stds.clone();
        let density = (distance.square() * -0.5).exp() / self.stds;
        let root = std::f64::consts::TAU.sqrt();
        match self.weights {
            None => density.sum_dim(2).squeeze_dim::<2>(2) * (1.0 / (components as f64 * root)),
            Some(weights) => (density * weights).sum_dim(2).squeeze_dim::<2>(2) * (1.0 / root),
        }
    }

    /// Each row's and dimension's mixture on the host, row by row.
    pub(super) fn on_host(self) -> Vec<GaussianMixture> {
        let [rows, dimensions, components] = self.means.dims();
        let read = |tensor: Tensor<3>| -> Vec<Vec<f64>> {
            let values: Vec<f64> = tensor.into_data().iter::<f64>().collect();
            values.chunks_exact(components).map(<[f64]>::to_vec).collect()
        };
        let (means, stds) = (read(self.means), read(self.stds));
        let weights = self.weights.map(read);
        (0..rows * dimensions)
            .map(|place| GaussianMixture {
                means: means[place].clone(),
                stds: stds[place % stds.len()].clone(),
                weights: weights.as_ref().map(|weights| weights[place].clone()),
            })
            .collect()
    }
}

impl Marginals for Vec<GaussianMixture> {
    fn is_finite(&self, place: usize) -> bool {
        let GaussianMixture { means, stds, weights } = &self[place];
        let mut numbers = means.iter().chain(stds).chain(weights.iter().flatten());
        numbers.all(|number| number.is_finite())
    }

    fn mode(&self, place: usize) -> f64 {
        self[place].mode()
    }

    fn draw(&self, place: usize, _temperature: f32, generator: &mut Generator) -> f64 {
        self[place].sample(generator)
    }
}

/// Relative difference of two densities that is rounding: the first one is the mode.
const TIE: f64 = 1e-9;

/// A mixture of Gaussians, on the host in double precision.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianMixture {
    /// μ of each component.
    pub means: Vec<f64>,
    /// σ of each component.
    pub stds: Vec<f64>,
    /// π of each component; `None`: equal.
    pub weights: Option<Vec<f64>>,
}

impl GaussianMixture {
    /// The components' weights, relative to [`Self::total`].
    fn weight(&self, component: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[component])
    }

    fn total(&self) -> f64 {
        (0..self.means.len()).map(|component| self.weight(component)).sum()
    }

    /// `Normal(z; μ_g, σ_g)` of each component times its weight.
    fn parts(&self, z: f64) -> impl Iterator<Item = f64> {
        self.means.iter().zip(&self.stds).enumerate().map(move |(component, (mean, std))| {
            let distance = (z - mean) / std;
            let normal = (-0.5 * distance * distance).exp() / (std * std::f64::consts::TAU.sqrt());
            self.weight(component) * normal
        })
    }

    /// The density at `z`.
    pub fn pdf(&self, z: f64) -> f64 {
        self.parts(z).sum::<f64>() / self.total()
    }

    /// A sample: a component by its weight, and a sample from it.
    pub fn sample(&self, generator: &mut Generator) -> f64 {
        let last = self.means.len() - 1;
        let component = match &self.weights {
            None => generator.random_range(0..=last),
            Some(weights) => {
                let mut left = generator.random::<f64>() * self.total();
                let drawn = weights.iter().position(|weight| {
                    left -= weight;
                    left < 0.0
                });
                // Rounding may leave a remainder after the last one.
                drawn.unwrap_or(last)
            }
        };
        self.means[component] + self.stds[component] * standard_normal(generator)
    }

    /// The maximum of the density. From each mean in turn, `z ← Σ_g r_g μ_g/σ_g² / Σ_g r_g/σ_g²`
    /// climbs to a local maximum, until it stops moving; the highest one is returned. `r_g` are the
    /// components' densities at `z` times their weights (Carreira-Perpiñán 2000).
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
            // Many steps where two tops almost merge.
            for _ in 0..10_000 {
                let before = z;
                z = step(before);
                if (z - before).abs() < 1e-12 {
                    break;
                }
            }
            z
        };
        let tops = self.means.iter().map(|&mean| climb(mean)).map(|z| (z, self.pdf(z)));
        // Two equal Gaussians have equal tops; rounding must not choose between them.
        let is_higher = |top: f64, best: f64| top > best + TIE * best.abs();
        let higher =
            |best: (f64, f64), top: (f64, f64)| if is_higher(top.1, best.1) { top } else { best };
        // A component without weight has no top.
        let tops = tops.filter(|(_, height)| !height.is_nan());
        tops.reduce(higher).map_or(0.0, |(z, _)| z)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;
    use overtone_core::seed;

    fn equal() -> GaussianMixture {
        GaussianMixture { means: vec![-0.5, 0.6], stds: vec![0.1, 0.2], weights: None }
    }

    /// The wide component has a weight of nine tenths.
    fn weighted() -> GaussianMixture {
        GaussianMixture { weights: Some(vec![0.1, 0.9]), ..equal() }
    }

    #[test]
    fn the_density_by_hand() {
        // At 0.6 the first component is 11 of its σ away; the second's density is 1/(0.2·√2π).
        let second = 1.0 / (0.2 * std::f64::consts::TAU.sqrt());
        assert!((equal().pdf(0.6) - 0.5 * second).abs() < 1e-12);
        assert!((weighted().pdf(0.6) - 0.9 * second).abs() < 1e-12);
    }

    #[test]
    fn the_mode_is_the_higher_component_s_mean() {
        assert!((equal().mode() + 0.5).abs() < 1e-6);
        // 0.1/0.1 against 0.9/0.2.
        assert!((weighted().mode() - 0.6).abs() < 1e-6);
        // Two that overlap: the maximum lies half-way.
        let both = GaussianMixture { means: vec![-0.1, 0.1], stds: vec![0.3, 0.3], weights: None };
        assert!(both.mode().abs() < 1e-6, "{}", both.mode());
        // A component without weight has no maximum.
        let none = GaussianMixture {
            means: vec![-0.5, 0.6],
            stds: vec![0.001, 0.002],
            weights: Some(vec![0.0, 1.0]),
        };
        assert!((none.mode() - 0.6).abs() < 1e-12, "{}", none.mode());
    }

    #[test]
    fn samples_have_the_mixture_s_moments() {
        // Mean Σ π μ, variance Σ π (σ² + μ²) − mean². Five standard errors: below 0.009.
        for (mixture, mean, variance) in [(equal(), 0.05, 0.3275), (weighted(), 0.49, 0.1459)] {
            let mut generator = seed::generator(2, "policy");
            let n = 100_000;
            let draws: Vec<f64> = (0..n).map(|_| mixture.sample(&mut generator)).collect();
            let got = draws.iter().sum::<f64>() / n as f64;
            let spread = draws.iter().map(|x| (x - got).powi(2)).sum::<f64>() / n as f64;
            assert!((got - mean).abs() < 0.009, "{got}");
            assert!((spread - variance).abs() < 0.009, "{spread}");
        }
    }

    #[test]
    fn gradients_stay_finite_when_a_component_collapses() {
        let device = Device::flex().autodiff();
        for least in [MIN_SHARED, MIN_STATE] {
            let raw = Tensor::<1>::from_data([-200.0f32, 0.3], &device).require_grad();
            let points = Tensor::<3>::from_data([[[-0.5f32], [0.25]]], &device);
            let means = Tensor::<3>::from_data([[[0.25f32, 0.1]]], &device);
            let stds = deviations(raw.clone(), least).unsqueeze::<3>();
            let mixtures = Mixtures { means, stds, weights: None };
            let gradients = (mixtures.density(points) + 1e-5).log().sum().backward();
            let gradient = raw.grad(&gradients).map(Tensor::into_data);
            let gradient: Vec<f32> = gradient.iter().flat_map(|g| g.iter::<f32>()).collect();
            assert_eq!(gradient.len(), 2);
            assert!(gradient.iter().all(|g| g.is_finite()), "{gradient:?}");
        }
    }

    /// A state's deviations start like the shared ones, for every token.
    #[test]
    fn deviations_of_states_start_like_the_shared_ones() {
        let layout = MixtureLayout {
            dimensions: 2,
            components: 3,
            weights: MixtureWeights::Learned,
            std: MixtureStd::State,
            fixed_std: 0.0,
        };
        let device = Device::flex();
        let mut generator = seed::generator(1, "init");
        let init = &mut Init::drawn(&device, &mut generator);
        let MixtureParameters { weight, bias, raw_std } = layout.init(4, raw_std(0.25), init);
        assert!(raw_std.is_none());
        assert_eq!(weight.dims(), [4, 18]);
        let hidden = Tensor::from_data([[3.0f32, -1.0, 0.5, 2.0], [0.1, 0.7, -2.0, 1.0]], &device);
        let mixtures = layout.mixtures(hidden, &weight, &bias, None).on_host();
        assert_eq!(mixtures.len(), 4);
        for mixture in &mixtures {
            assert!(mixture.stds.iter().all(|std| (std - 0.25).abs() < 1e-6), "{mixture:?}");
            let weights = mixture.weights.as_ref().map(|weights| weights.iter().sum::<f64>());
            assert!((weights.unwrap_or_default() - 1.0).abs() < 1e-6, "{mixture:?}");
        }
        // Means and weights do depend on the token.
        assert_ne!(mixtures[0].means, mixtures[2].means);
        assert_ne!(mixtures[0].weights, mixtures[2].weights);
    }
}
