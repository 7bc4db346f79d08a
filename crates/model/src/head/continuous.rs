//! Heads for real-valued actions: from a token to numbers in [-1, 1].
//!
//! All learn from logged actions by [`ContinuousHead::loss`] and act by
//! [`ContinuousHead::mode`] or [`ContinuousHead::sample`]; they differ in what they can say
//! about an action:
//!
//! | head | for each dimension | loss |
//! | --- | --- | --- |
//! | [`TanhHead`], [`PointwiseHead`] | one number | squared error |
//! | [`GaussianHead`] | one bump, as wide everywhere | negative log-likelihood |
//! | [`GmmLikelihoodHead`] | G bumps, as wide everywhere | negative log-likelihood |
//! | [`FourierLikelihoodHead`] | any shape of N frequencies | negative log-likelihood |
//! | [`BinnedHead`] | a probability for each of m bins | cross-entropy |

use burn::{
    module::Module,
    tensor::{Device, Tensor},
};
use overtone_core::seed::Generator;
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::{
    BinnedConfig, BinnedHead, FourierLikelihoodConfig, FourierLikelihoodHead, GaussianHead,
    GmmLikelihoodConfig, GmmLikelihoodHead, HeadLoss, PointwiseHead, TanhHead,
};
use crate::{config::config_error, error::ModelError, init};

/// Which head, with its own options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ContinuousHeadConfig {
    /// `tanh` of an affine layer, squared error.
    Tanh,
    /// An affine layer, squared error.
    Pointwise,
    /// A diagonal Gaussian.
    Gaussian,
    /// A density of Fourier frequencies for each dimension.
    Fourier(FourierLikelihoodConfig),
    /// A mixture of Gaussians for each dimension.
    Gmm(GmmLikelihoodConfig),
    /// Each dimension cut into bins.
    Binned(BinnedConfig),
}

impl ContinuousHeadConfig {
    /// # Errors
    /// When an option describes no head, or there is nothing to predict.
    pub fn validate(&self, dimensions: usize) -> Result<(), ModelError> {
        if dimensions == 0 {
            return Err(config_error("dimensions", 0, "an action must hold at least 1 number"));
        }
        match self {
            Self::Tanh | Self::Pointwise | Self::Gaussian => Ok(()),
            Self::Fourier(config) => config.validate(),
            Self::Gmm(config) => config.validate(),
            Self::Binned(config) => config.validate(),
        }
    }

    /// In a few words: `Fourier likelihood head of 14 frequencies`.
    pub fn describe(&self) -> String {
        match self {
            Self::Tanh => "tanh head".into(),
            Self::Pointwise => "pointwise head".into(),
            Self::Gaussian => "Gaussian head".into(),
            Self::Fourier(config) => {
                format!("Fourier likelihood head of {} frequencies", config.frequencies)
            }
            Self::Gmm(config) => {
                format!("Gaussian-mixture likelihood head of {} components", config.components)
            }
            Self::Binned(config) => format!("{} on {} bins", config.head.describe(), config.bins),
        }
    }

    /// A head for actions of `dimensions` numbers, its weights drawn from `generator`.
    pub fn init(
        &self,
        d_model: usize,
        dimensions: usize,
        device: &Device,
        generator: &mut Generator,
    ) -> ContinuousHead {
        let d = d_model;
        match self {
            Self::Tanh => ContinuousHead::Tanh(TanhHead::init(d, dimensions, device, generator)),
            Self::Pointwise => {
                ContinuousHead::Pointwise(PointwiseHead::init(d, dimensions, device, generator))
            }
            Self::Gaussian => {
                ContinuousHead::Gaussian(GaussianHead::init(d, dimensions, device, generator))
            }
            Self::Fourier(config) => ContinuousHead::Fourier(FourierLikelihoodHead::init(
                config, d, dimensions, device, generator,
            )),
            Self::Gmm(config) => ContinuousHead::Gmm(GmmLikelihoodHead::init(
                config, d, dimensions, device, generator,
            )),
            Self::Binned(config) => {
                ContinuousHead::Binned(BinnedHead::init(config, d, dimensions, device, generator))
            }
        }
    }
}

/// A head for real-valued actions.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)] // one head per model
pub enum ContinuousHead {
    /// See [`TanhHead`].
    Tanh(TanhHead),
    /// See [`PointwiseHead`].
    Pointwise(PointwiseHead),
    /// See [`GaussianHead`].
    Gaussian(GaussianHead),
    /// See [`FourierLikelihoodHead`].
    Fourier(FourierLikelihoodHead),
    /// See [`GmmLikelihoodHead`].
    Gmm(GmmLikelihoodHead),
    /// See [`BinnedHead`].
    Binned(BinnedHead),
}

impl ContinuousHead {
    /// What each row of logged actions costs.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    /// - `targets`: `[rows, dimensions]`, in [-1, 1]
    pub fn loss(&self, hidden: Tensor<2>, targets: Tensor<2>) -> HeadLoss {
        match self {
            Self::Tanh(head) => head.loss(hidden, targets),
            Self::Pointwise(head) => head.loss(hidden, targets),
            Self::Gaussian(head) => head.loss(hidden, targets),
            Self::Fourier(head) => head.loss(hidden, targets),
            Self::Gmm(head) => head.loss(hidden, targets),
            Self::Binned(head) => head.loss(hidden, targets),
        }
    }

    /// Numbers in an action.
    pub fn dimensions(&self) -> usize {
        match self {
            Self::Tanh(head) => head.bias.dims()[0],
            Self::Pointwise(head) => head.bias.dims()[0],
            Self::Gaussian(head) => head.log_std.dims()[0],
            Self::Fourier(head) => head.dimensions,
            Self::Gmm(head) => head.dimensions,
            Self::Binned(head) => head.heads.len(),
        }
    }

    /// Each row's most probable action, or its prediction where there is no density. Row by
    /// row, in [-1, 1].
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`; result `rows · dimensions` numbers
    pub fn mode(&self, hidden: Tensor<2>) -> Vec<f64> {
        let actions = match self {
            Self::Tanh(head) => read(head.forward(hidden)),
            Self::Pointwise(head) => read(head.forward(hidden)),
            Self::Gaussian(head) => read(head.means(hidden)),
            Self::Fourier(head) => head.densities(hidden).iter().map(|d| d.mode()).collect(),
            Self::Gmm(head) => head.densities(hidden).iter().map(|d| d.mode()).collect(),
            Self::Binned(head) => head.mode(hidden),
        };
        within_range(actions)
    }

    /// An action drawn for each row from its own generator; the prediction, and nothing drawn,
    /// where there is no density. What a Gaussian draws outside [-1, 1] becomes the nearer end,
    /// and what lies in a bin its centre.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`; result `rows · dimensions` numbers
    /// - `generators`: one for each row
    ///
    /// # Panics
    /// When there are fewer generators than rows: a caller's bug.
    pub fn sample<'a>(
        &self,
        hidden: Tensor<2>,
        generators: impl IntoIterator<Item = &'a mut Generator>,
    ) -> Vec<f64> {
        let [rows, _] = hidden.dims();
        let dimensions = self.dimensions();
        let draw: Draw = match self {
            Self::Tanh(_) | Self::Pointwise(_) => return self.mode(hidden),
            Self::Gaussian(head) => {
                let (means, stds) = (read(head.means(hidden)), read(head.log_stds().exp()));
                Box::new(move |place, generator| {
                    means[place] + stds[place % dimensions] * init::standard_normal(generator)
                })
            }
            Self::Fourier(head) => {
                let densities = head.densities(hidden);
                Box::new(move |place, generator| densities[place].inverse_cdf(generator.random()))
            }
            Self::Gmm(head) => {
                let densities = head.densities(hidden);
                Box::new(move |place, generator| densities[place].sample(generator))
            }
            Self::Binned(head) => {
                let distributions = head.distributions(hidden);
                Box::new(move |place, generator| distributions.sample(place, generator.random()))
            }
        };
        let mut actions = Vec::with_capacity(rows * dimensions);
        for (row, generator) in (0..rows).zip(generators) {
            let places = row * dimensions..(row + 1) * dimensions;
            actions.extend(places.map(|place| draw(place, generator)));
        }
        assert_eq!(actions.len(), rows * dimensions, "a generator for each row");
        within_range(actions)
    }
}

/// Draws the number at a place of a batch of actions.
type Draw = Box<dyn Fn(usize, &mut Generator) -> f64>;

fn read<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

fn within_range(mut actions: Vec<f64>) -> Vec<f64> {
    for action in &mut actions {
        *action = action.clamp(-1.0, 1.0);
    }
    actions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::{Domain, FourierHeadConfig, GmmHeadConfig, HeadConfig};
    use burn::tensor::TensorData;
    use overtone_core::seed;

    const D_MODEL: usize = 4;
    const DIMENSIONS: usize = 3;
    const ROWS: usize = 5;

    fn configs() -> Vec<ContinuousHeadConfig> {
        let fourier = |domain| {
            ContinuousHeadConfig::Fourier(FourierLikelihoodConfig {
                gamma: 1e-6,
                domain,
                ..FourierLikelihoodConfig::new(6)
            })
        };
        vec![
            ContinuousHeadConfig::Tanh,
            ContinuousHeadConfig::Pointwise,
            ContinuousHeadConfig::Gaussian,
            fourier(Domain::Periodic),
            fourier(Domain::HalfRange),
            ContinuousHeadConfig::Gmm(GmmLikelihoodConfig { components: 2 }),
            binned(HeadConfig::Linear),
            binned(HeadConfig::Fourier(FourierHeadConfig::new(3))),
            binned(HeadConfig::Gmm(GmmHeadConfig { components: 2, action_order: None })),
        ]
    }

    fn binned(head: HeadConfig) -> ContinuousHeadConfig {
        ContinuousHeadConfig::Binned(BinnedConfig { bins: 10, head })
    }

    fn generators(n: usize) -> Vec<Generator> {
        (0..n as u64).map(|seed| seed::generator(seed, "policy")).collect()
    }

    fn heads() -> Vec<ContinuousHead> {
        let mut generator = seed::generator(5, "init");
        configs()
            .iter()
            .map(|config| config.init(D_MODEL, DIMENSIONS, &Device::flex(), &mut generator))
            .collect()
    }

    fn filled(shape: [usize; 2], step: f32) -> Tensor<2> {
        let values: Vec<f32> =
            (0..shape[0] * shape[1]).map(|i| (1.0 + i as f32 * step).sin()).collect();
        Tensor::from_data(TensorData::new(values, shape), &Device::flex())
    }

    #[test]
    fn every_head_has_one_loss_a_row_and_one_number_a_dimension() {
        for head in heads() {
            assert_eq!(head.dimensions(), DIMENSIONS);
            let hidden = || filled([ROWS, D_MODEL], 0.7);
            let loss = head.loss(hidden(), filled([ROWS, DIMENSIONS], 0.3));
            let rows: Vec<f64> = read(loss.rows);
            assert_eq!(rows.len(), ROWS);
            assert!(rows.iter().all(|x| x.is_finite()), "{head:?}: {rows:?}");
            for actions in [head.mode(hidden()), head.sample(hidden(), &mut generators(ROWS))] {
                assert_eq!(actions.len(), ROWS * DIMENSIONS);
                assert!(actions.iter().all(|x| (-1.0..=1.0).contains(x)), "{head:?}: {actions:?}");
            }
        }
    }

    /// One row alone gives what it gives in a batch: no value crosses rows.
    #[test]
    fn rows_do_not_mix() {
        for head in heads() {
            let (hidden, targets) = (filled([ROWS, D_MODEL], 0.7), filled([ROWS, DIMENSIONS], 0.3));
            let all: Vec<f64> = read(head.loss(hidden.clone(), targets.clone()).rows);
            let modes = head.mode(hidden.clone());
            let draws = head.sample(hidden.clone(), &mut generators(ROWS));
            for row in 0..ROWS {
                let one = |tensor: &Tensor<2>| tensor.clone().narrow(0, row, 1);
                let alone: Vec<f64> = read(head.loss(one(&hidden), one(&targets)).rows);
                assert!((alone[0] - all[row]).abs() < 1e-5, "{head:?}");
                let mode = head.mode(one(&hidden));
                for (got, expected) in modes[row * DIMENSIONS..].iter().zip(mode) {
                    assert!((got - expected).abs() < 1e-5, "{head:?}");
                }
                let draw = head.sample(one(&hidden), [&mut generators(ROWS)[row]]);
                for (got, expected) in draws[row * DIMENSIONS..].iter().zip(draw) {
                    assert!((got - expected).abs() < 1e-5, "{head:?}");
                }
            }
        }
    }

    /// The loss of a head with a density is smallest where it puts its mode, one dimension at
    /// a time; of the others, at their prediction, where it is zero.
    #[test]
    fn nothing_costs_less_than_the_mode() {
        for head in heads() {
            let hidden = filled([1, D_MODEL], 0.7);
            let mode: Vec<f32> = head.mode(hidden.clone()).iter().map(|&x| x as f32).collect();
            let cost = |action: &[f32]| -> f64 {
                let shape = [1, DIMENSIONS];
                let action = TensorData::new(action.to_vec(), shape);
                let action = Tensor::from_data(action, &Device::flex());
                read(head.loss(hidden.clone(), action).rows)[0]
            };
            let least = cost(&mode);
            for dimension in 0..DIMENSIONS {
                for step in -20..=20i8 {
                    let mut action = mode.clone();
                    action[dimension] = f32::from(step) / 20.0;
                    assert!(cost(&action) >= least - 1e-5, "{head:?}: {mode:?} and {action:?}");
                }
            }
        }
    }

    #[test]
    fn a_gaussian_s_loss_by_hand() {
        let device = Device::flex();
        let mut generator = seed::generator(5, "init");
        let mut head = GaussianHead::init(1, 2, &device, &mut generator);
        let set =
            |values: &[f32]| burn::module::Param::from_data(TensorData::from(values), &device);
        head.mean.weight = head.mean.weight.map(|weight| weight.zeros_like());
        head.mean.bias = set(&[0.0, 0.5f32.atanh()]);
        head.log_std = set(&[0.5f32.ln(), 2.0f32.ln()]);
        let targets = Tensor::from_data([[0.25f32, -0.5]], &device);
        let got = read(head.loss(Tensor::ones([1, 1], &device), targets).rows)[0];
        // Means 0 and ½, σ ½ and 2: both are ½ σ away; ln ½ + ln 2 = 0.
        let expected = 2.0 * 0.5 * 0.25 + std::f64::consts::TAU.ln();
        assert!((got - expected).abs() < 1e-6, "{got} against {expected}");
    }

    #[test]
    fn samples_of_a_gaussian_have_its_moments() {
        let device = Device::flex();
        let mut head = GaussianHead::init(1, 1, &device, &mut seed::generator(5, "init"));
        let set = |value: f32| burn::module::Param::from_data([value], &device);
        head.mean.weight = head.mean.weight.map(|weight| weight.zeros_like());
        head.mean.bias = set(0.2f32.atanh());
        head.log_std = set(0.1f32.ln());
        let n = 20_000;
        let hidden = Tensor::ones([n, 1], &device);
        let draws = ContinuousHead::Gaussian(head).sample(hidden, &mut generators(n));
        let mean = draws.iter().sum::<f64>() / n as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        // Five standard errors: 5·0.1/√n and 5·0.01·√(2/n).
        assert!((mean - 0.2).abs() < 0.0036, "{mean}");
        assert!((variance - 0.01).abs() < 0.0005, "{variance}");
    }

    #[test]
    fn options_that_describe_no_head_are_refused() {
        for config in configs() {
            assert!(config.validate(2).is_ok());
            assert!(config.validate(0).is_err());
        }
        let gmm = ContinuousHeadConfig::Gmm(GmmLikelihoodConfig { components: 0 });
        assert!(gmm.validate(1).unwrap_err().to_string().contains("head.components"));
        let fourier = |frequencies, gamma| {
            ContinuousHeadConfig::Fourier(FourierLikelihoodConfig {
                gamma,
                ..FourierLikelihoodConfig::new(frequencies)
            })
        };
        for (config, key) in
            [(fourier(0, 0.0), "head.frequencies"), (fourier(3, f64::NAN), "head.gamma")]
        {
            assert!(config.validate(1).unwrap_err().to_string().contains(key));
        }
    }
}
