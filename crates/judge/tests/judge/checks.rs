//! The checks of an estimate: each fails alone.

use overtone_core::Interval;
use overtone_core::judgement::{Check, Verdict};
use overtone_judge::checks::{Comparison, Evidence, MOST_UNCOVERED};

const AGREES: Comparison = Comparison { estimated: 9.0, expected: 10.0, standard_error: 0.5 };
const DIFFERS: Comparison = Comparison { estimated: 8.9, ..AGREES };
const ABOVE: Interval = Interval { low: 0.5, high: 2.0 };

/// Every check passes.
fn all() -> Evidence {
    Evidence {
        estimate: Some(1.0),
        possible: [0.0, 1.0],
        difference: Some(ABOVE),
        others: vec![0.1, 30.0],
        known_answer: Some(AGREES),
        mean_weight: Some(AGREES),
        uncovered: Some(MOST_UNCOVERED),
        horizon: None,
    }
}

#[track_caller]
fn fails(evidence: &Evidence, check: Check) {
    assert_eq!(evidence.verdict(), Verdict::CannotTell { reasons: vec![check] });
}

#[test]
fn passing_every_check_gives_an_answer() {
    assert_eq!(all().verdict(), Verdict::BetterThanRecorded);
    let below = Interval { low: -2.0, high: -0.1 };
    let below = Evidence { difference: Some(below), others: vec![-0.1], ..all() };
    assert_eq!(below.verdict(), Verdict::WorseThanRecorded);
}

#[test]
fn each_check_fails_alone() {
    fails(&Evidence { known_answer: Some(DIFFERS), ..all() }, Check::KnownAnswer);
    fails(&Evidence { uncovered: Some(0.051), ..all() }, Check::Coverage);
    fails(&Evidence { others: vec![0.1, -0.1], ..all() }, Check::Order);
    fails(&Evidence { mean_weight: Some(DIFFERS), ..all() }, Check::Weights);
    fails(&Evidence { horizon: Some(19), ..all() }, Check::Overlap);
    fails(&Evidence { difference: None, ..all() }, Check::Difference);
    let rounding = Interval { low: 1e-17, high: 2e-17 };
    fails(&Evidence { difference: Some(rounding), ..all() }, Check::Difference);
    for estimate in [-0.011, 1.011] {
        let outside = Evidence { estimate: Some(estimate), ..all() };
        fails(&outside, Check::PossibleReturns);
    }
    let both_sides = Interval { low: -0.5, high: 2.0 };
    fails(&Evidence { difference: Some(both_sides), ..all() }, Check::Difference);
    let several = Evidence { uncovered: Some(0.1), horizon: Some(3), ..all() };
    assert_eq!(several.verdict().to_string(), "cannot tell: coverage, overlap");
}

#[test]
fn a_check_without_its_number_does_not_apply() {
    let weighted = Evidence { known_answer: None, uncovered: None, ..all() };
    assert_eq!(weighted.verdict(), Verdict::BetterThanRecorded);
    let fitted = Evidence { mean_weight: None, ..all() };
    assert_eq!(fitted.verdict(), Verdict::BetterThanRecorded);
    // The best agent of a task with noise.
    let best = Evidence { estimate: Some(1.009), ..all() };
    assert_eq!(best.verdict(), Verdict::BetterThanRecorded);
}

#[test]
fn without_an_estimate_there_is_no_answer() {
    fails(&Evidence::default(), Check::Difference);
    // Critics were not fitted, because the actions are not covered.
    fails(&Evidence { uncovered: Some(0.3), ..Evidence::default() }, Check::Coverage);
}

#[test]
fn not_a_number_never_passes() {
    let odd = Comparison { estimated: f64::NAN, ..AGREES };
    fails(&Evidence { known_answer: Some(odd), ..all() }, Check::KnownAnswer);
    fails(&Evidence { uncovered: Some(f64::NAN), ..all() }, Check::Coverage);
    let unknown = Evidence { estimate: Some(f64::NAN), ..all() };
    assert!(unknown.failed().contains(&Check::PossibleReturns));
    let ends = Interval { low: f64::NAN, high: 1.0 };
    assert!(matches!(
        Evidence { difference: Some(ends), ..all() }.verdict(),
        Verdict::CannotTell { .. }
    ));
}
