//! A made-up clinic: a patient, at most 12 visits, four treatments. Everything is known: the
//! probabilities of the recorded decisions, and the exact value of any policy.
//!
//! A patient has a severity from 1 to 5 (0: recovered, 6: died), a burden of side effects from 0 to 2,
//! and one of two kinds, which respond to different drugs. After a visit the severity falls by 1,
//! stays, or rises by 1; drugs add to the burden, and the burden makes a rise more likely.

use overtone_core::seed::{Generator, derive_nth};
use rand::{RngExt, SeedableRng};

pub const VISITS: usize = 12;
pub const TREATMENTS: [&str; 4] = ["wait", "drug A", "drug B", "both drugs"];
/// Numbers per observation.
pub const WIDTH: usize = 5;

const N_SEVERITIES: usize = 5;
const N_BURDENS: usize = 3;
const N_KINDS: usize = 2;

/// A patient before a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patient {
    /// 1 to 5.
    severity: usize,
    /// 0 to 2.
    burden: usize,
    /// 0 responds to drug A, 1 to drug B.
    kind: usize,
}

/// A possible result of a visit.
struct Outcome {
    probability: f64,
    reward: f64,
    /// `None`: recovered, or died.
    next: Option<Patient>,
}

impl Patient {
    /// A new patient is of severity 2, 3 or 4 without side effects.
    fn starts() -> impl Iterator<Item = Self> {
        (2..=4)
            .flat_map(|severity| (0..N_KINDS).map(move |kind| Self { severity, burden: 0, kind }))
    }

    /// Severity, burden, kind, the visit's number, and the age, each in [0, 1].
    pub fn observation(self, visit: usize, age: f64) -> [f32; WIDTH] {
        let share = |x: usize, of: usize| x as f32 / of as f32;
        [
            share(self.severity, N_SEVERITIES),
            share(self.burden, N_BURDENS - 1),
            share(self.kind, N_KINDS - 1),
            share(visit, VISITS),
            age as f32,
        ]
    }

    /// The patient behind an observation.
    pub fn seen(observation: &[f32]) -> Self {
        let number = |share: f32, of: usize| (share * of as f32).round() as usize;
        Self {
            severity: number(observation[0], N_SEVERITIES),
            burden: number(observation[1], N_BURDENS - 1),
            kind: number(observation[2], N_KINDS - 1),
        }
    }

    fn index(self) -> usize {
        ((self.severity - 1) * N_BURDENS + self.burden) * N_KINDS + self.kind
    }

    fn all() -> impl Iterator<Item = Self> {
        (0..N_SEVERITIES * N_BURDENS * N_KINDS).map(|i| Self {
            severity: i / (N_BURDENS * N_KINDS) + 1,
            burden: i / N_KINDS % N_BURDENS,
            kind: i % N_KINDS,
        })
    }

    /// Every outcome of a treatment.
    fn outcomes(self, treatment: usize) -> Vec<Outcome> {
        let Self { severity, burden, kind } = self;
        let fits = treatment == kind + 1;
        let (fall, rise, more_burden, cost) = match treatment {
            0 => (0.15, 0.1, -1, 0.0),
            3 => (0.5, 0.05, 1, 0.06),
            _ if fits => (0.55, 0.03, 0, 0.03),
            _ => (0.1, 0.12, 0, 0.03),
        };
        let rise = rise + 0.06 * burden as f64;
        // One drug adds a side effect half of the time.
        let burdens = match more_burden {
            0 => vec![(0.5, burden), (0.5, burden + 1)],
            -1 => vec![(1.0, burden.saturating_sub(1))],
            _ => vec![(1.0, burden + 1)],
        };
        let severities =
            [(fall, severity - 1), (1.0 - fall - rise, severity), (rise, severity + 1)];
        let mut outcomes = Vec::new();
        for (of_severity, severity) in severities {
            for &(of_burden, burden) in &burdens {
                let end = match severity {
                    0 => 1.0,
                    6 => -1.0,
                    _ => 0.0,
                };
                let next = Self { severity, burden: burden.min(N_BURDENS - 1), kind };
                outcomes.push(Outcome {
                    probability: of_severity * of_burden,
                    reward: end - cost - 0.02 * self.severity as f64,
                    next: (end == 0.0).then_some(next),
                });
            }
        }
        outcomes
    }
}

/// A way to choose treatments.
#[derive(Clone, Copy, Debug)]
pub enum Doctor {
    /// The recorded one: treats severe cases more, and knows the kind only vaguely.
    Recorded,
    /// Prefers the drug that fits, and waits while there are side effects.
    Guideline,
    /// Mostly waits.
    Reluctant,
    /// Every treatment with the same probability.
    Random,
}

impl Doctor {
    /// Probability of each treatment.
    pub fn probs(self, patient: Patient) -> [f64; 4] {
        let [severity, burden] = [patient.severity, patient.burden].map(|x| x as f64);
        let drug = |weight: f64| [0, 1].map(|kind| if kind == patient.kind { weight } else { 0.0 });
        let logits = match self {
            Self::Recorded => {
                let [a, b] = drug(0.4);
                [0.8 - 0.3 * severity + 0.4 * burden, 0.2 + a, 0.2 + b, 0.25 * severity - 1.4]
            }
            Self::Guideline => {
                let [a, b] = drug(1.0);
                [0.4 - 0.3 * severity + 0.8 * burden, a, b, 0.25 * severity - 1.4 - 0.5 * burden]
            }
            Self::Reluctant => [1.2, 0.0, 0.0, -1.0],
            Self::Random => [0.0; 4],
        };
        let exp = logits.map(f64::exp);
        exp.map(|x| x / exp.iter().sum::<f64>())
    }

    /// Exact values with `discount`, by going back from the last visit.
    pub fn values(self, discount: f64) -> Exact {
        let n = Patient::all().count();
        let mut of_patients = vec![vec![0.0; n]; VISITS + 1];
        let mut of_treatments = vec![vec![[0.0; 4]; n]; VISITS];
        for visit in (0..VISITS).rev() {
            for patient in Patient::all() {
                let action_value = |treatment| -> f64 {
                    let later = |next: Patient| discount * of_patients[visit + 1][next.index()];
                    let outcomes = patient.outcomes(treatment).into_iter();
                    outcomes.map(|o| o.probability * (o.reward + o.next.map_or(0.0, later))).sum()
                };
                let q = [0, 1, 2, 3].map(action_value);
                let probs = self.probs(patient);
                of_treatments[visit][patient.index()] = q;
                of_patients[visit][patient.index()] = q.iter().zip(probs).map(|(q, p)| q * p).sum();
            }
        }
        Exact { of_patients, of_treatments }
    }

    /// Mean discounted return of new patients.
    pub fn value(self, discount: f64) -> f64 {
        let values = self.values(discount);
        let starts: Vec<f64> =
            Patient::starts().map(|patient| values.of_patients[0][patient.index()]).collect();
        starts.iter().sum::<f64>() / starts.len() as f64
    }
}

/// Values of a doctor at each visit.
pub struct Exact {
    of_patients: Vec<Vec<f64>>,
    of_treatments: Vec<Vec<[f64; 4]>>,
}

impl Exact {
    pub fn of_treatments(&self, patient: Patient, visit: usize) -> [f64; 4] {
        self.of_treatments[visit][patient.index()]
    }
}

/// A recorded visit.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    pub patient: Patient,
    pub treatment: usize,
    pub reward: f64,
    /// Recovered, or died.
    pub is_end: bool,
    /// The patient's age from 0 to 1, which changes nothing.
    pub age: f64,
}

/// The visits of `n` patients.
pub fn record(doctor: Doctor, n: usize, seed: u64) -> Vec<Vec<Visit>> {
    (0..n as u64)
        .map(|i| patient_visits(doctor, &mut Generator::seed_from_u64(derive_nth(seed, i))))
        .collect()
}

fn patient_visits(doctor: Doctor, draw: &mut Generator) -> Vec<Visit> {
    let starts: Vec<Patient> = Patient::starts().collect();
    let mut patient = starts[draw.random_range(0..starts.len())];
    let age = draw.random();
    let mut visits = Vec::new();
    while visits.len() < VISITS {
        let treatment = pick(&doctor.probs(patient), draw);
        let outcomes = patient.outcomes(treatment);
        let probabilities: Vec<f64> = outcomes.iter().map(|o| o.probability).collect();
        let Outcome { reward, next, .. } = outcomes[pick(&probabilities, draw)];
        visits.push(Visit { patient, treatment, reward, is_end: next.is_none(), age });
        let Some(next) = next else { break };
        patient = next;
    }
    visits
}

/// An index, with these probabilities.
fn pick(probabilities: &[f64], draw: &mut Generator) -> usize {
    let mut left: f64 = draw.random();
    for (i, probability) in probabilities.iter().enumerate() {
        left -= probability;
        if left < 0.0 {
            return i;
        }
    }
    // Rounding: the last one that can happen.
    probabilities.iter().rposition(|&probability| probability > 0.0).unwrap()
}

#[test]
fn exact_values_are_the_means_of_many_patients() {
    for doctor in [Doctor::Recorded, Doctor::Guideline, Doctor::Reluctant, Doctor::Random] {
        let returns: Vec<f64> = record(doctor, 20_000, 5)
            .iter()
            .map(|visits| visits.iter().rev().fold(0.0, |sum, visit| visit.reward + 0.9 * sum))
            .collect();
        let mean = returns.iter().sum::<f64>() / returns.len() as f64;
        let squares: f64 = returns.iter().map(|x| (x - mean).powi(2)).sum();
        let error = squares.sqrt() / returns.len() as f64;
        let apart = (mean - doctor.value(0.9)).abs() / error;
        assert!(apart < 3.0, "{doctor:?}: {apart:.1} standard errors of {error:.4}");
    }
}

/// The table of `datasets/README.md`.
#[test]
fn values_of_the_doctors() {
    let values = [Doctor::Guideline, Doctor::Recorded, Doctor::Random, Doctor::Reluctant]
        .map(|doctor| format!("{:.4}", doctor.value(1.0)));
    assert_eq!(values, ["-0.0167", "-0.1859", "-0.2355", "-0.3554"]);
}
