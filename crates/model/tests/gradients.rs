//! Head gradients against central differences in `f64`.

use burn::tensor::{Device, Int, Tensor};
use overtone_model::head::{Domain, cross_entropy, fourier, fourier_likelihood};
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
