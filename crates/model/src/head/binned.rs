//! Bins of continuous actions: every dimension of an action is cut into m bins of equal width on
//! [-1, 1], and has its own [head on bins](BinsHead) with a probability for each bin.
//!
//! With the [Fourier head](super::FourierHead), this is the method of Gillman et al. (2025) on
//! Atari, applied to continuous actions, whose bins have a natural order: a smooth density, learned
//! as categories. The dimensions of an action are independent given the token.
//!
//! An action is the *centre* of its bin, so there are only m possible values, and no value is off
//! by more than 1/m.

use burn::{
    module::Module,
    tensor::{Int, Tensor},
};
use overtone_core::seed::Generator;
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::categorical;
use super::{
    BinsHead, BinsHeadConfig, HeadLoss, HeadOutput, Marginals, NumbersOptions, OnNumbers,
    OrderConfig, bin_centres, cross_entropy, read,
};
use crate::{
    error::{ModelError, check_counts, config_error},
    parameters::init::Init,
};

/// Options of the heads on bins of continuous actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BinnedConfig {
    /// m: number of bins per dimension.
    pub bins: usize,
    /// The head of each dimension, with bins as its "actions".
    pub head: BinsHeadConfig,
}

impl NumbersOptions for BinnedConfig {
    type Head = BinnedHead;

    /// Requires at least two bins, in the order of their values.
    fn validate(&self) -> Result<(), ModelError> {
        if self.bins < 2 {
            return Err(config_error("head.bins", self.bins, "must be at least 2"));
        }
        check_counts(&[("head.bins", self.bins)])?;
        let mut head = self.head.clone();
        if head.order().is_some_and(|order| *order != OrderConfig::Environment) {
            let expected =
                "must be environment: bins of continuous actions are in the order of their values";
            return Err(config_error("head.action_order", "an order", expected));
        }
        self.head.validate(self.bins)
    }

    /// Each dimension's head with its own initialization.
    fn init(&self, d_model: usize, width: usize, init: &mut Init<'_>) -> BinnedHead {
        let bins = self.bins;
        let heads = (0..width).map(|_| self.head.init(d_model, bins, init)).collect();
        BinnedHead { heads, bins }
    }
}

/// See the [module's documentation](self).
#[derive(Module, Debug)]
pub struct BinnedHead {
    /// One head for each dimension of an action.
    pub heads: Vec<BinsHead>,
    /// m.
    pub bins: usize,
}

impl BinnedHead {
    /// Logits of the bins of every row and dimension, `[rows · dimensions, m]`, and the regulariser
    /// of each row, `[rows]`.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    pub fn forward(&self, hidden: Tensor<2>) -> HeadOutput {
        let [rows, _] = hidden.dims();
        let outputs = self.heads.iter().map(|head| head.forward(hidden.clone()));
        let (logits, regularization): (Vec<Tensor<2>>, Vec<Option<Tensor<1>>>) =
            outputs.map(|output| (output.logits, output.regularization)).unzip();
        HeadOutput {
            logits: Tensor::stack::<3>(logits, 1).reshape([rows * self.heads.len(), self.bins]),
            regularization: regularization.into_iter().flatten().reduce(|sum, rows| sum + rows),
        }
    }

    /// The distributions of each row's dimensions, on the host.
    ///
    /// # Shapes
    /// - `hidden`: `[rows, d_model]`
    pub fn distributions(&self, hidden: Tensor<2>) -> BinDistributions {
        let logits = read(self.forward(hidden).logits);
        BinDistributions { logits, centres: bin_centres(self.bins, None) }
    }
}

impl OnNumbers for BinnedHead {
    fn width(&self) -> usize {
        self.heads.len()
    }

    /// `-ln y_j` of the action's bin j, added up over dimensions, and the regulariser of each row.
    ///
    /// The unit is nats of a bin's probability. As nats of a density that is constant in each bin,
    /// it would be larger by `ln(2/m)` for each dimension.
    fn loss(&self, hidden: Tensor<2>, targets: Tensor<2>) -> HeadLoss {
        let [rows, dimensions] = targets.dims();
        let HeadOutput { logits, regularization } = self.forward(hidden);
        let bins = bin_of(targets, self.bins).reshape([rows * dimensions]);
        let nats = cross_entropy(logits, bins).reshape([rows, dimensions]);
        HeadLoss { rows: nats.sum_dim(1).squeeze_dim::<1>(1), regularization, hits: None }
    }

    fn marginals(&self, hidden: Tensor<2>) -> Box<dyn Marginals> {
        Box::new(self.distributions(hidden))
    }
}

/// Distributions over bins, on the host.
pub struct BinDistributions {
    /// `[rows · dimensions, m]`
    logits: Vec<f32>,
    /// `[m]`
    centres: Vec<f64>,
}

impl BinDistributions {
    fn logits(&self, place: usize) -> &[f32] {
        let m = self.centres.len();
        &self.logits[place * m..(place + 1) * m]
    }

    /// The centre of the bin whose interval of the `place`-th cumulative distribution contains
    /// `draw`, uniform in [0, 1).
    ///
    /// # Panics
    /// When `place` is out of range.
    pub fn sample(&self, place: usize, temperature: f32, draw: f64) -> f64 {
        let weights = categorical::weights(self.logits(place), temperature);
        self.centres[categorical::sample(&weights, draw)]
    }

    /// The `q`-quantile, `q` in (0, 1): values within a bin are assumed to be equally likely. NaN if
    /// the logits are not finite.
    ///
    /// # Panics
    /// When `place` is out of range.
    pub fn quantile(&self, place: usize, q: f64) -> f64 {
        if !self.is_finite(place) {
            return f64::NAN;
        }
        let weights = categorical::weights(self.logits(place), 1.0);
        let mut left = q * weights.iter().sum::<f64>();
        let width = 2.0 / weights.len() as f64;
        for (weight, centre) in weights.iter().zip(&self.centres) {
            if left < *weight {
                return centre + (left / weight - 0.5) * width;
            }
            left -= weight;
        }
        1.0
    }
}

impl Marginals for BinDistributions {
    fn is_finite(&self, place: usize) -> bool {
        self.logits(place).iter().all(|logit| logit.is_finite())
    }

    /// The centre of the most probable bin; the lowest of equals.
    fn mode(&self, place: usize) -> f64 {
        self.centres[categorical::most_probable(self.logits(place))]
    }

    fn draw(&self, place: usize, temperature: f32, generator: &mut Generator) -> f64 {
        self.sample(place, temperature, generator.random())
    }
}

/// The bin of each value among `m` bins of equal width on [-1, 1]; values beyond the ends are in
/// the nearest bin.
fn bin_of(values: Tensor<2>, m: usize) -> Tensor<2, Int> {
    ((values + 1.0) * (m as f64 / 2.0)).int().clamp(0, m as i64 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::{ActionOrder, FourierHeadConfig, GmmHeadConfig, HeadConfig, LinearConfig};
    use burn::module::Param;
    use burn::tensor::{Device, TensorData};
    use overtone_core::seed;

    fn binned(bins: usize, head: BinsHeadConfig) -> BinnedConfig {
        BinnedConfig { bins, head }
    }

    /// Two dimensions with four bins; the logits are the logarithms of these probabilities.
    const PROBABILITIES: [[f32; 4]; 2] = [[0.1, 0.2, 0.6, 0.1], [0.5, 0.25, 0.0625, 0.1875]];

    fn head() -> BinnedHead {
        let device = Device::flex();
        let config = binned(4, BinsHeadConfig::Linear(LinearConfig {}));
        let generator = &mut seed::generator(1, "init");
        let mut head = config.init(1, 2, &mut Init::drawn(&device, generator));
        for (head, probabilities) in head.heads.iter_mut().zip(PROBABILITIES) {
            let BinsHead::Linear(head) = head else { panic!("{head:?}") };
            let logits = TensorData::new(probabilities.map(f32::ln).to_vec(), [1, 4]);
            head.weight = Param::from_data(logits, &device);
        }
        head
    }

    fn one() -> Tensor<2> {
        Tensor::ones([1, 1], &Device::flex())
    }

    #[test]
    fn the_loss_by_hand() {
        let targets = Tensor::from_data([[0.3f32, -0.9]], &Device::flex());
        let loss: f64 = head().loss(one(), targets).rows.into_scalar();
        // Bins 2 and 0: -ln 0.6 - ln 0.5.
        assert!((loss + 0.3f64.ln()).abs() < 1e-6, "{loss}");
    }

    #[test]
    fn actions_are_centres_of_bins() {
        let distributions = head().distributions(one());
        assert_eq!([0, 1].map(|place| distributions.mode(place)), [0.25, -0.75]);
        let first = [0.0, 0.09, 0.11, 0.29, 0.31, 0.89, 0.91, 0.999];
        let first = first.map(|draw| distributions.sample(0, 1.0, draw));
        assert_eq!(first, [-0.75, -0.75, -0.25, -0.25, 0.25, 0.25, 0.75, 0.75]);
        let second = [0.49, 0.51, 0.76, 0.82].map(|draw| distributions.sample(1, 1.0, draw));
        assert_eq!(second, [-0.75, -0.25, 0.25, 0.75]);
    }

    #[test]
    fn quantiles_lie_inside_of_bins() {
        let distributions = head().distributions(one());
        // Probabilities 0.1, 0.2, 0.6 and 0.1: the median lies 1/3 into the third bin, [0, 0.5].
        for (q, expected) in [(0.05, -0.75), (0.2, -0.25), (0.5, 1.0 / 6.0), (0.95, 0.75)] {
            let got = distributions.quantile(0, q);
            assert!((got - expected).abs() < 1e-6, "{q}: {got}");
        }
        assert!((distributions.quantile(1, 0.5) + 0.5).abs() < 1e-6);
    }

    /// Every bin starts at its lower edge, and the end bins include values beyond the ends.
    #[test]
    fn bins_are_uniform() {
        for m in [2, 3, 16, 51] {
            let edges: Vec<f64> = (0..=m).map(|edge| 2.0 * edge as f64 / m as f64 - 1.0).collect();
            let centres: Vec<f64> = edges.windows(2).map(|bin| 0.5 * (bin[0] + bin[1])).collect();
            let mut values: Vec<f32> = centres.iter().map(|&x| x as f32).collect();
            // On either side of every edge, at the ends, and beyond.
            values.extend(edges.iter().flat_map(|&x| [x as f32 - 1e-5, x as f32 + 1e-5]));
            values.extend([-1.0, 1.0, -7.0, 7.0]);
            let bin = |x: f32| edges[1..m].partition_point(|&edge| edge <= f64::from(x)) as i32;
            let expected: Vec<i32> = values.iter().map(|&x| bin(x)).collect();
            let shape = [1, values.len()];
            let values = Tensor::from_data(TensorData::new(values, shape), &Device::flex());
            let got: Vec<i32> = bin_of(values, m).into_data().iter().collect();
            assert_eq!(got, expected, "{m} bins");
            for (got, expected) in bin_centres(m, None).into_iter().zip(centres) {
                assert!((got - expected).abs() < 1e-12);
            }
        }
    }

    /// With a regulariser, every dimension's head adds its own.
    #[test]
    fn regularisers_add_up() {
        let config = FourierHeadConfig { gamma: 0.5, ..FourierHeadConfig::new(3) };
        let generator = &mut seed::generator(1, "init");
        let config = binned(8, BinsHeadConfig::Fourier(config));
        let head = config.init(1, 2, &mut Init::drawn(&Device::flex(), generator));
        let number = |tensor: Option<Tensor<1>>| tensor.unwrap().into_scalar::<f64>();
        let alone = head.heads.iter().map(|head| number(head.forward(one()).regularization));
        let sum: f64 = alone.sum();
        let got = number(head.forward(one()).regularization);
        assert!(sum > 0.0 && (got - sum).abs() < 1e-6 * sum, "{got} against {sum}");
    }

    #[test]
    fn invalid_options_are_refused() {
        let order = || OrderConfig::BinOf(ActionOrder::new(vec![1, 0, 2, 3]).unwrap());
        let refused =
            |bins, head: BinsHeadConfig| binned(bins, head).validate().unwrap_err().to_string();
        assert!(refused(1, BinsHeadConfig::Linear(LinearConfig {})).contains("head.bins"));
        let ordered = FourierHeadConfig { action_order: order(), ..FourierHeadConfig::new(3) };
        assert!(refused(4, BinsHeadConfig::Fourier(ordered)).contains("head.action_order"));
        let ordered = GmmHeadConfig { action_order: order(), ..GmmHeadConfig::default() };
        assert!(refused(4, BinsHeadConfig::Gmm(ordered)).contains("head.action_order"));
        let none = BinsHeadConfig::Fourier(FourierHeadConfig::new(0));
        assert!(refused(4, none).contains("head.frequencies"));
        assert!(binned(2, BinsHeadConfig::Linear(LinearConfig {})).validate().is_ok());
    }

    #[test]
    fn configurations_round_trip() {
        let head = BinsHeadConfig::Fourier(FourierHeadConfig::new(6));
        let config = HeadConfig::Binned(binned(32, head));
        let stored = serde_json::to_string(&config).unwrap();
        let expected = r#"{"kind":"binned","bins":32,"head":{"kind":"fourier","frequencies":6,"#;
        assert!(stored.starts_with(expected), "{stored}");
        assert_eq!(serde_json::from_str::<HeadConfig>(&stored).unwrap(), config);
    }
}
