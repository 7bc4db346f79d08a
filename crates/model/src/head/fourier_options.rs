//! Options that the Fourier heads on bins and as likelihoods share.

use std::ops::RangeInclusive;

use burn::{module::Param, tensor::Tensor};
use serde::{Deserialize, Serialize};

use crate::{
    error::{ModelError, config_error},
    parameters::init::{GPT_STD, Init, fan_in_bound},
};

/// Mapping of [-1, 1] to the period of the Fourier series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Domain {
    /// [-1, 1] is the whole period, so -1 and 1 are neighbours (the reference).
    #[default]
    Periodic,
    /// [-1, 1] is half of a period: `A(z/2)` instead of `A(z)`. The density may end differently at
    /// -1 and at 1, and has half the resolution for the same N.
    HalfRange,
}

impl Domain {
    /// Factor from `z` to its place on the period [-1, 1].
    pub fn stretch(self) -> f64 {
        match self {
            Self::Periodic => 1.0,
            Self::HalfRange => 0.5,
        }
    }
}

/// Two smoothness regularisers with the factor γ. Both are proportional to `Σ_{k=1}^{N} k²|c_k|²`,
/// averaged over rows. `c` is the autocorrelation of the coefficients *before* the division by
/// `c_0`, on the whole period for any [`Domain`]. With m bins, the reference's is `2m` times the
/// paper's: 36 times for Atari's 18 actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Regularizer {
    /// `γ · 4π² · mean Σ k²|c_k|²`, as in the released code.
    #[default]
    Reference,
    /// `γ · (2π²/m) · mean Σ k²|c_k|²`, as printed in the paper (Section 2.3). Its sum runs to m;
    /// terms beyond N are 0, so this one ends there.
    Paper,
}

impl Regularizer {
    /// The factor of `γ · Σ k²|c_k|²` with `m` bins.
    pub fn scale(self, m: usize) -> f64 {
        let pi_squared = std::f64::consts::PI * std::f64::consts::PI;
        match self {
            Self::Reference => 4.0 * pi_squared,
            Self::Paper => 2.0 * pi_squared / m as f64,
        }
    }
}

/// Initialization of a Fourier head's affine layer.
///
/// The density does not depend on the coefficients' scale, because `|A|²` and `Σ|a_l|²` scale
/// equally. The paper advises to divide weights and biases by 100 or 1000, for an initial density
/// near the uniform one. This does not change the initial density: its mean divergence from the
/// uniform one is 0.381 nats here (N = 12, 18 actions) and 0.392 in the released code, divided by
/// 1, 100 or 1000. A division does change two things: Adam's steps are larger relative to the
/// weights, and the regulariser, of fourth degree, is smaller. [`Self::UniformDensity`] gives the
/// intended initial density.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum InitialCoefficients {
    /// Weights N(0, 0.02²), biases 0: the transformer's initialization, which overwrites the head's
    /// own in the reference's Atari model.
    #[default]
    Normal,
    /// The same with another standard deviation.
    Std(f64),
    /// Weights and biases U(±1/√d_model), PyTorch's default for a linear layer, then divided: in
    /// the reference, by 100 and 100 for the head alone, and by 1000 and 10 in the forecasting
    /// model.
    FanIn {
        /// Divisor of the weights.
        weight_divisor: f64,
        /// Divisor of the biases.
        bias_divisor: f64,
    },
    /// All weights 0, and all biases 0 except for `a_0`: exactly uniform for every input. The
    /// gradient of the layer is not zero there; the gradient of the token is, in the first step.
    #[serde(rename = "uniform")]
    UniformDensity,
}

/// Valid scales and divisors of initial coefficients: beyond any use, with squares that are finite
/// in single precision.
const SCALES: RangeInclusive<f64> = 1e-9..=1e9;

impl InitialCoefficients {
    /// # Errors
    /// When a scale is not positive, or outside of the valid range.
    pub fn validate(&self) -> Result<(), ModelError> {
        let usable = |key, value: f64| {
            if SCALES.contains(&value) {
                Ok(())
            } else {
                Err(config_error(key, value, "must lie in [1e-9, 1e9]"))
            }
        };
        match *self {
            Self::Std(std) => usable("head.initial.std", std),
            Self::FanIn { weight_divisor, bias_divisor } => {
                usable("head.initial.weight_divisor", weight_divisor)?;
                usable("head.initial.bias_divisor", bias_divisor)
            }
            Self::Normal | Self::UniformDensity => Ok(()),
        }
    }

    /// Weights `[d_model, n_densities · 2(N+1)]` and biases of the affine layer of `n_densities`
    /// adjacent densities.
    pub(super) fn draw(
        &self,
        d_model: usize,
        n_densities: usize,
        frequencies: usize,
        init: &mut Init<'_>,
    ) -> (Param<Tensor<2>>, Param<Tensor<1>>) {
        let each = 2 * (frequencies + 1);
        let width = n_densities * each;
        match *self {
            Self::Normal => Self::Std(GPT_STD).draw(d_model, n_densities, frequencies, init),
            Self::Std(std) => (init.normal([d_model, width], std), init.constant([width], 0.0)),
            Self::FanIn { weight_divisor, bias_divisor } => {
                let bound = fan_in_bound(d_model);
                (
                    init.uniform([d_model, width], bound / weight_divisor),
                    init.uniform([width], bound / bias_divisor),
                )
            }
            Self::UniformDensity => {
                let first_of_each =
                    |place: usize| if place.is_multiple_of(each) { 1.0 } else { 0.0 };
                (
                    init.constant([d_model, width], 0.0),
                    init.filled([width], |place, _| first_of_each(place)),
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::{
        BinsOptions, FourierHead, FourierHeadConfig, FourierLikelihoodConfig, NumbersOptions,
        OnBins,
    };
    use burn::tensor::{Device, activation::softmax};
    use overtone_core::seed;

    const D_MODEL: usize = 32;
    const N_ACTIONS: usize = 18;

    fn head(initial: InitialCoefficients, device: &Device) -> FourierHead {
        let config = FourierHeadConfig { initial, ..FourierHeadConfig::new(12) };
        let generator = &mut seed::generator(6, "init");
        config.init(D_MODEL, N_ACTIONS, &mut Init::drawn(device, generator))
    }

    fn hidden(rows: usize, device: &Device) -> Tensor<2> {
        let generator = &mut seed::generator(7, "test");
        Init::drawn(device, generator).normal([rows, D_MODEL], 1.0).val().detach()
    }

    /// Mean over rows of KL(initial distribution ‖ uniform), in nats.
    fn divergence(initial: InitialCoefficients) -> f64 {
        let rows = 1000;
        let head = head(initial, &Device::flex());
        let logits = head.forward(hidden(rows, &Device::flex())).logits;
        let probabilities = softmax(logits, 1).into_data();
        let sum: f64 = probabilities.iter::<f64>().map(|p| p * (p * N_ACTIONS as f64).ln()).sum();
        sum / rows as f64
    }

    #[test]
    fn division_keeps_the_initial_density_and_the_option_makes_it_uniform() {
        let by = |divisor| {
            divergence(InitialCoefficients::FanIn {
                weight_divisor: divisor,
                bias_divisor: divisor,
            })
        };
        let [one, hundred, thousand] = [1.0, 100.0, 1000.0].map(by);
        println!("divergence from uniform: {one} {hundred} {thousand}");
        assert!((0.35..0.45).contains(&one), "{one}");
        assert!((one - hundred).abs() < 1e-5 && (one - thousand).abs() < 1e-5);
        let uniform = divergence(InitialCoefficients::UniformDensity);
        assert!(uniform.abs() < 1e-6, "{uniform}");
    }

    #[test]
    fn the_uniform_density_has_a_gradient() {
        let device = Device::flex().autodiff();
        let head = head(InitialCoefficients::UniformDensity, &device);
        let loss = head.forward(hidden(3, &device)).logits.narrow(1, 3, 1).sum();
        let gradients = loss.backward();
        let gradient = head.weight.val().grad(&gradients).map(Tensor::into_data);
        let gradient: Vec<f32> = gradient.iter().flat_map(|g| g.iter::<f32>()).collect();
        assert_eq!(gradient.len(), D_MODEL * 26);
        // All except those of a_0, which only scales, and of u_9: cos(9πb_3) is 0.
        let n_moving = gradient.iter().filter(|g| g.abs() > 1e-4).count();
        assert!(n_moving > D_MODEL * 20, "{n_moving}");
    }

    #[test]
    fn likelihoods_start_uniform_too() {
        for domain in [Domain::Periodic, Domain::HalfRange] {
            let config = FourierLikelihoodConfig {
                initial: InitialCoefficients::UniformDensity,
                domain,
                ..FourierLikelihoodConfig::new(5)
            };
            let device = Device::flex();
            let generator = &mut seed::generator(6, "init");
            let head = config.init(D_MODEL, 3, &mut Init::drawn(&device, generator));
            for density in head.densities(hidden(2, &device)) {
                for z in [-1.0, -0.3, 0.8] {
                    assert!((density.pdf(z) - 0.5).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn the_two_regularisers_differ_by_twice_the_bins() {
        let reading = |regularizer| {
            let config =
                FourierHeadConfig { gamma: 0.5, regularizer, ..FourierHeadConfig::new(12) };
            let generator = &mut seed::generator(6, "init");
            let head =
                config.init(D_MODEL, N_ACTIONS, &mut Init::drawn(&Device::flex(), generator));
            let output = head.forward(hidden(4, &Device::flex()));
            let rows = output.regularization.map(Tensor::into_data);
            rows.iter().flat_map(|rows| rows.iter::<f64>()).collect::<Vec<f64>>()
        };
        let [code, paper] = [Regularizer::Reference, Regularizer::Paper].map(reading);
        assert_eq!(code.len(), 4);
        for (code, paper) in code.iter().zip(paper) {
            let ratio = code / paper;
            assert!((ratio - 2.0 * N_ACTIONS as f64).abs() < 1e-4, "{ratio}");
        }
    }

    #[test]
    fn a_word_is_enough_without_a_scale() {
        for (initial, text) in [
            (InitialCoefficients::default(), r#""normal""#),
            (InitialCoefficients::UniformDensity, r#""uniform""#),
            (InitialCoefficients::Std(0.5), r#"{"std":0.5}"#),
        ] {
            assert_eq!(serde_json::to_string(&initial).unwrap(), text);
            assert_eq!(serde_json::from_str::<InitialCoefficients>(text).unwrap(), initial);
        }
    }

    #[test]
    fn scales_out_of_proportion_are_refused() {
        let refused = |initial: InitialCoefficients| initial.validate().unwrap_err().to_string();
        for std in [0.0, f64::NAN, 1e300] {
            assert!(refused(InitialCoefficients::Std(std)).contains("head.initial.std"), "{std}");
        }
        let fan_in = |weight_divisor, bias_divisor| InitialCoefficients::FanIn {
            weight_divisor,
            bias_divisor,
        };
        assert!(refused(fan_in(-1.0, 1.0)).contains("weight_divisor"));
        assert!(refused(fan_in(1.0, f64::INFINITY)).contains("bias_divisor"));
        assert!(refused(fan_in(1e-30, 1.0)).contains("weight_divisor"));
        assert!(refused(fan_in(1.0, 1e-308)).contains("bias_divisor"));
        assert!(InitialCoefficients::default().validate().is_ok());
    }
}
