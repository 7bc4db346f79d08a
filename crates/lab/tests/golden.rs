//! The reference's smoothness of square waves and of noise; see `crates/testkit/golden`.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use overtone_eval::Pooled;
use overtone_lab::Colour;
use overtone_lab::smoothness::{SmoothnessStudy, squares};
use overtone_testkit::{assert_close, golden};
use serde_json::{Map, Value};

/// Relative.
const SQUARE_WAVES: f64 = 1e-9;
/// Differences of means may be this many of their standard errors.
const STANDARD_ERRORS: f64 = 4.0;

/// Every entry of the golden files whose key begins with `prefix`, with what follows it.
fn entries(prefix: &str) -> Vec<(String, Value)> {
    let mut entries = Vec::new();
    for path in golden::files("smoothness", "_pmfs.safetensors") {
        println!("checking {prefix}* beside {}", path.display());
        let json = path.to_str().unwrap().replace("_pmfs.safetensors", ".json");
        let file: Map<String, Value> =
            serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
        let begins =
            |(key, value): (String, Value)| Some((key.strip_prefix(prefix)?.into(), value));
        entries.extend(file.into_iter().filter_map(begins));
    }
    entries
}

#[test]
fn smoothness_of_square_waves() {
    for (length, waves) in entries("square_wave_") {
        for (sines, expected) in waves.as_object().unwrap() {
            let sines: usize = sines.parse().unwrap();
            let wave = &squares(length.parse().unwrap(), sines..=sines)[0];
            let expected = ["L2", "L1"].map(|norm| expected[norm].as_f64().unwrap());
            let what = format!("square wave of {sines} sines");
            assert_close(&what, &[wave.l2, wave.l1], &expected, SQUARE_WAVES, 0.0);
        }
    }
}

/// Our noise is drawn from another generator, so it agrees within its sampling error.
#[test]
fn smoothness_of_noise() {
    for (numbers, expected) in entries("noise_m") {
        let (length, trials) = numbers.trim_end_matches("trials").split_once('_').unwrap();
        let (length, trials) = (length.parse().unwrap(), trials.parse().unwrap());
        let study = SmoothnessStudy { seed: 1, trials, length };
        for noise in Colour::ALL.map(|colour| study.noise(colour)) {
            let [mean, sd] = [0, 1].map(|i| expected["values"][noise.colour.name()][i].as_f64());
            let (mean, sd) = (mean.unwrap(), sd.unwrap());
            let Pooled { n, mean: our_mean, .. } = noise.smoothness;
            let our_sd = noise.smoothness.sd().unwrap();
            let error = ((sd * sd + our_sd * our_sd) / n as f64).sqrt();
            let off = (our_mean - mean) / error;
            println!("{:?}: {our_mean:e} ± {our_sd:e}, off by {off:.2} errors", noise.colour);
            assert!(off.abs() < STANDARD_ERRORS, "{noise:?}, expected {mean:e} ± {sd:e}");
            // The relative error of a standard deviation is about 1/√(2n).
            let off = (our_sd / sd - 1.0) * (n as f64).sqrt();
            assert!(off.abs() < STANDARD_ERRORS, "{noise:?}, expected {mean:e} ± {sd:e}");
        }
    }
}
