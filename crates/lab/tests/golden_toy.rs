//! The reference's toy data and first steps of training; see `crates/testkit/golden`.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use overtone_core::seed;
use overtone_lab::toy::data::{Samples, Split};
use overtone_lab::toy::number::Number;
use overtone_lab::toy::trainer::{BATCH, LEARNING_RATE, Rows};
use overtone_lab::toy::{Dataset, HeadKind, Trainer};
use overtone_testkit::{Golden, assert_close, golden};
use serde_json::{Map, Value};

/// Losses and gradient norms of 20 steps in `f64`, and the parameters' norms behind them,
/// relative. Largest seen: 8.3e-12 (gmm), 2.2e-14 (the others).
const DOUBLE: f64 = 1e-9;
/// The same in `f32`. Largest seen: 6.3e-6.
const SINGLE: f64 = 1e-4;
/// The mixture's first steps are steep: the reference's own `f32` is 6e-4 from its `f64` at
/// step 1. Largest seen: 8.1e-4.
const SINGLE_GMM: f64 = 2e-3;

fn sets(file: &Golden) -> Vec<(String, Dataset, u64)> {
    let names = file.iter().filter_map(|(name, _)| name.strip_suffix("_xyz"));
    let set = |name: &str| {
        let (dataset, seed) = name.split_once("_seed").unwrap();
        (name.to_owned(), dataset.parse().unwrap(), seed.parse().unwrap())
    };
    names.map(set).collect()
}

#[test]
fn datasets_and_split() {
    for path in golden::files("toy_datasets", ".safetensors") {
        println!("checking {}", path.display());
        let file = Golden::read(&path);
        for (name, dataset, seed) in sets(&file) {
            let samples = dataset.draw(seed);
            let values: Vec<f64> =
                samples.rows.iter().flatten().map(|&value| f64::from(value as f32)).collect();
            check_equal(&name, &values, &file.get(&format!("{name}_xyz")).values);
            let bins: Vec<f64> = (0..samples.rows.len())
                .flat_map(|row| samples.bins(row))
                .map(|bin| bin as f64)
                .collect();
            check_equal(&name, &bins, &file.get(&format!("{name}_bins")).values);
        }
        let split = Split::default();
        for (rows, name) in [(split.test, "test_idx"), (split.train, "train_idx")] {
            let rows: Vec<f64> = rows.into_iter().map(|row| row as f64).collect();
            check_equal(name, &rows, &file.get(name).values);
        }
    }
}

#[track_caller]
fn check_equal(what: &str, got: &[f64], expected: &[f64]) {
    assert_eq!(got.len(), expected.len(), "{what}");
    let differ = |i: &usize| got[*i] != expected[*i];
    let first: Vec<(usize, f64, f64)> =
        (0..got.len()).filter(differ).map(|i| (i, got[i], expected[i])).take(5).collect();
    let n = (0..got.len()).filter(differ).count();
    assert!(n == 0, "{what}: {n} of {} differ, the first {first:?}", got.len());
}

/// What each entry of the file trains.
fn kind(name: &str) -> HeadKind {
    let (frequencies, gamma) = (12, 1e-6);
    match name {
        "linear" => HeadKind::Linear,
        "gmm" => HeadKind::Gmm { components: 2 },
        "fourier" => HeadKind::Fourier { frequencies, gamma },
        "fourier-mle" => HeadKind::FourierLikelihood { frequencies, gamma },
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

#[test]
fn twenty_steps_of_each_head() {
    for path in golden::files("toy_mlp", "_weights.safetensors") {
        println!("checking {}", path.display());
        let weights = Golden::read(&path);
        let json = path.to_str().unwrap().replace("_weights.safetensors", "_expected.json");
        let expected: Map<String, Value> =
            serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
        let samples = Dataset::Gmm2.draw(42);
        for (name, expected) in expected.iter().filter(|(name, _)| *name != "note") {
            check::<f64>(name, &weights, &samples, &expected["f64"], DOUBLE);
            let single = if name == "gmm" { SINGLE_GMM } else { SINGLE };
            check::<f32>(name, &weights, &samples, &expected["f32"], single);
        }
    }
}

#[track_caller]
fn check<T: Number>(
    name: &str,
    weights: &Golden,
    samples: &Samples,
    expected: &Value,
    relative: f64,
) {
    let mut trainer = Trainer::<T>::new(kind(name), &mut seed::generator(0, "init"));
    for index in 0..3 {
        let [weight, bias] =
            layer_names(name, index).map(|part| &weights.get(&format!("{name}/{part}")).values);
        trainer.network.load(index, weight, bias);
    }
    if let Some(raw) = weights.try_get(&format!("{name}/4.log_stds")) {
        let own: Vec<f64> = trainer.network.free().iter().map(|raw| raw.wide()).collect();
        assert_close("initial deviations", &own, &raw.values, 1e-6, 0.0);
        // The reference's, exactly: it drew them in single precision.
        trainer.network.set_free(&raw.values);
    }
    let mut largest = 0.0f64;
    let mut close = |what: &str, got: f64, expected: f64, relative: f64| {
        largest = largest.max((got / expected - 1.0).abs());
        assert_close(what, &[got], &[expected], relative, 0.0);
    };
    let train = Split::default().train;
    let steps = expected["traj"].as_array().unwrap();
    for (step, expected) in steps.iter().enumerate() {
        let rows = &train[BATCH * step..BATCH * (step + 1)];
        let got = trainer.step(&Rows::new(samples, rows, kind(name)), LEARNING_RATE);
        let what = |of: &str| format!("{name}: {of} of step {step}");
        let loss = expected["loss"].as_f64().unwrap();
        close(&what("loss"), got.loss, loss, relative);
        let norm = expected["grad_norm_before_clip"].as_f64();
        assert_eq!(got.gradient_norm.is_some(), norm.is_some());
        if let (Some(got), Some(norm)) = (got.gradient_norm, norm) {
            close(&what("gradient's norm"), got, norm, 10.0 * relative);
        }
    }
    let norm = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>().sqrt();
    let norms = &expected["final_param_norms"];
    for index in 0..3 {
        let (weight, bias) = trainer.network.layer(index);
        for (part, values) in layer_names(name, index).iter().zip([weight, bias]) {
            let expected = norms[part].as_f64().unwrap();
            close(&format!("{name}: {part}"), norm(&values), expected, relative);
        }
    }
    if let Some(expected) = norms["4.log_stds"].as_f64() {
        let raw: Vec<f64> = trainer.network.free().iter().map(|raw| raw.wide()).collect();
        close("deviations", norm(&raw), expected, relative);
    }
    println!("{name}: largest relative difference {largest:e}");
}
