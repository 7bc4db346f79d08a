//! Smoothness of single distributions compared with the reference (`crates/testkit/golden`).

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use overtone_eval::{Pooled, Smoothness};
use overtone_testkit::{Golden, golden};
use serde_json::Value;

/// Absolute tolerance. The smoothness of a distribution is at most about 1.4 (L¹).
const TOLERANCE: f64 = 1e-12;

#[test]
fn smoothness_of_distributions() {
    for path in golden::files("smoothness", "_pmfs.safetensors") {
        println!("checking {}", path.display());
        let pmfs = Golden::read(&path);
        let name = path.to_str().unwrap();
        let json = name.replace("_pmfs.safetensors", ".json");
        let expected: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
        let mut largest: f64 = 0.0;
        let mut check = |what: String, got: f64, expected: &Value| {
            let expected = expected.as_f64().unwrap_or_else(|| panic!("{what}: expected a number"));
            let off = (got - expected).abs();
            assert!(off < TOLERANCE, "{what}: expected {expected:e}, got {got:e}");
            largest = largest.max(off);
        };

        let cases = expected["cases"].as_object().unwrap();
        assert!(!cases.is_empty());
        for (name, case) in cases {
            let pmf = &pmfs.get(name).values;
            assert_eq!(case["m"], pmf.len(), "{name}");
            let metric = Smoothness::new(pmf.len());
            check(format!("{name} L2"), metric.l2(pmf), &case["smoothness_L2"]);
            check(format!("{name} L1"), metric.l1(pmf), &case["smoothness_L1"]);
            for (sigma, expected) in case["single_sigma_L2"].as_object().unwrap() {
                let norm = metric.l2_at(sigma.parse().unwrap(), pmf);
                check(format!("{name} σ={sigma}"), norm, expected);
            }
        }
        let aggregates = expected.as_object().unwrap().iter();
        for (name, aggregate) in aggregates.filter(|(key, _)| key.starts_with("aggregate")) {
            let members = aggregate["order"].as_array().unwrap().iter();
            let members = members.map(|name| &pmfs.get(name.as_str().unwrap()).values);
            let pooled: Pooled = members.map(|pmf| Smoothness::new(pmf.len()).l2(pmf)).collect();
            check(format!("{name} mean"), pooled.mean, &aggregate["L2"]["mean"]);
            check(format!("{name} sd"), pooled.sd().unwrap(), &aggregate["L2"]["std"]);
        }
        println!("{} distributions, largest difference {largest:e}", cases.len());
    }
}
