//! The checks of an estimate: each fails alone.

use overtone_core::Interval;
use overtone_core::judgement::{Check, Verdict};
use overtone_judge::checks::{Comparison, Evidence, MOST_UNCOVERED};

const AGREES: Comparison = Comparison { estimated: 9.0, expected: 10.0, standard_error: 0.5 };
const DIFFERS: Comparison = Comparison { estimated: 8.9, ..AGREES };
const ABOVE: Interval = Interval { low: 0.5, high: 2.0 };

/// Every check passes, without recorded log-probabilities.
fn all() -> Evidence {
    Evidence {
        difference: Some(ABOVE),
        others: vec![0.1, 30.0],
        known_answer: Some(AGREES),
        mean_weight: Some(AGREES),
        uncovered: Some(MOST_UNCOVERED),
        longest: 20,
        has_log_probs: false,
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
    fails(&Evidence { known_answer: None, ..all() }, Check::KnownAnswer);
    fails(&Evidence { uncovered: Some(0.051), ..all() }, Check::Coverage);
    fails(&Evidence { uncovered: None, ..all() }, Check::Coverage);
    fails(&Evidence { others: vec![0.1, -0.1], ..all() }, Check::Order);
    fails(&Evidence { mean_weight: Some(DIFFERS), ..all() }, Check::Weights);
    fails(&Evidence { horizon: Some(19), ..all() }, Check::Overlap);
    fails(&Evidence { longest: 21, ..all() }, Check::LongEpisodes);
    fails(&Evidence { difference: None, ..all() }, Check::Difference);
    let both_sides = Interval { low: -0.5, high: 2.0 };
    fails(&Evidence { difference: Some(both_sides), ..all() }, Check::Difference);
    let several = Evidence { uncovered: None, longest: 1000, ..all() };
    assert_eq!(several.verdict().to_string(), "cannot tell: coverage, long episodes");
}

#[test]
fn recorded_log_probs_make_long_episodes_judgeable() {
    let weighted = Evidence {
        known_answer: None,
        uncovered: None,
        longest: 200,
        has_log_probs: true,
        ..all()
    };
    assert_eq!(weighted.verdict(), Verdict::BetterThanRecorded);
    fails(&Evidence { horizon: Some(199), ..weighted.clone() }, Check::Overlap);
    // A number that is there is checked all the same.
    fails(&Evidence { uncovered: Some(0.3), ..weighted }, Check::Coverage);
}

#[test]
fn not_a_number_never_passes() {
    let odd = Comparison { estimated: f64::NAN, ..AGREES };
    fails(&Evidence { known_answer: Some(odd), ..all() }, Check::KnownAnswer);
    fails(&Evidence { uncovered: Some(f64::NAN), ..all() }, Check::Coverage);
    let ends = Interval { low: f64::NAN, high: 1.0 };
    assert!(matches!(
        Evidence { difference: Some(ends), ..all() }.verdict(),
        Verdict::CannotTell { .. }
    ));
}
