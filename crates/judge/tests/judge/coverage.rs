//! Intervals on many recordings of the clinic, whose truth is known.

use overtone_core::judgement::{Check, Method, Verdict};
use overtone_core::seed::{derive, derive_nth};
use overtone_judge::checks::Evidence;
use overtone_judge::weights::{Logged, Settings, Values, Weighted, estimate};

use crate::clinic::{Doctor, Exact, Visit, record};

/// The recording of `Doctor::Recorded`, for `doctor`. The values for WDR are the recorded doctor's:
/// wrong for another one, as fitted values are.
pub fn logged(visits: &[Visit], doctor: Doctor, values: &Exact) -> Logged {
    let mut logged = Logged { rewards: Vec::new(), log_ratios: Vec::new(), values: None };
    let (mut of_actions, mut of_histories) = (Vec::new(), Vec::new());
    for (visit, &Visit { patient, treatment, reward, .. }) in visits.iter().enumerate() {
        let (policy, recorded) = (doctor.probs(patient), Doctor::Recorded.probs(patient));
        let q = values.of_treatments(patient, visit);
        logged.rewards.push(reward);
        logged.log_ratios.push((policy[treatment] / recorded[treatment]).ln());
        of_actions.push(q[treatment]);
        of_histories.push(q.iter().zip(policy).map(|(q, p)| q * p).sum());
    }
    logged.values = Some(Values { of_actions, of_histories });
    logged
}

/// Estimates for `doctor` from 100 recordings of `patients` patients each.
fn estimates(doctor: Doctor, patients: usize) -> Vec<Weighted> {
    let values = Doctor::Recorded.values(1.0);
    let settings = Settings { discount: 1.0, replications: 1_000, ..Settings::default() };
    let of_recording = |i: u64| {
        let visits = record(Doctor::Recorded, patients, derive_nth(derive(1, "recordings"), i));
        let episodes: Vec<Logged> =
            visits.iter().map(|visits| logged(visits, doctor, &values)).collect();
        estimate(&episodes, &settings).unwrap()
    };
    (0..100).map(of_recording).collect()
}

#[test]
fn intervals_cover_the_truth() {
    let truth = Doctor::Guideline.value(1.0);
    let estimates = estimates(Doctor::Guideline, 200);
    let mut widths = Vec::new();
    for method in [Method::Wpdis, Method::Wdr] {
        let of_method = |weighted: &Weighted| {
            let estimate = weighted.estimates.iter().find(|e| e.method == method).unwrap();
            estimate.interval.unwrap()
        };
        let intervals: Vec<_> = estimates.iter().map(of_method).collect();
        let covering = intervals.iter().filter(|interval| interval.contains(truth)).count();
        assert!(covering >= 85, "{method:?}: {covering} of 100 intervals cover {truth}");
        widths.push(intervals.iter().map(|interval| interval.high - interval.low).sum::<f64>());
    }
    assert!(widths[1] < widths[0], "values make intervals narrower: {widths:?}");
}

/// The verdict from weights with recorded log-probabilities.
pub fn verdict(weighted: &Weighted) -> Verdict {
    let deciding = weighted.estimates.last().unwrap();
    let evidence = Evidence {
        estimate: Some(deciding.value),
        difference: deciding.difference,
        horizon: weighted.overlap.horizon,
        ..Evidence::default()
    };
    evidence.verdict()
}

#[test]
fn a_policy_unlike_the_recorded_one_is_refused() {
    // WPDIS's intervals cover less than 85 % here: in most recordings, fewer than 20 of the 200
    // episodes are left in effect.
    let estimates = estimates(Doctor::Reluctant, 200);
    let refused = |weighted: &&Weighted| match verdict(weighted) {
        Verdict::CannotTell { reasons } => reasons.contains(&Check::Overlap),
        _ => false,
    };
    let refused = estimates.iter().filter(refused).count();
    assert!(refused > 50, "{refused} of 100 refused");
}
