//! Heads for continuous actions learn distributions with a known optimal loss.
//!
//! There are two inputs. After the first, actions have the density `(1 + cos πz)/2`: one bump in
//! the middle. After the second, they have `(1 - cos πz)/2`: two half bumps, at -1 and at 1. The
//! entropy of both is `2 ln 2 - 1 = 0.386` nats, the lower bound of the mean loss of any head.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use burn::tensor::{Device, Tensor, TensorData};
use overtone_core::{ActionSpace, seed};
use overtone_model::{
    Head, HeadConfig, Init,
    head::{
        ActedRows, Domain, FourierDensity, FourierLikelihoodConfig, GaussianConfig,
        GmmLikelihoodConfig, InitialCoefficients, PointwiseConfig, TanhConfig,
    },
};
use overtone_train::{AdamW, AdamWConfig, optimizer::scalar};

/// Actions after each input, at equal steps of their cumulative distributions.
const EACH: usize = 100;
const N_STEPS: usize = 400;

fn rows(device: &Device) -> (Tensor<2>, Tensor<2>) {
    let mut inputs = Vec::new();
    let mut actions = Vec::new();
    for (input, sign) in [([1.0f32, 0.0], 1.0), ([0.0, 1.0], -1.0)] {
        let density = FourierDensity::new(&[1.0, sign, 0.0, 0.0], Domain::Periodic);
        for i in 0..EACH {
            inputs.extend(input);
            actions.push(density.inverse_cdf((i as f64 + 0.5) / EACH as f64) as f32);
        }
    }
    (
        Tensor::from_data(TensorData::new(inputs, [2 * EACH, 2]), device),
        Tensor::from_data(TensorData::new(actions, [2 * EACH, 1]), device),
    )
}

/// The mean loss after training, and the head.
fn learn(config: &HeadConfig) -> (f64, Head) {
    let device = Device::flex().autodiff();
    let mut head = config.init(
        2,
        &ActionSpace::unit(1),
        &mut Init::drawn(&device, &mut seed::generator(1, "init")),
    );
    let (inputs, actions) = rows(&device);
    let mut adam = AdamW::new(AdamWConfig { beta_2: 0.95, ..AdamWConfig::default() });
    let loss = |head: &Head| {
        head.loss(inputs.clone(), ActedRows::Continuous(actions.clone()), None).rows.mean()
    };
    for step in 0..N_STEPS {
        let rate = 0.02 * (1.0 - step as f64 / N_STEPS as f64);
        let gradients = loss(&head).backward();
        head = adam.step(head, gradients, rate).0;
    }
    (scalar(loss(&head).inner()), head)
}

/// One input of each kind.
fn both() -> Tensor<2> {
    Tensor::from_data([[1.0f32, 0.0], [0.0, 1.0]], &Device::flex().autodiff())
}

fn modes(head: &Head) -> Vec<f64> {
    head.decide(both()).numbers().unwrap().modes()
}

fn optimum() -> f64 {
    2.0 * 2.0f64.ln() - 1.0
}

#[test]
fn a_fourier_head_reaches_the_entropy() {
    for initial in [InitialCoefficients::default(), InitialCoefficients::UniformDensity] {
        let config = HeadConfig::FourierLikelihood(FourierLikelihoodConfig {
            initial,
            ..FourierLikelihoodConfig::new(2)
        });
        let (loss, head) = learn(&config);
        assert!((loss - optimum()).abs() < 0.01, "{initial:?}: {loss} against {}", optimum());
        let modes = modes(&head);
        assert!(modes[0].abs() < 0.05, "{modes:?}");
        assert!(modes[1].abs() > 0.95, "{modes:?}");
    }
}

/// With one width for both inputs, a Gaussian's best mean is 0, its variance the mean of both
/// variances, `1/3 ∓ 2/π²`, that is 1/3, and its loss `½ ln(2πe/3)`.
#[test]
fn a_gaussian_reaches_its_optimum() {
    let (loss, head) = learn(&HeadConfig::Gaussian(GaussianConfig {}));
    let best = 0.5 * (std::f64::consts::TAU * std::f64::consts::E / 3.0).ln();
    assert!((loss - best).abs() < 0.005, "{loss} against {best}");
    let modes = modes(&head);
    assert!(modes.iter().all(|mode| mode.abs() < 0.02), "{modes:?}");
}

/// Two Gaussians move to the two bumps.
#[test]
fn a_mixture_of_two_finds_both_bumps() {
    let gmm =
        HeadConfig::GmmLikelihood(GmmLikelihoodConfig { components: 2, ..Default::default() });
    let (loss, head) = learn(&gmm);
    let (one, _) = learn(&HeadConfig::Gaussian(GaussianConfig {}));
    assert!(loss > optimum() && loss < one - 0.1, "{loss}, one Gaussian {one}");
    let Head::GmmLikelihood(head) = head else { panic!("another head") };
    let mut means = head.densities(both())[1].means.clone();
    means.sort_by(f64::total_cmp);
    assert!(means[0] < -0.5 && means[1] > 0.5, "{means:?}");
}

/// Squared error learns only the mean: 0 after both inputs, with a loss of 1/3.
#[test]
fn regression_learns_the_mean() {
    for config in [HeadConfig::Tanh(TanhConfig {}), HeadConfig::Pointwise(PointwiseConfig {})] {
        let (loss, head) = learn(&config);
        assert!((loss - 1.0 / 3.0).abs() < 0.005, "{config:?}: {loss}");
        let means = modes(&head);
        assert!(means.iter().all(|mean| mean.abs() < 0.02), "{config:?}: {means:?}");
    }
}
