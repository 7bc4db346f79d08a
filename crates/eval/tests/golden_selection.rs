//! Selection by few episodes, on the returns of DeepMind's published policies, compared with
//! unifloral's own program. `scripts/peers/selection_golden.py` writes the golden file.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use overtone_eval::selection::{Rule, Trials, budget_curve};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    source: String,
    /// `[76 policies, 100 episodes]`.
    returns: Vec<Vec<f64>>,
    /// Fitted-Q estimates of the policies, in the units of the returns.
    estimates: Vec<f64>,
    unifloral: Reference,
}

#[derive(Deserialize)]
struct Reference {
    candidates: usize,
    budgets: Vec<usize>,
    mean: Vec<f64>,
    standard_error: Vec<f64>,
}

fn golden() -> Golden {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/selection.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn unifloral_gives_the_same_curve() {
    let Golden { source, returns, unifloral, .. } = golden();
    let settings = Trials {
        rule: Rule::Unifloral,
        budgets: unifloral.budgets,
        candidates: unifloral.candidates,
        batch: 1,
        trials: 20_000,
        seed: 1,
    };
    let curve = budget_curve(&returns, None, &settings).unwrap();
    let references = unifloral.mean.iter().zip(&unifloral.standard_error);
    for (point, (mean, error)) in curve.iter().zip(references) {
        let apart = (point.mean - mean).abs() / point.standard_error.hypot(*error);
        assert!(apart < 3.0, "{source}: {point:?} is {apart:.1} standard errors from {mean}");
    }
}

/// Regret with seven candidates, in points of a range of 31: at most 4.5, 2 and 0.5 after 0, 20 and
/// 50 episodes from estimates. Without estimates, 35 placed episodes lose less than 50 even ones, in
/// batches too.
#[test]
fn placed_episodes_lose_less_than_even_ones() {
    let Golden { returns, estimates, .. } = golden();
    let curve = |rule, estimates: Option<&[f64]>, batch| {
        let budgets = vec![0, 7, 20, 35, 50, 70, 140];
        let settings = Trials { rule, budgets, candidates: 7, batch, trials: 2_000, seed: 1 };
        let curve = budget_curve(&returns, estimates, &settings).unwrap();
        let regret: Vec<f64> = curve.iter().map(|point| point.regret).collect();
        println!("{rule:?}, batch {batch}, estimates {}: {regret:.2?}", estimates.is_some());
        regret
    };
    let from_estimates = curve(Rule::Process, Some(&estimates), 1);
    for (regret, most) in [0, 2, 4].map(|i| from_estimates[i]).into_iter().zip([4.5, 2.0, 0.5]) {
        assert!(regret <= most, "{regret} > {most}");
    }
    let even = curve(Rule::Even, None, 1);
    for batch in [1, 7] {
        let process = curve(Rule::Process, None, batch);
        assert!(process[3] < even[4], "{} >= {}", process[3], even[4]);
    }
    curve(Rule::Unifloral, None, 1);
}
