//! The reference's first steps of training on the toy data; see `crates/testkit/golden`.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::path::Path;

use overtone_core::seed;
use overtone_lab::toy::data::{Dataset, Draw};
use overtone_lab::toy::head::HeadKind;
use overtone_lab::toy::runs::{BATCH, LEARNING_RATE};
use overtone_lab::toy::stack::{Batch, Trainer};
use overtone_model::burn::module::Param;
use overtone_model::burn::tensor::{Device, Tensor, TensorData};
use overtone_testkit::{Golden, assert_close, golden};
use serde_json::{Map, Value};

/// Losses and gradient norms of 20 steps, and the parameters' norms behind them, relative.
const SINGLE: f64 = 1e-4;
/// The mixture's first steps are steep: the reference's own `f32` is 6e-4 from its `f64` at
/// step 1.
const SINGLE_GMM: f64 = 2e-3;

/// The head of each entry of the file.
fn head(name: &str) -> HeadKind {
    let (frequencies, gamma) = (12, 1e-6);
    match name {
        "linear" => HeadKind::Linear,
        "gmm" => HeadKind::Gmm { components: 2, likelihood: false },
        "fourier" => HeadKind::Fourier { frequencies, gamma, likelihood: false },
        "fourier-mle" => HeadKind::Fourier { frequencies, gamma, likelihood: true },
        other => panic!("no head `{other}`"),
    }
}

/// Where PyTorch's modules keep layer `index`, weight and bias.
fn layer_names(name: &str, index: usize) -> [String; 2] {
    let last = match name {
        "linear" => "4",
        "gmm" => "4.mean_layer",
        _ => "4.fc_extract_autocorrelation_params",
    };
    let module = ["0", "2", last][index];
    ["weight", "bias"].map(|part| format!("{module}.{part}"))
}

/// A parameter `[1, rows, columns]`.
fn parameter(values: &[f64], rows: usize, columns: usize) -> Param<Tensor<3>> {
    let values: Vec<f32> = values.iter().map(|&x| x as f32).collect();
    let data = TensorData::new(values, [1, rows, columns]);
    Param::from_data(data, &Device::flex().autodiff())
}

fn norm(parameter: &Param<Tensor<3>>) -> f64 {
    let values = parameter.val().into_data();
    values.iter::<f64>().map(|x| x * x).sum::<f64>().sqrt()
}

#[test]
fn twenty_steps_of_each_head() {
    let rows = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/lab/toy.safetensors");
    let draw = Draw::read(&rows, &[Dataset::Gmm2], &[42]).unwrap().swap_remove(0);
    for path in golden::files("toy_mlp", "_weights.safetensors") {
        println!("checking {}", path.display());
        let weights = Golden::read(&path);
        let json = path.to_str().unwrap().replace("_weights.safetensors", "_expected.json");
        let expected: Map<String, Value> =
            serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
        for (name, expected) in expected.iter().filter(|(name, _)| *name != "note") {
            let relative = if name == "gmm" { SINGLE_GMM } else { SINGLE };
            check(name, &weights, &draw, &expected["f32"], relative);
        }
    }
}

#[track_caller]
fn check(name: &str, weights: &Golden, draw: &Draw, expected: &Value, relative: f64) {
    let head = head(name);
    let mut trainer = Trainer::new(head, &mut [seed::generator(0, "init")]);
    for index in 0..3 {
        let [weight, bias] =
            layer_names(name, index).map(|part| weights.get(&format!("{name}/{part}")).clone());
        let [outputs, inputs] = weight.shape[..] else { panic!("{name}: {:?}", weight.shape) };
        trainer.stack.weights[index] = parameter(&weight.transposed().values, inputs, outputs);
        trainer.stack.biases[index] = parameter(&bias.values, 1, outputs);
    }
    if let Some(raw) = weights.try_get(&format!("{name}/4.log_stds")) {
        let initial: Vec<f64> = head.raw_stds().into_iter().map(f64::from).collect();
        assert_close("initial deviations", &initial, &raw.values, 1e-6, 0.0);
        trainer.stack.raw_stds = Some(parameter(&raw.values, 1, initial.len()));
    }
    let mut largest = 0.0f64;
    let mut close = |what: &str, got: f64, expected: f64, relative: f64| {
        largest = largest.max((got / expected - 1.0).abs());
        assert_close(what, &[got], &[expected], relative, 0.0);
    };
    let number = |tensor: Tensor<1>| tensor.into_data().iter::<f64>().next().unwrap();
    for (step, expected) in expected["traj"].as_array().unwrap().iter().enumerate() {
        let mut batch = Batch::default();
        for row in &draw.train[BATCH * step..BATCH * (step + 1)] {
            batch.push(row, head.is_likelihood());
        }
        let got = trainer.step(&batch, LEARNING_RATE);
        let what = |of: &str| format!("{name}: {of} of step {step}");
        let loss = expected["loss"].as_f64().unwrap();
        close(&what("loss"), number(got.losses), loss, relative);
        let norm = expected["grad_norm_before_clip"].as_f64();
        assert_eq!(got.norms.is_some(), norm.is_some());
        if let (Some(got), Some(norm)) = (got.norms, norm) {
            close(&what("gradient's norm"), number(got), norm, 10.0 * relative);
        }
    }
    let norms = &expected["final_param_norms"];
    for index in 0..3 {
        let [weight, bias] =
            layer_names(name, index).map(|part| (norms[&part].as_f64().unwrap(), part));
        let layer = [&trainer.stack.weights[index], &trainer.stack.biases[index]];
        for ((expected, part), got) in [weight, bias].into_iter().zip(layer) {
            close(&format!("{name}: {part}"), norm(got), expected, relative);
        }
    }
    if let (Some(expected), Some(raw)) = (norms["4.log_stds"].as_f64(), &trainer.stack.raw_stds) {
        close("deviations", norm(raw), expected, relative);
    }
    println!("{name}: largest relative difference {largest:e}");
}
