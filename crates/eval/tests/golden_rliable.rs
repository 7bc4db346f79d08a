//! Statistics compared with `rliable` 1.2.0 on the same scores. `scripts/peers/rliable_golden.py`
//! writes the golden file.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use overtone_eval::statistics::{
    Aggregates, Bootstrap, Estimate, ScoreMatrix, improvement, performance_profile,
};
use serde_json::Value;

/// Tolerance of deterministic values, relative to the larger of 1 and the number. Largest seen:
/// 3e-16.
const EXACT: f64 = 1e-12;

/// Tolerance of interval ends outside the range over rliable's seeds, relative to that range. Our
/// 50,000 replications still vary, by a seventh of the variation of rliable's 1,000.
const BEYOND: f64 = 0.1;

fn golden() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/rliable.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn matrix(value: &Value) -> ScoreMatrix {
    let tasks = value.as_array().unwrap().iter().enumerate();
    ScoreMatrix::new(tasks.map(|(task, runs)| (task.to_string(), numbers(runs)))).unwrap()
}

/// Compares estimates with rliable's values, and interval ends with their range over rliable's
/// bootstrap seeds.
#[derive(Default)]
struct Check {
    largest: f64,
    ends: usize,
}

impl Check {
    fn values(&mut self, what: &str, got: &[Estimate], expected: &[f64], ends: &Value) {
        assert_eq!(got.len(), expected.len(), "{what}");
        for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
            let off = (got.value - expected).abs() / expected.abs().max(1.0);
            assert!(off < EXACT, "{what} {i}: expected {expected}, got {}", got.value);
            self.largest = self.largest.max(off);
            let Some(interval) = got.interval else {
                assert!(ends.is_null(), "{what}: rliable has an interval");
                continue;
            };
            for (end, got) in [("low", interval.low), ("high", interval.high)] {
                let range = numbers(&ends[end][i]);
                // If all of rliable's seeds agree, only rounding differs.
                let slack = BEYOND * (range[1] - range[0]) + 1e-9;
                let inside = range[0] - slack..=range[1] + slack;
                assert!(inside.contains(&got), "{what} {i} {end}: {got} is not in {range:?}");
                self.ends += 1;
            }
        }
    }
}

#[test]
fn aggregates_and_profiles() {
    let golden = golden();
    let mut check = Check::default();
    let bootstrap = Bootstrap::default();
    for (name, case) in golden["cases"].as_object().unwrap() {
        let scores = matrix(&case["scores"]);
        let aggregates =
            Aggregates::of(&scores, case["gamma"].as_f64().unwrap(), &bootstrap).unwrap();
        let got = [aggregates.mean, aggregates.median, aggregates.iqm, aggregates.optimality_gap];
        check.values(name, &got, &numbers(&case["aggregates"]), &case["intervals"]);
        let profile = performance_profile(&scores, &numbers(&case["taus"]), &bootstrap).unwrap();
        let got: Vec<Estimate> = profile.iter().map(|point| point.fraction).collect();
        let what = format!("{name}, profile");
        check.values(&what, &got, &numbers(&case["profile"]), &case["profile_intervals"]);
    }
    println!("largest difference {:e}; {} ends of intervals", check.largest, check.ends);
}

#[test]
fn improvements() {
    let golden = golden();
    let mut check = Check::default();
    for (name, case) in golden["improvements"].as_object().unwrap() {
        let [x, y] = ["x", "y"].map(|key| matrix(&case[key]));
        let got = improvement(&x, &y, &Bootstrap::default()).unwrap();
        check.values(name, &[got], &[case["probability"].as_f64().unwrap()], &case["interval"]);
    }
    println!("largest difference {:e}; {} ends of intervals", check.largest, check.ends);
}
