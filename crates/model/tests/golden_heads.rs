//! Heads compared with the reference implementations' numbers; see `crates/testkit/golden`.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use burn::{
    module::Param,
    tensor::{DType, Device, Gradients, Tensor},
};
use overtone_core::seed;
use overtone_model::{
    Init,
    head::{
        BinsOptions, FourierDensity, FourierLikelihoodConfig, GmmHeadConfig, GmmLikelihoodConfig,
        MixtureStd, MixtureWeights, NumbersOptions, OnBins, OnNumbers, cross_entropy,
    },
    weights::{self, NamedTensors},
};
use overtone_testkit::{
    Golden, assert_close,
    golden::{self, Array},
};

/// Outputs, losses and gradients of `f64` files, relative to the reference. Largest seen:
/// 8e-13 (outputs), 2e-14 of the largest entry (gradients).
const DOUBLE: f64 = 1e-9;
/// Losses of the same weights in `f32`, relative. Largest seen: 3e-7.
const SINGLE_LOSS: f64 = 1e-5;
/// Logits of the same weights in `f32`, absolute. Largest seen: 2e-5.
const SINGLE_LOGITS: f64 = 2e-4;
/// The reference's inverse of the cumulative distribution is the middle of an interval
/// 2⁻²⁴ wide.
const REFERENCE_BISECTION: f64 = 3e-8;

/// Checks every file of a pattern in double and in single precision.
fn check_files(prefix: &str, check: impl Fn(&Golden, DType)) {
    for path in golden::files(prefix, ".safetensors") {
        println!("checking {}", path.display());
        let file = Golden::read(&path);
        for dtype in [DType::F64, DType::F32] {
            check(&file, dtype);
        }
    }
}

#[test]
fn fourier_likelihood_heads() {
    check_files("fourier_mle_", check_fourier_likelihood);
}

fn check_fourier_likelihood(file: &Golden, dtype: DType) {
    let device = Device::flex().autodiff();
    let weight = file.get("weight").transposed();
    let [d_model, width] = weight.shape[..] else { panic!("weight is not a matrix") };
    let config = FourierLikelihoodConfig {
        gamma: file.scalar("gamma"),
        ..FourierLikelihoodConfig::new(width / 2 - 1)
    };
    let generator = &mut seed::generator(0, "init");
    let init = &mut Init::drawn(&device, generator);
    let head = config.init(d_model, 1, init);
    let head = weights::import(
        head,
        &NamedTensors::from([
            ("weight".into(), weight.data(dtype)),
            ("bias".into(), file.get("bias").data(dtype)),
        ]),
    )
    .unwrap();
    let x = file.get("x").tensor::<2>(&device, dtype).require_grad();
    let z = file.get("z").tensor::<1>(&device, dtype).require_grad();
    let rows = z.dims()[0];

    let output = head.loss(x.clone(), z.clone().reshape([rows, 1]));
    let nll = output.rows.mean();
    let regularization = output.regularization.unwrap().mean();
    let loss = nll.clone() + regularization.clone();
    let tolerance = if dtype == DType::F64 { DOUBLE } else { SINGLE_LOSS };
    for (name, got) in [("nll", nll), ("reg", regularization), ("loss", loss.clone())] {
        assert_close(name, &values(got), &file.get(name).values, tolerance, 0.0);
    }
    if dtype != DType::F64 {
        return;
    }
    let gradients = loss.backward();
    check_gradient(&gradients, &x, "grad_x", file.get("grad_x"));
    check_gradient(&gradients, &z, "grad_z", file.get("grad_z"));
    let by_weight = file.get("grad_weight").transposed();
    check_gradient(&gradients, &head.weight.val(), "grad_weight", &by_weight);
    check_gradient(&gradients, &head.bias.val(), "grad_bias", file.get("grad_bias"));

    let densities = head.densities(x.inner());
    let each = |f: &dyn Fn(usize, &FourierDensity) -> f64| -> Vec<f64> {
        densities.iter().enumerate().map(|(row, density)| f(row, density)).collect()
    };
    let points = &file.get("z").values;
    let pdf = each(&|row, density| density.pdf(points[row]));
    assert_close("pdf_at_z", &pdf, &file.get("pdf_at_z").values, DOUBLE, 1e-12);
    let on_grid = |f: &dyn Fn(&FourierDensity, f64) -> f64| -> Vec<f64> {
        let grid = &file.get("grid").values;
        densities.iter().flat_map(|d| grid.iter().map(|&z| f(d, z)).collect::<Vec<_>>()).collect()
    };
    let pdf = on_grid(&FourierDensity::pdf);
    assert_close("pdf_grid", &pdf, &file.get("pdf_grid").values, DOUBLE, 1e-12);
    let cdf = on_grid(&FourierDensity::cdf);
    assert_close("cdf_grid", &cdf, &file.get("cdf_grid").values, DOUBLE, 1e-12);
    if let (Some(u), Some(expected)) = (file.try_get("icdf_u"), file.try_get("icdf_z")) {
        let z = each(&|row, density| density.inverse_cdf(u.values[row]));
        assert_close("icdf_z", &z, &expected.values, 0.0, REFERENCE_BISECTION);
        let back = each(&|row, density| density.cdf(z[row]));
        assert_close("cdf(icdf_z)", &back, &u.values, 0.0, 1e-14);
    } else {
        println!("absent: icdf_u, icdf_z");
    }
}

#[test]
fn gmm_heads() {
    check_files("gmm_head_", check_gmm);
}

fn check_gmm(file: &Golden, dtype: DType) {
    let device = Device::flex().autodiff();
    let (components, d_model) = (file.get("weight").shape[0], file.get("weight").shape[1]);
    let logits = file.get("logits");
    let Options { weights, std, init_std } = options(file);
    let config = GmmHeadConfig { components, weights, std, init_std, ..Default::default() };
    let generator = &mut seed::generator(0, "init");
    let head = config.init(d_model, logits.shape[1], &mut Init::drawn(&device, generator));
    check_initial_std(file, head.raw_std.as_ref().map(Param::val));
    let head = weights::import(head, &mixture_parameters(file, "", dtype)).unwrap();
    let x = file.get("x").tensor::<2>(&device, dtype).require_grad();

    let got = head.forward(x.clone()).logits;
    let double = dtype == DType::F64;
    let (relative, absolute) = if double { (DOUBLE, 1e-12) } else { (0.0, SINGLE_LOGITS) };
    assert_close("logits", &values(got.clone()), &logits.values, relative, absolute);
    let loss = cross_entropy(got, file.get("y").ints(&device)).mean();
    let tolerance = if double { DOUBLE } else { SINGLE_LOSS };
    assert_close("ce", &values(loss.clone()), &file.get("ce").values, tolerance, 0.0);
    if double {
        let gradients = loss.backward();
        check_gradient(&gradients, &x, "grad_x", file.get("grad_x"));
        check_mixture_gradients(file, "", &weights::export_gradients(&head, &gradients));
    }
}

#[test]
fn gmm_likelihood_heads() {
    check_files("gmm_mle_", check_gmm_likelihood);
}

fn check_gmm_likelihood(file: &Golden, dtype: DType) {
    let device = Device::flex().autodiff();
    let rows = file.get("x").shape[0];
    let z = file.get("z");
    let dimensions = z.values.len() / rows;
    let z = Array { shape: vec![rows, dimensions], ..z.clone() }.tensor::<2>(&device, dtype);
    let [gaussians, d_model] = file.get("means_weight").shape[..] else { panic!("no matrix") };
    let Options { weights, std, init_std } = options(file);
    let config = GmmLikelihoodConfig { components: gaussians / dimensions, weights, std, init_std };
    let generator = &mut seed::generator(0, "init");
    let head = config.init(d_model, dimensions, &mut Init::drawn(&device, generator));
    check_initial_std(file, head.raw_std.as_ref().map(Param::val));
    let head = weights::import(head, &mixture_parameters(file, "means_", dtype)).unwrap();
    let x = file.get("x").tensor::<2>(&device, dtype).require_grad();

    let tolerance = if dtype == DType::F64 { DOUBLE } else { SINGLE_LOSS };
    let pdf = values(head.density(x.clone(), z.clone()));
    let expected = &file.get("pdf_at_z").values;
    for (got, expected) in pdf.iter().zip(expected) {
        // In single precision, an exponent x has an error of about x 2^-24, and so has the density,
        // relative to its size. Far out in a tail (-71 in one file, 2e-5 seen) that exceeds the
        // tolerance.
        let of_exponent = 8.0 * expected.ln().abs() * 2f64.powi(-24);
        let relative = if dtype == DType::F64 { tolerance } else { tolerance.max(of_exponent) };
        assert_close("pdf_at_z", &[*got], &[*expected], relative, 0.0);
    }
    assert_eq!(pdf.len(), expected.len());
    let loss = head.loss(x.clone(), z).rows.mean();
    assert_close("nll", &values(loss.clone()), &file.get("nll").values, tolerance, 0.0);
    if dtype != DType::F64 {
        return;
    }
    let gradients = loss.backward();
    check_gradient(&gradients, &x, "grad_x", file.get("grad_x"));
    check_mixture_gradients(file, "means_", &weights::export_gradients(&head, &gradients));

    let densities = head.densities(x.inner());
    let host: Vec<f64> =
        densities.iter().zip(&file.get("z").values).map(|(d, &z)| d.pdf(z)).collect();
    assert_close("pdf on the host", &host, &file.get("pdf_at_z").values, DOUBLE, 0.0);
}

/// A mixture head's options, derived from the existing tensors.
struct Options {
    weights: MixtureWeights,
    std: MixtureStd,
    /// The constant deviation, if there is one.
    init_std: f64,
}

fn options(file: &Golden) -> Options {
    let fixed = file.try_get("fixed_std");
    Options {
        weights: match file.try_get("weights_weight") {
            Some(_) => MixtureWeights::Learned,
            None => MixtureWeights::Equal,
        },
        std: match (fixed, file.try_get("std_weight")) {
            (Some(_), None) => MixtureStd::Fixed,
            (None, Some(_)) => MixtureStd::State,
            (None, None) => MixtureStd::Shared,
            (Some(_), Some(_)) => panic!("deviations are both fixed and of the state"),
        },
        init_std: fixed.map_or(0.0, |fixed| {
            assert!(fixed.values.iter().all(|&std| std == fixed.values[0]), "{fixed:?}");
            fixed.values[0]
        }),
    }
}

/// The tensors of a mixture head's layer, concatenated over its groups; names of the means start
/// with `prefix`.
fn layer(file: &Golden, of: &str, prefix: &str) -> [Array; 2] {
    let join = |part: &str| {
        let groups = [prefix, "std_", "weights_"].map(|group| format!("{of}{group}{part}"));
        let mut arrays = groups.iter().filter_map(|name| file.try_get(name));
        let mut all = arrays.next().unwrap().clone();
        for array in arrays {
            all.shape[0] += array.shape[0];
            all.values.extend(&array.values);
        }
        all
    };
    [join("weight").transposed(), join("bias")]
}

fn mixture_parameters(file: &Golden, prefix: &str, dtype: DType) -> NamedTensors {
    let [weight, bias] = layer(file, "", prefix);
    let mut parameters = NamedTensors::from([
        ("weight".into(), weight.data(dtype)),
        ("bias".into(), bias.data(dtype)),
    ]);
    parameters.extend(file.try_get("raw_std").map(|raw| ("raw_std".into(), raw.data(dtype))));
    parameters
}

#[track_caller]
fn check_mixture_gradients(file: &Golden, prefix: &str, got: &NamedTensors) {
    let [weight, bias] = layer(file, "grad_", prefix);
    let mut expected = vec![("weight", &weight), ("bias", &bias)];
    expected.extend(file.try_get("grad_raw_std").map(|raw| ("raw_std", raw)));
    assert_eq!(got.len(), expected.len(), "{:?}", got.keys());
    for (name, expected) in expected {
        let got: Vec<f64> = got[name].iter::<f64>().collect();
        check_gradient_values(name, &got, expected);
    }
}

/// The initial standard deviation of every component equals the file's value, if there is one.
#[track_caller]
fn check_initial_std(file: &Golden, raw: Option<Tensor<1>>) {
    let (Some(raw), Some(expected)) = (raw, file.try_get("init_std")) else {
        println!("absent: init_std");
        return;
    };
    let got: Vec<f64> = values(raw).iter().map(|raw| raw.exp().ln_1p()).collect();
    assert_close("init_std", &got, &vec![expected.values[0]; got.len()], 1e-6, 0.0);
}

/// Entries may differ by [`DOUBLE`] of the tensor's largest entry.
#[track_caller]
fn check_gradient<const D: usize>(
    gradients: &Gradients,
    parameter: &Tensor<D>,
    what: &str,
    expected: &Array,
) {
    check_gradient_values(what, &values(parameter.grad(gradients).unwrap()), expected);
}

#[track_caller]
fn check_gradient_values(what: &str, got: &[f64], expected: &Array) {
    let scale = expected.values.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
    assert_close(what, got, &expected.values, 0.0, DOUBLE * scale.max(1e-9));
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}
