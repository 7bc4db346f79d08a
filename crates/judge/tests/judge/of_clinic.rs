//! The whole judgement on recordings of the clinic: doctors as agents, their exact values as truth.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use overtone_core::judgement::{Check, Judgement, Method, Trained, Verdict};
use overtone_core::protocol::ActionChoice;
use overtone_core::{
    Actions, BinOrder, Episode, Observations, Outcome, Play, Played, Policy, PolicyError,
    Simulation, Turn,
};
use overtone_data::{
    ActionColumn, Columns, Dataset, DatasetOptions, ObservationColumn, StoredObservations,
};
use overtone_judge::{Candidate, JudgeError, JudgeOptions, Known, Request, judge, judge_known};
use overtone_testkit::check_error;

use crate::clinic::{Doctor, Patient, TREATMENTS, WIDTH, record};

const DISCOUNT: f64 = 0.99;

/// A doctor who sees observations, as an agent does.
struct Seeing {
    doctor: Doctor,
    probs: Vec<f64>,
}

impl Policy for Seeing {
    fn act(&mut self, turns: &[Turn], shown: Observations<'_>) -> Result<Actions, PolicyError> {
        let Observations::Vectors(shown) = shown else { return Err("pixels".into()) };
        let probs = |seen: &[f32]| self.doctor.probs(Patient::seen(seen));
        self.probs = shown.chunks_exact(WIDTH).flat_map(probs).collect();
        Ok(Actions::Discrete(vec![0; turns.len()]))
    }

    fn played(&self) -> Option<Played<'_>> {
        let (probs, actions) = (&self.probs[..], &[0, 1, 2, 3]);
        Some(Played { probs, actions, order: BinOrder::Environment })
    }
}

fn candidate(doctor: Doctor) -> Candidate {
    let action_choice = ActionChoice::Sample;
    let play = Play { action_choice, ..Play::matched(Simulation::default()) };
    Candidate { mode: play.acting, policy: Box::new(Seeing { doctor, probs: Vec::new() }), play }
}

fn request(data: &Dataset) -> Request<'_> {
    Request {
        run: "clinic",
        step: 1,
        target_return: 0.5,
        is_conditioned: false,
        data,
        dataset: "clinic",
        trained: Trained::No,
        action_scale: None,
    }
}

/// Patients of `Doctor::Recorded`.
#[derive(Clone)]
struct Recording {
    seen: Vec<f32>,
    treatments: Vec<u16>,
    rewards: Vec<f32>,
    log_probs: Vec<f32>,
    episodes: Vec<Episode>,
}

impl Recording {
    fn of(patients: usize, seed: u64) -> Self {
        let (seen, treatments, rewards) = (Vec::new(), Vec::new(), Vec::new());
        let (log_probs, episodes) = (Vec::new(), Vec::new());
        let mut all = Self { seen, treatments, rewards, log_probs, episodes };
        for visits in &record(Doctor::Recorded, patients, seed) {
            let is_end = visits.last().unwrap().is_end;
            let outcome = if is_end { Outcome::Terminated } else { Outcome::Truncated };
            let start = all.treatments.len();
            all.episodes.push(Episode { start, length: visits.len(), outcome });
            for (i, visit) in visits.iter().enumerate() {
                all.seen.extend(visit.patient.observation(i, visit.age));
                all.treatments.push(visit.treatment as u16);
                all.rewards.push(visit.reward as f32);
                let prob = Doctor::Recorded.probs(visit.patient)[visit.treatment];
                all.log_probs.push(prob.ln() as f32);
            }
        }
        all
    }

    /// Makes one episode of each `n` following ones.
    fn join_episodes(&mut self, n: usize) {
        let joined = self.episodes.chunks(n).map(|some| Episode {
            start: some[0].start,
            length: some.iter().map(|episode| episode.length).sum(),
            outcome: Outcome::Terminated,
        });
        self.episodes = joined.collect();
    }

    fn columns(&self, has_log_probs: bool) -> Columns {
        let Self { seen, treatments, rewards, log_probs, episodes } = self.clone();
        let observations = ObservationColumn::Vectors { width: WIDTH, values: seen };
        let actions = ActionColumn::Discrete { n_actions: TREATMENTS.len(), values: treatments };
        let mut columns = Columns::new(observations, actions, rewards, episodes);
        columns.behavior_log_probs = has_log_probs.then_some(log_probs);
        columns
    }

    fn dataset(&self, has_log_probs: bool) -> Dataset {
        Dataset::of(self.columns(has_log_probs), &DatasetOptions::default()).unwrap()
    }
}

fn dataset(patients: usize, seed: u64, has_log_probs: bool) -> Dataset {
    Recording::of(patients, seed).dataset(has_log_probs)
}

fn judged(
    data: &Dataset,
    doctors: &[Doctor],
    updates: usize,
    seed: u64,
) -> Result<Judgement, JudgeError> {
    judged_at(DISCOUNT, data, doctors, updates, seed)
}

fn judged_at(
    discount: f64,
    data: &Dataset,
    doctors: &[Doctor],
    updates: usize,
    seed: u64,
) -> Result<Judgement, JudgeError> {
    let options = JudgeOptions { discount, updates, critics: 5, seed };
    let mut candidates: Vec<Candidate> = doctors.iter().map(|&of| candidate(of)).collect();
    judge(&request(data), &mut candidates, &options, &mut |_, _, _| ControlFlow::Continue(()))
}

#[test]
fn doctors_are_told_apart_with_and_without_log_probs() {
    for has_log_probs in [true, false] {
        let data = dataset(600, 4, has_log_probs);
        let doctors = [Doctor::Guideline, Doctor::Recorded];
        let judgement = judged(&data, &doctors, 300, 1).unwrap();
        assert_eq!(judgement.recording.has_log_probs, has_log_probs);
        for (of, doctor) in judgement.policies.iter().zip(doctors) {
            let estimate = of.deciding().unwrap();
            let method = if has_log_probs { Method::Wdr } else { Method::FittedQ };
            assert_eq!(estimate.method, method);
            let truth = doctor.value(DISCOUNT);
            assert!(estimate.interval.unwrap().contains(truth), "{doctor:?}: {of:?}");
        }
        let [guideline, recorded] = &judgement.policies[..] else { panic!("two policies") };
        assert_eq!(guideline.verdict, Verdict::BetterThanRecorded, "{guideline:?}");
        let Verdict::CannotTell { reasons } = &recorded.verdict else { panic!("{recorded:?}") };
        assert!(reasons.contains(&Check::Difference), "{reasons:?}");
    }
}

#[test]
fn short_episodes_are_judged_without_a_discount() {
    let data = dataset(600, 3, true);
    let judgement = judged_at(1.0, &data, &[Doctor::Guideline], 0, 1).unwrap();
    let estimate = judgement.policies[0].deciding().unwrap();
    let (interval, truth) = (estimate.interval.unwrap(), Doctor::Guideline.value(1.0));
    // Twice the distance that 95 % of recordings have.
    let largest = interval.high - interval.low;
    assert!((estimate.value - truth).abs() < largest, "{truth}: {estimate:?}");
}

/// A doctor whose recorded treatments an agent learned by heart.
#[test]
fn treatments_learned_by_heart_are_refused() {
    let data = dataset(100, 4, true);
    let ActionColumn::Discrete { values, .. } = data.actions() else { panic!("discrete") };
    struct ByHeart(BTreeMap<Vec<u32>, usize>, Vec<f64>);
    impl Policy for ByHeart {
        fn act(&mut self, turns: &[Turn], shown: Observations<'_>) -> Result<Actions, PolicyError> {
            let Observations::Vectors(shown) = shown else { return Err("pixels".into()) };
            self.1 = shown
                .chunks_exact(WIDTH)
                .flat_map(|seen| {
                    let key: Vec<u32> = seen.iter().map(|x| x.to_bits()).collect();
                    (0..4).map(move |i| (i, key.clone()))
                })
                .map(|(i, key)| if self.0[&key] == i { 0.97 } else { 0.01 })
                .collect();
            Ok(Actions::Discrete(vec![0; turns.len()]))
        }

        fn played(&self) -> Option<Played<'_>> {
            let order = BinOrder::Environment;
            Some(Played { probs: &self.1, actions: &[0, 1, 2, 3], order })
        }
    }
    let StoredObservations::Vectors { values: seen, .. } = data.observations() else {
        panic!("vectors")
    };
    let seen = seen.chunks_exact(WIDTH).map(|seen| seen.iter().map(|x| x.to_bits()).collect());
    let learned = seen.zip(values.iter().map(|&value| value.into())).collect();
    let policy = Box::new(ByHeart(learned, Vec::new()));
    let mut candidates = [Candidate { policy, ..candidate(Doctor::Recorded) }];
    let options = JudgeOptions { discount: DISCOUNT, updates: 0, critics: 2, seed: 1 };
    let judgement =
        judge(&request(&data), &mut candidates, &options, &mut |_, _, _| ControlFlow::Continue(()))
            .unwrap();
    let Verdict::CannotTell { reasons } = &judgement.policies[0].verdict else {
        panic!("{:?}", judgement.policies[0])
    };
    assert!(reasons.contains(&Check::Weights), "{reasons:?}");
}

/// The reasons of the first mode, and the names of the steps that were taken.
fn refused(data: &Dataset, doctors: &[Doctor]) -> (Vec<Check>, Vec<&'static str>) {
    let mut steps = Vec::new();
    let mut progress = |step: &'static str, _, _| {
        steps.push(step);
        ControlFlow::Continue(())
    };
    let options = JudgeOptions { discount: DISCOUNT, updates: 100, critics: 2, seed: 1 };
    let mut candidates: Vec<Candidate> = doctors.iter().map(|&of| candidate(of)).collect();
    let judgement = judge(&request(data), &mut candidates, &options, &mut progress).unwrap();
    let Verdict::CannotTell { reasons } = &judgement.policies[0].verdict else {
        panic!("{:?}", judgement.policies[0])
    };
    steps.dedup();
    (reasons.clone(), steps)
}

#[test]
fn what_costs_least_refuses_first() {
    let mut recorded = Recording::of(200, 3);
    // Weights alone show that no episode is left in effect.
    let (reasons, steps) = refused(&recorded.dataset(true), &[Doctor::Reluctant]);
    assert!(reasons.contains(&Check::Overlap), "{reasons:?}");
    assert_eq!(steps, ["replaying the agent"]);
    recorded.log_probs.rotate_right(1);
    let (reasons, steps) = refused(&recorded.dataset(true), &[Doctor::Guideline]);
    assert_eq!((&reasons[..], steps.len()), (&[Check::LogProbabilities][..], 0));
    recorded.join_episodes(2);
    let (reasons, steps) = refused(&recorded.dataset(false), &[Doctor::Guideline]);
    assert_eq!((&reasons[..], steps.len()), (&[Check::LongEpisodes][..], 0));
}

#[test]
fn the_intervals_of_several_modes_hold_together() {
    let data = dataset(2000, 4, true);
    let judgement = |doctors: &[Doctor]| judged(&data, doctors, 0, 1).unwrap();
    let alone = judgement(&[Doctor::Guideline]);
    let together = judgement(&[Doctor::Guideline, Doctor::Recorded, Doctor::Recorded]);
    let levels: Vec<f64> = together.policies.iter().map(|policy| policy.level).collect();
    // The guideline differs at 1 − .05/3; the recorded doctor, who does not differ from himself, is
    // then tested twice at 1 − .05/2.
    let expected = [1.0 - 0.05 / 3.0, 0.975, 0.975];
    for (level, expected) in levels.iter().zip(expected) {
        assert!((level - expected).abs() < 1e-12, "{levels:?}");
    }
    let width = |judgement: &Judgement| {
        let interval = judgement.policies[0].deciding().unwrap().interval.unwrap();
        interval.high - interval.low
    };
    assert_eq!((alone.policies[0].level, alone.level), (0.95, 0.95));
    assert!(width(&together) > 1.1 * width(&alone), "{} {}", width(&together), width(&alone));
    assert_eq!(together.policies[0].verdict, Verdict::BetterThanRecorded);
    let difference = together.policies[1].deciding().unwrap().difference.unwrap();
    assert!(difference.low.abs().max(difference.high.abs()) < 1e-14, "{difference:?}");
}

#[test]
fn the_same_seed_gives_the_same_judgement() {
    let data = dataset(40, 5, false);
    let with_threads = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| judged(&data, &[Doctor::Guideline], 20, 7).unwrap())
    };
    assert_eq!(with_threads(1), with_threads(2));
}

#[test]
fn recordings_that_no_method_can_judge() {
    let few = judged(&dataset(19, 1, true), &[Doctor::Recorded], 0, 1).unwrap_err();
    check_error!(few, JudgeError::FewEpisodes(19));
    let rows = 40;
    let error_of = |actions: ActionColumn, rewards: Vec<f32>| {
        let observations =
            ObservationColumn::Vectors { width: WIDTH, values: vec![0.5; rows * WIDTH] };
        let outcome = Outcome::Terminated;
        let episodes =
            (0..rows / 2).map(|i| Episode { start: 2 * i, length: 2, outcome }).collect();
        let columns = Columns::new(observations, actions, rewards, episodes);
        let data = Dataset::of(columns, &DatasetOptions::default()).unwrap();
        judged(&data, &[Doctor::Recorded], 0, 1).unwrap_err()
    };
    let discrete = ActionColumn::Discrete { n_actions: 4, values: vec![1; rows] };
    check_error!(error_of(discrete, vec![0.25; rows]), JudgeError::SameReturns(20));
    let continuous = ActionColumn::Continuous { width: 1, values: vec![0.5; rows] };
    let error = error_of(continuous, (0..rows).map(|i| i as f32).collect());
    check_error!(error, JudgeError::NoMethod);
    let (n_episodes, length) = (20, 101);
    let rows = n_episodes * length;
    let columns = Columns::new(
        ObservationColumn::Vectors { width: WIDTH, values: vec![0.5; rows * WIDTH] },
        ActionColumn::Discrete { n_actions: 4, values: vec![1; rows] },
        (0..rows).map(|row| row as f32).collect(),
        (0..n_episodes)
            .map(|i| Episode { start: i * length, length, outcome: Outcome::Terminated })
            .collect(),
    );
    let data = Dataset::of(columns, &DatasetOptions::default()).unwrap();
    let error = judged_at(1.0, &data, &[Doctor::Recorded], 10, 1).unwrap_err();
    check_error!(error, JudgeError::Undiscounted(101));
    let mut columns = Recording::of(40, 1).columns(true);
    columns.optional.stops = Some((0..columns.rewards.len()).map(|row| row == 3).collect());
    let masked = Dataset::of(columns, &DatasetOptions::default()).unwrap();
    let masked = judged(&masked, &[Doctor::Recorded], 0, 1).unwrap_err();
    check_error!(masked, JudgeError::Stops);
    let data = dataset(40, 1, false);
    let probs = Known::OfRecorded(vec![0.5; data.n_transitions()]);
    let options = JudgeOptions { discount: DISCOUNT, updates: 10, critics: 2, seed: 1 };
    let mut progress = |_: &'static str, _, _| ControlFlow::Continue(());
    let error = judge_known(&request(&data), probs, &options, &mut progress).unwrap_err();
    check_error!(error, JudgeError::NoLogProbs);
}

/// Doctors and methods with the number of intervals that contain the truth, and the answers.
#[test]
#[ignore = "takes 20 minutes: two times 100 recordings of 200 patients"]
fn intervals_with_fitted_values_cover_the_truth() {
    const RECORDINGS: u64 = 100;
    for has_log_probs in [true, false] {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut squares: BTreeMap<String, f64> = BTreeMap::new();
        for seed in 0..RECORDINGS {
            let data = dataset(200, 100 + seed, has_log_probs);
            let doctors = [Doctor::Guideline, Doctor::Recorded];
            let judgement = judged(&data, &doctors, 2000, 1).unwrap();
            for (of, doctor) in judgement.policies.iter().zip(doctors) {
                let truth = doctor.value(DISCOUNT);
                for estimate in &of.estimates {
                    let key = format!("{doctor:?}, {}", estimate.method.name());
                    let covers = estimate.interval.unwrap().contains(truth);
                    *counts.entry(key.clone()).or_default() += usize::from(covers);
                    *squares.entry(key).or_default() += (estimate.value - truth).powi(2);
                }
                *counts.entry(format!("{doctor:?}: {}", of.verdict)).or_default() += 1;
            }
        }
        for (key, count) in &counts {
            let rms = squares.get(key).map(|sum| (sum / RECORDINGS as f64).sqrt());
            println!("log-probabilities {has_log_probs}, {key}: {count}, error {rms:.4?}");
        }
        let deciding = if has_log_probs { Method::Wdr } else { Method::FittedQ };
        for doctor in ["Guideline", "Recorded"] {
            let covering = counts[&format!("{doctor}, {}", deciding.name())];
            assert!(covering >= 85, "{doctor}: {covering} of 100");
        }
    }
}
