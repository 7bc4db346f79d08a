//! The estimates compared with scope-rl's. `scripts/peers/weights_golden.py` writes the golden file.

use std::collections::BTreeMap;

use overtone_core::judgement::Method;
use overtone_judge::weights::{Logged, Settings, Values, estimate};
use serde::Deserialize;

use crate::weights::value;

#[derive(Deserialize)]
struct Golden {
    source: String,
    /// `[episodes, steps]`, as are the next three.
    rewards: Vec<Vec<f64>>,
    log_ratios: Vec<Vec<f64>>,
    of_actions: Vec<Vec<f64>>,
    of_histories: Vec<Vec<f64>>,
    /// By discount and method.
    estimates: BTreeMap<String, BTreeMap<Method, f64>>,
}

/// Largest difference seen: 1.1e-11. scope-rl adds 1e-10 to the mean weight that it divides by.
const TOLERANCE: f64 = 1e-10;

#[test]
fn scope_rl_gives_the_same_estimates() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/weights.json");
    let golden: Golden = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let episode = |i: usize| Logged {
        rewards: golden.rewards[i].clone(),
        log_ratios: golden.log_ratios[i].clone(),
        values: Some(Values {
            of_actions: golden.of_actions[i].clone(),
            of_histories: golden.of_histories[i].clone(),
        }),
    };
    let episodes: Vec<Logged> = (0..golden.rewards.len()).map(episode).collect();
    assert_eq!(golden.estimates.len(), 2, "two discounts");
    for (discount, expected) in &golden.estimates {
        let discount = discount.parse().unwrap();
        let settings = Settings { discount, replications: 1, ..Settings::default() };
        let weighted = estimate(&episodes, &settings).unwrap();
        assert_eq!(expected.len(), 3, "three methods");
        for (&method, expected) in expected {
            let apart = (value(&weighted, method) - expected).abs();
            assert!(apart < TOLERANCE, "{}: {method:?} differs by {apart:e}", golden.source);
        }
    }
}
