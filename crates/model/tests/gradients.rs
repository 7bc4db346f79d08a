//! Head gradients against central differences in `f64`.

use burn::tensor::{Device, Int, Tensor, TensorData};
use overtone_model::head::{
    Domain, MixtureLayout, MixtureStd, MixtureWeights, cross_entropy, fourier, fourier_likelihood,
};
use overtone_testkit::assert_gradient;

/// Largest relative error seen: 2e-9.
const TOLERANCE: f64 = 1e-7;

/// Three rows of coefficients of N = 3, away from zeros of the density.
const COEFFICIENTS: [f64; 24] = [
    0.9, -0.3, 0.2, 0.5, 0.1, 0.4, -0.6, 0.3, // row 0
    -0.2, 0.8, 0.7, -0.1, 0.6, -0.5, 0.2, 0.9, // row 1
    0.3, 0.3, -0.9, 0.2, -0.7, 0.1, 0.4, -0.8, // row 2
];

fn targets() -> Tensor<1, Int> {
    Tensor::from_data([4, 0, 2], &Device::flex())
}

fn targets_for(x: &Tensor<1>) -> Tensor<1, Int> {
    if x.is_autodiff() { targets().autodiff() } else { targets() }
}

#[test]
fn fourier_logits() {
    assert_gradient("fourier cross-entropy", &COEFFICIENTS, 1e-6, TOLERANCE, |x| {
        let targets = targets_for(&x);
        let logits = fourier::logits(x.reshape([3, 8]), 5, None, Domain::Periodic);
        cross_entropy(logits, targets).mean()
    });
}

#[test]
fn roughness() {
    assert_gradient("roughness", &COEFFICIENTS, 1e-6, TOLERANCE, |x| {
        fourier::roughness(x.reshape([3, 8])).mean()
    });
}

#[test]
fn softmax_cross_entropy() {
    let logits: Vec<f64> = COEFFICIENTS[..15].iter().map(|x| 3.0 * x).collect();
    assert_gradient("cross-entropy", &logits, 1e-6, TOLERANCE, |x| {
        let targets = targets_for(&x);
        cross_entropy(x.reshape([3, 5]), targets).mean()
    });
}

#[test]
fn fourier_density() {
    // The last three numbers are the points.
    let at: Vec<f64> = COEFFICIENTS.into_iter().chain([-0.7, 0.1, 0.85]).collect();
    for domain in [Domain::Periodic, Domain::HalfRange] {
        assert_gradient("fourier log-density", &at, 1e-6, TOLERANCE, |x| {
            let coefficients = x.clone().narrow(0, 0, 24).reshape([3, 8]);
            let z = x.narrow(0, 24, 3);
            fourier_likelihood::density(coefficients, z, domain).log().mean()
        });
    }
}

/// Every option of mixtures: at bins, and at the actions of two dimensions.
#[test]
fn mixtures() {
    let numbers = |n: usize| (0..n).map(|i| (1.0 + 1.7 * i as f64).sin());
    for weights in [MixtureWeights::Equal, MixtureWeights::Learned] {
        for std in [MixtureStd::Shared, MixtureStd::Fixed, MixtureStd::State] {
            let layout = |dimensions| MixtureLayout {
                dimensions,
                components: 3,
                weights,
                std,
                fixed_std: 0.4,
            };
            // The outputs of three rows, then the parameters of shared deviations.
            let read = |layout: MixtureLayout, x: &Tensor<1>| {
                let n = 3 * layout.outputs();
                let outputs = x.clone().narrow(0, 0, n).reshape([3, layout.outputs()]);
                let gaussians = 3 * layout.dimensions;
                let raw = (std == MixtureStd::Shared).then(|| x.clone().narrow(0, n, gaussians));
                layout.read(outputs, raw)
            };
            let what = format!("{weights:?}, {std:?}");
            let like = |x: &Tensor<1>, values: Vec<f64>, shape: [usize; 3]| {
                Tensor::<3>::from_data(TensorData::new(values, shape), (&x.device(), x.dtype()))
            };
            let at: Vec<f64> = numbers(3 * layout(1).outputs() + 3).collect();
            assert_gradient(&format!("on bins: {what}"), &at, 1e-6, TOLERANCE, |x| {
                let targets = targets_for(&x);
                let centres =
                    like(&x, (0..5).map(|j| f64::from(j) * 0.4 - 0.8).collect(), [1, 5, 1]);
                let density = read(layout(1), &x).density(centres);
                cross_entropy((density + 1e-5).log(), targets).mean()
            });
            let at: Vec<f64> = numbers(3 * layout(2).outputs() + 6).collect();
            assert_gradient(&format!("at actions: {what}"), &at, 1e-6, TOLERANCE, |x| {
                let z = like(&x, vec![-0.7, 0.1, 0.85, -0.2, 0.4, 0.0], [3, 2, 1]);
                (read(layout(2), &x).density(z) + 1e-10).log().mean()
            });
        }
    }
}
