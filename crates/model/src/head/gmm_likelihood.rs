//! The Gaussian-mixture likelihood head: a density for each dimension of a continuous action, the
//! baseline of Gillman et al. 2025, Appendix C.3.
//!
//! Like the [`gmm`](super::gmm) head on bins, with the density of the [`mixture`]
//! evaluated at the action itself and trained by `-ln(p(z) + 1e-10)`. The density is not truncated
//! to [-1, 1].

use burn::{
    module::{Module, Param},
    tensor::Tensor,
};

use super::{
    GaussianMixture, HeadLoss, Marginals, NumbersOptions, OnNumbers,
    fourier_likelihood::DENSITY_FLOOR,
    gmm::GmmHeadConfig,
    mixture::{self, MixtureLayout, MixtureParameters, MixtureStd, MixtureWeights, Mixtures},
};
use crate::{error::ModelError, parameters::init::Init};

options! {
    /// Options of the Gaussian-mixture likelihood head.
    pub struct GmmLikelihoodConfig {
        /// Number of Gaussians G per dimension, as in the head on bins.
        pub components: usize = GmmHeadConfig::default().components,
        /// Weights of the Gaussians, as in the head on bins.
        pub weights: MixtureWeights = GmmHeadConfig::default().weights,
        /// Standard deviations of the Gaussians, as in the head on bins.
        pub std: MixtureStd = GmmHeadConfig::default().std,
        /// Initial standard deviation, as in the head on bins.
        pub init_std: f64 = GmmHeadConfig::default().init_std,
    }
}

impl NumbersOptions for GmmLikelihoodConfig {
    type Head = GmmLikelihoodHead;

    fn size(&self) -> Option<usize> {
        Some(self.components)
    }

    fn validate(&self) -> Result<(), ModelError> {
        mixture::check(self.components, self.weights, self.init_std)
    }

    /// By default, every learned standard deviation is the reference's: ln 3 ≈ 1.1, which is the
    /// softplus of its ln 2.
    fn init(&self, d_model: usize, width: usize, init: &mut Init<'_>) -> GmmLikelihoodHead {
        let init_std = self.init_std;
        let raw = if init_std == 0.0 { 2.0f32.ln() } else { mixture::raw_std(init_std) };
        let layout = self.layout(width);
        let MixtureParameters { weight, bias, raw_std } = layout.init(d_model, raw, init);
        GmmLikelihoodHead { weight, bias, raw_std, layout }
    }
}

impl GmmLikelihoodConfig {
    /// The layout of a head for actions of `width` dimensions.
    pub fn layout(&self, width: usize) -> MixtureLayout {
        let &Self { components, weights, std, init_std } = self;
        // The reference's constant is 2.
        let fixed_std = if init_std == 0.0 { 2.0 } else { init_std };
        MixtureLayout { dimensions: width, components, weights, std, fixed_std }
    }
}

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct GmmLikelihoodHead {
    /// `[d_model, outputs]`: means, grouped by dimension, then the other inputs of the
    /// [layout](MixtureLayout).
    pub weight: Param<Tensor<2>>,
    /// `[outputs]`
    pub bias: Param<Tensor<1>>,
    /// `[dimensions · components]`: shared standard deviations before the softplus.
    pub raw_std: Option<Param<Tensor<1>>>,
    /// Layout of the outputs.
    #[module(skip)]
    pub layout: MixtureLayout,
}

impl GmmLikelihoodHead {
    fn mixtures(&self, hidden: Tensor<2>) -> Mixtures {
        self.layout.mixtures(hidden, &self.weight, &self.bias, self.raw_std.as_ref())
    }

    /// `p(z)` of each dimension.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    /// - `z` and result: `[rows, dimensions]`
    pub fn density(&self, hidden: Tensor<2>, z: Tensor<2>) -> Tensor<2> {
        self.mixtures(hidden).density(z.unsqueeze_dim::<3>(2))
    }

    /// The density of each row and dimension, row by row.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    pub fn densities(&self, hidden: Tensor<2>) -> Vec<GaussianMixture> {
        self.mixtures(hidden).on_host()
    }
}

impl OnNumbers for GmmLikelihoodHead {
    fn width(&self) -> usize {
        self.layout.dimensions
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

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{Device, TensorData};
    use overtone_core::seed;

    /// Tensors and the host agree for all options.
    #[test]
    fn each_dimension_has_its_own_components() {
        let device = Device::flex();
        let (weights, stds) = (
            [MixtureWeights::Equal, MixtureWeights::Learned],
            [MixtureStd::Shared, MixtureStd::Fixed, MixtureStd::State],
        );
        for (weights, std) in weights.into_iter().flat_map(|w| stds.map(|std| (w, std))) {
            let config = GmmLikelihoodConfig { components: 3, weights, std, init_std: 0.4 };
            let mut generator = seed::generator(1, "init");
            let mut head = config.init(4, 2, &mut Init::drawn(&device, &mut generator));
            if std == MixtureStd::Shared {
                let raw: Vec<f32> = vec![0.1, -0.2, 0.3, -1.0, -2.0, 0.5];
                head.raw_std = Some(Param::from_data(TensorData::from(&raw[..]), &device));
            }
            // Columns of deviations are initially zero.
            head.weight = head.weight.map(|weight| {
                let shape = weight.dims();
                let n = shape[0] * shape[1];
                let values: Vec<f32> = (0..n).map(|i| (i as f32 * 1.3).sin()).collect();
                Tensor::from_data(TensorData::new(values, shape), &device)
            });
            let hidden = || {
                let values: Vec<f32> = (0..20).map(|i| (i as f32 * 0.7).sin()).collect();
                Tensor::<2>::from_data(TensorData::new(values, [5, 4]), &device)
            };
            let points: Vec<f32> = (0..10).map(|i| i as f32 * 0.2 - 1.0).collect();
            let z = Tensor::<2>::from_data(TensorData::new(points.clone(), [5, 2]), &device);
            let got = head.density(hidden(), z).into_data();
            let densities = head.densities(hidden());
            assert_eq!(densities.len(), 10);
            if std != MixtureStd::State {
                assert_eq!(densities[0].stds, densities[2].stds);
            } else {
                assert_ne!(densities[0].stds, densities[2].stds);
            }
            for ((got, density), z) in got.iter::<f64>().zip(densities).zip(points) {
                let expected = density.pdf(f64::from(z));
                let off = (got - expected).abs();
                assert!(off < 2e-6 * expected.max(1.0), "{config:?}: {got} against {expected}");
            }
        }
    }

    /// A fixed deviation is not a parameter.
    #[test]
    fn fixed_deviations_stay() {
        let fixed = |init_std| {
            let config =
                GmmLikelihoodConfig { std: MixtureStd::Fixed, init_std, ..Default::default() };
            let mut generator = seed::generator(1, "init");
            let device = Device::flex();
            let head = config.init(1, 1, &mut Init::drawn(&device, &mut generator));
            let names: Vec<String> = crate::weights::export(&head).into_keys().collect();
            assert_eq!(names, ["bias", "weight"]);
            head.densities(Tensor::ones([1, 1], &device)).remove(0).stds
        };
        assert_eq!(fixed(0.0), [2.0, 2.0]);
        assert_eq!(fixed(0.25), [0.25, 0.25]);
    }
}
