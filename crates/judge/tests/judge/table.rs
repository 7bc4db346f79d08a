//! A made-up ward: 120 states, 8 treatments, at most 20 steps, and the reward 1 for leaving it well.
//! Transitions are drawn once, so that the exact return of every policy is known.

use std::{collections::BTreeMap, ops::ControlFlow};

use overtone_core::{
    Actions, BinOrder, Episode, Observations, Outcome, Play, Played, Policy, PolicyError,
    Simulation, Turn,
    judgement::{Check, Judgement, Method, Trained, Verdict},
    protocol::ActionChoice,
    seed::{Generator, derive_nth, generator},
};
use overtone_data::{ActionColumn, Columns, Dataset, DatasetOptions, ObservationColumn};
use overtone_judge::{Candidate, JudgeOptions, Progress, Request, judge};
use rand::{RngExt, SeedableRng};

const STATES: usize = 120;
const TREATMENTS: usize = 8;
const STEPS: usize = 20;
/// Numbers of an observation: random ones for each state.
const WIDTH: usize = 6;
const DISCOUNT: f64 = 0.99;
/// Possible next states.
const NEXT: usize = 6;

/// The probabilities of treatments in each state.
type Choices = Vec<[f64; TREATMENTS]>;

struct Ward {
    /// `[states][treatments]`: probabilities to leave well and to die, and the next states, which are
    /// equally likely.
    effects: Vec<[Effect; TREATMENTS]>,
    observations: Vec<[f32; WIDTH]>,
}

#[derive(Clone, Copy, Default)]
struct Effect {
    well: f64,
    dead: f64,
    next: [usize; NEXT],
}

impl Ward {
    fn new() -> Self {
        let draw = &mut generator(11, "ward");
        let effect = |draw: &mut Generator, severity: f64| Effect {
            well: 0.25 * draw.random::<f64>() * (1.0 - severity),
            dead: 0.15 * draw.random::<f64>() * severity,
            next: std::array::from_fn(|_| draw.random_range(0..STATES)),
        };
        let effects = (0..STATES).map(|_| {
            let severity = draw.random();
            std::array::from_fn(|_| effect(draw, severity))
        });
        let effects = effects.collect();
        let numbers = |_| std::array::from_fn(|_| draw.random_range(-1.0..1.0));
        Self { effects, observations: (0..STATES).map(numbers).collect() }
    }

    /// Values of every treatment in every state at the first step, for these choices.
    fn values(&self, choices: &Choices) -> Vec<[f64; TREATMENTS]> {
        let mut of_states = vec![0.0; STATES];
        let mut of_treatments = vec![[0.0; TREATMENTS]; STATES];
        for _ in 0..STEPS {
            for (effects, of) in self.effects.iter().zip(&mut of_treatments) {
                *of = effects.map(|Effect { well, dead, next }| {
                    let later = next.iter().map(|&state| of_states[state]).sum::<f64>();
                    well + (1.0 - well - dead) * DISCOUNT * later / NEXT as f64
                });
            }
            let mean = |(of, probs): (&[f64; TREATMENTS], &[f64; TREATMENTS])| {
                of.iter().zip(probs).map(|(of, prob)| of * prob).sum::<f64>()
            };
            of_states = of_treatments.iter().zip(choices).map(mean).collect();
        }
        of_treatments
    }

    /// Mean discounted return: every state is a start.
    fn truth(&self, choices: &Choices) -> f64 {
        let values = self.values(choices);
        let all = values.iter().zip(choices).flat_map(|(values, probs)| values.iter().zip(probs));
        all.map(|(value, prob)| value * prob).sum::<f64>() / STATES as f64
    }

    /// Choices that favour good treatments of an equally likely choice by `strength`.
    fn favouring(&self, strength: f64) -> Choices {
        let random = vec![[1.0 / TREATMENTS as f64; TREATMENTS]; STATES];
        let softmax = |values: [f64; TREATMENTS]| {
            let weights = values.map(|value| (strength * value).exp());
            weights.map(|weight| weight / weights.iter().sum::<f64>())
        };
        self.values(&random).into_iter().map(softmax).collect()
    }

    fn recording(
        &self,
        choices: &Choices,
        patients: usize,
        seed: u64,
        has_log_probs: bool,
    ) -> Dataset {
        let (mut seen, mut treatments, mut rewards) = (Vec::new(), Vec::new(), Vec::new());
        let (mut log_probs, mut episodes) = (Vec::new(), Vec::new());
        for patient in 0..patients {
            let draw = &mut Generator::seed_from_u64(derive_nth(seed, patient as u64));
            let (start, mut state) = (treatments.len(), draw.random_range(0..STATES));
            let mut outcome = Outcome::Truncated;
            for _ in 0..STEPS {
                let treatment = pick(&choices[state], draw);
                let Effect { well, dead, next } = self.effects[state][treatment];
                seen.extend(self.observations[state]);
                treatments.push(treatment as u16);
                log_probs.push(choices[state][treatment].ln() as f32);
                let happened: f64 = draw.random();
                rewards.push(f32::from(u8::from(happened < well)));
                if happened < well + dead {
                    outcome = Outcome::Terminated;
                    break;
                }
                state = next[draw.random_range(0..NEXT)];
            }
            episodes.push(Episode { start, length: treatments.len() - start, outcome });
        }
        let observations = ObservationColumn::Vectors { width: WIDTH, values: seen };
        let actions = ActionColumn::Discrete { n_actions: TREATMENTS, values: treatments };
        let mut columns = Columns::new(observations, actions, rewards, episodes);
        columns.behavior_log_probs = has_log_probs.then_some(log_probs);
        Dataset::of(columns, &DatasetOptions::default()).unwrap()
    }
}

fn pick(probs: &[f64], draw: &mut Generator) -> usize {
    let mut left: f64 = draw.random();
    let chosen = probs.iter().position(|prob| {
        left -= prob;
        left < 0.0
    });
    chosen.unwrap_or(probs.len() - 1)
}

/// Choices as an agent, which finds the state by its observation.
struct Agent {
    choices: Choices,
    states: BTreeMap<[u32; WIDTH], usize>,
    probs: Vec<f64>,
}

impl Agent {
    fn candidate(ward: &Ward, choices: &Choices) -> Candidate {
        let states = ward.observations.iter().enumerate();
        let states = states.map(|(state, seen)| (seen.map(f32::to_bits), state)).collect();
        let play =
            Play { action_choice: ActionChoice::Sample, ..Play::matched(Simulation::default()) };
        let policy = Self { choices: choices.clone(), states, probs: Vec::new() };
        Candidate { mode: play.acting, policy: Box::new(policy), play }
    }
}

impl Policy for Agent {
    fn act(&mut self, turns: &[Turn], shown: Observations<'_>) -> Result<Actions, PolicyError> {
        let Observations::Vectors(shown) = shown else { return Err("pixels".into()) };
        let state = |seen: &[f32]| {
            let bits: Vec<u32> = seen.iter().map(|number| number.to_bits()).collect();
            self.states[&<[u32; WIDTH]>::try_from(bits).unwrap()]
        };
        let probs = shown.chunks_exact(WIDTH).flat_map(|seen| self.choices[state(seen)]);
        self.probs = probs.collect();
        Ok(Actions::Discrete(vec![0; turns.len()]))
    }

    fn played(&self) -> Option<Played<'_>> {
        let actions = &[0, 1, 2, 3, 4, 5, 6, 7];
        Some(Played { probs: &self.probs, actions, order: BinOrder::Environment })
    }
}

fn judged(ward: &Ward, data: &Dataset, all: &[Choices], updates: usize) -> Judgement {
    let mut progress = |_: &'static str, _, _| ControlFlow::Continue(());
    judged_with(ward, data, all, updates, &mut progress)
}

fn judged_with(
    ward: &Ward,
    data: &Dataset,
    all: &[Choices],
    updates: usize,
    progress: &mut Progress<'_>,
) -> Judgement {
    let mut candidates: Vec<Candidate> =
        all.iter().map(|choices| Agent::candidate(ward, choices)).collect();
    let request = Request {
        run: "ward",
        step: 1,
        target_return: 1.0,
        is_conditioned: false,
        data,
        dataset: "ward",
        trained: Trained::No,
        action_scale: None,
    };
    let options = JudgeOptions { discount: DISCOUNT, updates, critics: 5, seed: 1 };
    judge(&request, &mut candidates, &options, progress).unwrap()
}

/// The recorded strength, and those of the agents: equal to it, better, much better, worse.
const RECORDED: f64 = 4.0;
const AGENTS: [f64; 4] = [RECORDED, 8.0, 16.0, 0.0];

#[test]
fn weights_are_right_about_a_table() {
    let ward = Ward::new();
    let all = AGENTS.map(|strength| ward.favouring(strength));
    let data = ward.recording(&all[0], 1000, 5, true);
    let judgement = judged(&ward, &data, &all, 0);
    for (of, choices) in judgement.policies.iter().zip(&all) {
        let interval = of.deciding().unwrap().interval.unwrap();
        assert!(interval.contains(ward.truth(choices)), "{}: {of:?}", ward.truth(choices));
    }
}

#[test]
fn modes_that_the_clone_does_not_cover_need_no_critics() {
    let ward = Ward::new();
    // The last treatment never occurs, and the agent chooses it always.
    let recorded = [[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0].map(|weight| weight / 7.0); STATES];
    let agent = [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]; STATES];
    let data = ward.recording(&recorded.to_vec(), 200, 5, false);
    let mut steps = Vec::new();
    let mut progress = |step: &'static str, _, _| {
        steps.push(step);
        ControlFlow::Continue(())
    };
    let judgement = judged_with(&ward, &data, &[agent.to_vec()], 100, &mut progress);
    let reasons = vec![Check::Coverage];
    assert_eq!(judgement.policies[0].verdict, Verdict::CannotTell { reasons });
    assert_eq!((judgement.policies[0].estimates.len(), judgement.clone), (0, None));
    steps.dedup();
    assert_eq!(steps, ["replaying the agent", "cloning the recorded policy"]);
}

/// Intervals that contain the truth, answers, and wrong answers.
#[test]
#[ignore = "takes minutes: two times 40 recordings of 200 patients"]
fn intervals_of_a_table_cover_the_truth() {
    const RECORDINGS: u64 = 40;
    let ward = Ward::new();
    let all = AGENTS.map(|strength| ward.favouring(strength));
    let truths = all.each_ref().map(|choices| ward.truth(choices));
    println!("truths {truths:.4?}");
    for has_log_probs in [true, false] {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut together = 0;
        for recording in 0..RECORDINGS {
            let data = ward.recording(&all[0], 200, 1000 * (recording + 1), has_log_probs);
            let judgement = judged(&ward, &data, &all, 2000);
            let mut is_right = true;
            for ((of, truth), strength) in judgement.policies.iter().zip(truths).zip(AGENTS) {
                let mut count = |what: String| *counts.entry(what).or_default() += 1;
                for estimate in &of.estimates {
                    let covers = estimate.interval.unwrap().contains(truth);
                    let what = if covers { "contains the truth" } else { "misses the truth" };
                    count(format!("{strength}, {}: {what}", estimate.method.name()));
                }
                let is_wrong = match &of.verdict {
                    Verdict::BetterThanRecorded => truth <= truths[0],
                    Verdict::WorseThanRecorded => truth >= truths[0],
                    Verdict::CannotTell { .. } => false,
                };
                is_right &= !is_wrong;
                count(format!(
                    "{strength}: {}{}",
                    of.verdict,
                    if is_wrong { " (wrong)" } else { "" }
                ));
            }
            together += usize::from(is_right);
        }
        println!(
            "log-probabilities {has_log_probs}: {together} of {RECORDINGS} without a wrong answer"
        );
        counts.iter().for_each(|(what, count)| println!("  {what}: {count}"));
        assert!(together >= 36, "{together}");
        let deciding = if has_log_probs { Method::Wdr } else { Method::FittedQ };
        for strength in [RECORDED, 8.0] {
            let name = |what: &str| format!("{strength}, {}: {what}", deciding.name());
            let count = |what: &str| counts.get(&name(what)).copied().unwrap_or(0);
            let [held, missed] = [count("contains the truth"), count("misses the truth")];
            assert!(held >= 9 * missed, "{strength}: {held} of {}", held + missed);
        }
    }
}
