//! The checks of an estimate: each fails alone.

use overtone_core::Interval;
use overtone_core::judgement::{Check, Verdict};
use overtone_judge::checks::{
    Comparison, Evidence, MOST_UNCOVERED, kendall_tau, least_tau, uncovered,
};

const AGREES: Comparison = Comparison { estimated: 9.0, expected: 10.0, standard_error: 0.5 };
const DIFFERS: Comparison = Comparison { estimated: 8.9, ..AGREES };
const ABOVE: Interval = Interval { low: 0.5, high: 2.0 };

/// Every check passes, without recorded log-probabilities.
fn evidence(estimates: &[Vec<f64>]) -> Evidence<'_> {
    Evidence {
        difference: Some(ABOVE),
        known_answer: Some(AGREES),
        uncovered: Some(MOST_UNCOVERED),
        estimates,
        held_out: Some(AGREES),
        longest: 20,
        has_log_probs: false,
        horizon: None,
    }
}

#[track_caller]
fn fails(evidence: &Evidence<'_>, check: Check) {
    assert_eq!(evidence.verdict(), Verdict::CannotTell { reasons: vec![check] });
}

#[test]
fn passing_every_check_gives_an_answer() {
    let estimates = [vec![3.0, 1.0], vec![30.0, 20.0]];
    let all = evidence(&estimates);
    assert_eq!(all.verdict(), Verdict::BetterThanRecorded);
    let below = Evidence { difference: Some(Interval { low: -2.0, high: -0.1 }), ..all };
    assert_eq!(below.verdict(), Verdict::WorseThanRecorded);
}

#[test]
fn each_check_fails_alone() {
    let stable = [vec![3.0, 1.0], vec![30.0, 20.0]];
    let all = || evidence(&stable);
    fails(&Evidence { known_answer: Some(DIFFERS), ..all() }, Check::KnownAnswer);
    fails(&Evidence { known_answer: None, ..all() }, Check::KnownAnswer);
    fails(&Evidence { uncovered: Some(0.051), ..all() }, Check::Coverage);
    fails(&Evidence { uncovered: None, ..all() }, Check::Coverage);
    let turned = [vec![3.0, 1.0], vec![10.0, 20.0]];
    fails(&evidence(&turned), Check::Order);
    fails(&Evidence { held_out: Some(DIFFERS), ..all() }, Check::HeldOut);
    fails(&Evidence { longest: 21, ..all() }, Check::Horizon);
    fails(&Evidence { difference: None, ..all() }, Check::Difference);
    let both_sides = Interval { low: -0.5, high: 2.0 };
    fails(&Evidence { difference: Some(both_sides), ..all() }, Check::Difference);
    let several = Evidence { uncovered: None, longest: 1000, ..all() };
    assert_eq!(several.verdict().to_string(), "cannot tell: coverage, horizon");
}

#[test]
fn recorded_log_probs_make_long_episodes_judgeable() {
    let weighted = Evidence {
        known_answer: None,
        uncovered: None,
        held_out: None,
        longest: 200,
        has_log_probs: true,
        ..evidence(&[])
    };
    assert_eq!(weighted.verdict(), Verdict::BetterThanRecorded);
    fails(&Evidence { horizon: Some(199), ..weighted.clone() }, Check::Horizon);
    // A number that is there is checked all the same.
    fails(&Evidence { uncovered: Some(0.3), ..weighted }, Check::Coverage);
}

#[test]
fn not_a_number_never_passes() {
    let odd = Comparison { estimated: f64::NAN, ..AGREES };
    fails(&Evidence { known_answer: Some(odd), ..evidence(&[]) }, Check::KnownAnswer);
    fails(&Evidence { uncovered: Some(f64::NAN), ..evidence(&[]) }, Check::Coverage);
    let ends = Interval { low: f64::NAN, high: 1.0 };
    assert!(matches!(
        Evidence { difference: Some(ends), ..evidence(&[]) }.verdict(),
        Verdict::CannotTell { .. }
    ));
}

#[test]
fn tau_of_equal_opposite_and_tied_orders() {
    let up = [1.0, 2.0, 3.0, 4.0];
    assert_eq!(kendall_tau(&up, &[10.0, 20.0, 21.0, 90.0]), Some(1.0));
    assert_eq!(kendall_tau(&up, &[4.0, 3.0, 2.0, 1.0]), Some(-1.0));
    // One of 6 pairs is in opposite order: (5 − 1)/6.
    assert_eq!(kendall_tau(&up, &[1.0, 3.0, 2.0, 4.0]), Some(4.0 / 6.0));
    // One pair is tied in y, the other five agree: 5/√(6 · 5).
    let tied = kendall_tau(&up, &[1.0, 2.0, 2.0, 4.0]).unwrap();
    assert!((tied - 5.0 / 30f64.sqrt()).abs() < 1e-15, "{tied}");
    // 0 and −0 are equal.
    assert_eq!(kendall_tau(&[1.0, 2.0], &[0.0, -0.0]), None);
    assert_eq!(kendall_tau(&[1.0], &[2.0]), None);
}

#[test]
fn the_least_tau_is_over_all_pairs() {
    let [a, b, c] = [[1.0, 2.0, 3.0], [1.0, 3.0, 2.0], [3.0, 2.0, 1.0]].map(|x| x.to_vec());
    // τ(a, b) = 1/3, τ(a, c) = −1, τ(b, c) = −1/3.
    assert_eq!(least_tau(&[a.clone(), b.clone(), c]), Some(-1.0));
    assert_eq!(least_tau(&[a.clone(), a.clone()]), Some(1.0));
    assert_eq!(least_tau(&[a.clone(), vec![2.0; 3]]), None, "an estimate without an order");
    assert_eq!(least_tau(&[vec![1.0], vec![2.0]]), Some(1.0), "one policy");
    assert_eq!((least_tau(&[a]), least_tau(&[])), (Some(1.0), Some(1.0)));
}

#[test]
fn one_percent_of_recorded_actions_is_uncovered() {
    // Log-probabilities ln 1/1000 … ln 1: the quantile 0.01 lies between the 10th and the 11th.
    let recorded: Vec<f64> = (1..=1000).map(|i| (f64::from(i) / 1000.0).ln()).collect();
    assert_eq!(uncovered(&recorded, &recorded), Some(0.01));
    // Half of the actions are never recorded.
    let half: Vec<f64> = (0..8).map(|i| if i < 4 { f64::NEG_INFINITY } else { -0.5 }).collect();
    assert_eq!(uncovered(&half, &recorded), Some(0.5));
    // With equal log-probabilities nothing is rarer.
    assert_eq!(uncovered(&[-1.0; 3], &[-1.0; 5]), Some(0.0));
    assert_eq!((uncovered(&[], &recorded), uncovered(&half, &[])), (None, None));
}
