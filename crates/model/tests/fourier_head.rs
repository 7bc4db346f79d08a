//! The Fourier head alone, as another network uses it.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use burn::{
    module::Param,
    tensor::{DType, Device, Int, Tensor, TensorData, activation::softmax},
};
use overtone_model::head::{FourierHead, FourierHeadConfig, fourier::KAPPA};
use overtone_testkit::assert_gradient;

/// A head in `f64` whose every number is noise.
fn head(device: &Device) -> FourierHead {
    let config = FourierHeadConfig { gamma: 0.01, ..FourierHeadConfig::new(4) };
    let noise = |n: usize, seed: usize| -> Vec<f64> {
        (0..n).map(|i| (1.7 * (i * i + seed) as f64).sin()).collect()
    };
    let options = (device, DType::F64);
    let weight = TensorData::new(noise(3 * 10, 1), [3, 10]);
    let bias = TensorData::new(noise(10, 2), [10]);
    FourierHead {
        weight: Param::from_tensor(Tensor::from_data(weight, options)),
        bias: Param::from_tensor(Tensor::from_data(bias, options)),
        ..config.seeded(3, 7, device, 1)
    }
}

#[test]
fn the_loss_with_its_regulariser_has_the_gradient_of_central_differences() {
    let hidden = [0.3, -0.8, 1.1, -0.2, 0.9, 0.4];
    assert_gradient("the loss by hidden", &hidden, 1e-5, 1e-8, |hidden| {
        let bins = Tensor::<1, Int>::from_data([2, 6], &hidden.device());
        head(&hidden.device()).mean_loss(hidden.reshape([2, 3]), bins)
    });
}

#[test]
fn logits_are_the_density_at_bin_centres() {
    let device = Device::flex();
    let hidden = Tensor::<1>::from_data([0.3, -0.8, 1.1], (&device, DType::F64));
    let hidden = hidden.reshape([1, 3]);
    let head = head(&device);
    let density = head.densities(hidden.clone()).remove(0);
    let at_centres = (0..7).map(|bin| density.pdf(-1.0 + f64::from(2 * bin + 1) / 7.0));
    let at_centres: Vec<f64> = at_centres.collect();
    let sum: f64 = at_centres.iter().sum();
    let probabilities = softmax(head.logits(hidden), 1).into_data();
    for (got, density) in probabilities.iter::<f64>().zip(at_centres) {
        let expected = (density / sum + KAPPA) / (1.0 + 7.0 * KAPPA);
        assert!((got - expected).abs() < 1e-12, "{got} {expected}");
    }
}

#[test]
fn no_probability_is_above_the_cap() {
    let device = Device::flex();
    // The coefficients with the largest probability of bin 2: a_l = e^{-ilπb}.
    let (n, m) = (4, 18);
    let centre = -1.0 + 5.0 / m as f64;
    let angle = |l: i32| f64::from(l) * std::f64::consts::PI * centre;
    let re = (0..=n).map(|l| angle(l).cos());
    let im = (0..=n).map(|l| -angle(l).sin());
    let bias: Vec<f64> = re.chain(im).collect();
    let config = FourierHeadConfig::new(4);
    let options = (&device, DType::F64);
    let head = FourierHead {
        weight: Param::from_tensor(Tensor::zeros([1, 10], options)),
        bias: Param::from_tensor(Tensor::from_data(TensorData::new(bias, [10]), options)),
        ..config.seeded(1, m, &device, 1)
    };
    let logits = head.logits(Tensor::zeros([1, 1], options)).into_data();
    let probabilities: Vec<f64> = logits.iter::<f64>().map(|x| x.exp() - KAPPA).collect();
    assert!((probabilities[2] - config.largest_probability(m)).abs() < 1e-12);
    assert_eq!(config.largest_probability(m), 5.0 / 18.0);
    assert_eq!(config.largest_probability(5), 1.0);
}
