//! Tests of recorded rollouts.

use overtone_core::policy::PolicyError;
use overtone_core::protocol::ReturnUnits;
use overtone_core::{BinOrder, Policy, Task};
use overtone_eval::Plan;

use super::*;
use crate::command::record::cast::Member;

/// Environments that show the step's number; an episode's seed determines its length.
struct Steps {
    space: ActionSpace,
    shown: Vec<f32>,
    lengths: Vec<u64>,
    /// The allowed actions, if it says which: two of three, in turn.
    allowed: Option<Vec<bool>>,
}

impl Steps {
    fn mask(&mut self) {
        let row = |&shown: &f32| [0, 1, 2].map(|action| action != shown as usize % 3);
        let rows = self.shown.iter().flat_map(row).collect();
        self.allowed = self.allowed.take().map(|_| rows);
    }
}

impl VectorEnv for Steps {
    fn n_envs(&self) -> usize {
        self.shown.len()
    }
    fn observation_space(&self) -> &ObservationSpace {
        &ObservationSpace::Vectors { width: 1 }
    }
    fn action_space(&self) -> &ActionSpace {
        &self.space
    }
    fn reset(&mut self, envs: &[usize], seeds: &[u64]) -> Result<(), EnvError> {
        for (&env, seed) in envs.iter().zip(seeds) {
            self.shown[env] = 0.0;
            self.lengths[env] = 2 + seed % 4;
        }
        self.mask();
        Ok(())
    }
    fn step(&mut self, envs: &[usize], _: &Actions) -> Result<Vec<Step>, EnvError> {
        let step = |&env: &usize| {
            self.shown[env] += 1.0;
            let is_over = self.shown[env] as u64 == self.lengths[env];
            Step { reward: 1.0, outcome: is_over.then_some(Outcome::Terminated), success: None }
        };
        let steps = envs.iter().map(step).collect();
        self.mask();
        Ok(steps)
    }
    fn observations(&self) -> Observations<'_> {
        Observations::Vectors(&self.shown)
    }
    fn allowed_actions(&self) -> Option<&[bool]> {
        self.allowed.as_deref()
    }
}

/// Probability of `action` in [`Turning`]'s distribution where the environment shows `shown`.
fn turning(shown: f32, action: usize) -> f64 {
    [0.2, 0.3, 0.5][(shown as usize + action) % 3]
}

/// A policy that takes each action in turn, and stores distributions that turn with the steps.
struct Turning(Vec<f64>, usize);

/// The order of its bins.
const BINS: [usize; 3] = [2, 0, 1];

impl Policy for Turning {
    fn act(
        &mut self,
        turns: &[Turn],
        observations: Observations<'_>,
    ) -> Result<Actions, PolicyError> {
        let Observations::Vectors(shown) = observations else { return Err("pixels".into()) };
        let bins = |&shown: &f32| BINS.map(|action| turning(shown, action));
        self.0 = shown.iter().flat_map(bins).collect();
        self.1 += turns.len();
        Ok(Actions::Discrete((0..turns.len()).map(|row| (self.1 + row) % 3).collect()))
    }
    fn played(&self) -> Option<Played<'_>> {
        Some(Played { probs: &self.0, actions: &BINS, order: BinOrder::Head })
    }
}

/// Observations, actions and log-probabilities of a recording by `members`.
fn record(members: Vec<Member>, epsilon: f64) -> Vec<(f32, usize, Option<f32>)> {
    record_in(None, members, epsilon)
}

/// The same in environments that say which actions are `allowed`.
fn record_in(
    allowed: Option<Vec<bool>>,
    members: Vec<Member>,
    epsilon: f64,
) -> Vec<(f32, usize, Option<f32>)> {
    let shown = ObservationSpace::Vectors { width: 1 };
    let task: &Task = Box::leak(Box::new(Task::own("steps", shown, ActionSpace::numbered(3))));
    let (protocol, description) = (task.matched(None), String::new());
    let mut cast = Cast { task, protocol, members, switch: None, description };
    let space = task.actions.clone();
    let is_masked = allowed.is_some();
    let mut env = Steps { space, shown: vec![0.0; 4], lengths: vec![0; 4], allowed };
    let rules = Rules { transitions: 200, epsilon, seed: 7, switch: None, endless: None };
    let mut rollouts = Rollouts::new(&mut env, &mut cast, rules);
    let mut rows = Vec::new();
    while let Some(episodes) = rollouts.step().unwrap() {
        for episode in episodes {
            let ObservationColumn::Vectors { values, .. } = episode.observations else { panic!() };
            let ActionColumn::Discrete { values: actions, .. } = episode.actions else { panic!() };
            let masks = episode.optional.action_masks;
            assert_eq!(masks.is_some(), is_masked);
            for (row, &action) in actions.iter().enumerate() {
                let is_allowed = |masks: &ActionMasks| masks.allowed[row * 3 + usize::from(action)];
                assert!(masks.as_ref().is_none_or(is_allowed));
            }
            let log_probs = episode.behavior_log_probs;
            assert!(log_probs.as_ref().is_none_or(|all| all.len() == actions.len()));
            for (row, &action) in actions.iter().enumerate() {
                let log_prob = log_probs.as_ref().map(|all| all[row]);
                rows.push((values[row], usize::from(action), log_prob));
            }
        }
    }
    rows
}

fn random() -> Member {
    Member { policy: None, target: 0.0, draws: true, share: 1.0 }
}

fn by_turns(draws: bool) -> Member {
    let policy: Box<dyn Policy> = Box::new(Turning(Vec::new(), 0));
    Member { policy: Some(policy), target: 0.0, draws, share: 1.0 }
}

#[test]
fn each_action_is_recorded_with_its_log_prob() {
    let is_close = |got: Option<f32>, prob: f64| {
        got.is_some_and(|got| (f64::from(got) - prob.ln()).abs() < 1e-6)
    };
    for epsilon in [0.0, 0.3, 1.0] {
        let rows = record(vec![by_turns(true)], epsilon);
        for &(shown, action, got) in &rows {
            let prob = epsilon / 3.0 + (1.0 - epsilon) * turning(shown, action);
            assert!(is_close(got, prob), "{epsilon}: {shown} {action} {got:?}");
        }
        let third = 1.0 / 3.0;
        assert!(record(vec![random()], epsilon).iter().all(|row| is_close(row.2, third)));
    }
    // Of the policy that acted.
    let rows = record(vec![random(), by_turns(true)], 0.0);
    let by_random = rows.iter().filter(|row| is_close(row.2, 1.0 / 3.0)).count();
    let by_policy = rows.iter().filter(|row| is_close(row.2, turning(row.0, row.1))).count();
    assert!(by_random > 20 && by_policy > 20 && by_random + by_policy == rows.len());
    // A policy that does not draw has none, and so the recording has none.
    for members in [vec![by_turns(false)], vec![random(), by_turns(false)]] {
        assert!(record(members, 0.2).iter().all(|row| row.2.is_none()));
    }
}

#[test]
fn actions_are_allowed_ones_and_the_masks_are_recorded() {
    let rows = record_in(Some(Vec::new()), vec![random()], 0.0);
    let half = 0.5f32.ln();
    assert!(rows.iter().all(|&(shown, action, log_prob)| {
        action != shown as usize % 3 && log_prob.is_some_and(|got| (got - half).abs() < 1e-6)
    }));
}

#[test]
fn log_probs_are_of_the_mixture() {
    // Bins in another order than the actions: 3 actions, 2 turns.
    let (actions, order) = (&[2, 0, 1][..], BinOrder::Compass);
    let played = Played { probs: &[0.5, 0.2, 0.3, 0.0, 1.0, 0.0], actions, order };
    let probs = by_action(played, 3);
    assert_eq!(probs, [0.2, 0.3, 0.5, 1.0, 0.0, 0.0]);
    assert_eq!(log_prob(0.5, 0.0, 3), 0.5f32.ln());
    // 0.3 / 3 + 0.7 · 0.5
    assert!((log_prob(0.5, 0.3, 3) - 0.45f32.ln()).abs() < 1e-6);
    // Uniformly random, with any epsilon.
    for epsilon in [0.0, 0.4, 1.0] {
        assert!((log_prob(0.25, epsilon, 4) - 0.25f32.ln()).abs() < 1e-6);
    }
    // Each mixture is a distribution.
    let sum: f32 = probs[..3].iter().map(|&prob| log_prob(prob, 0.2, 3).exp()).sum();
    assert!((sum - 1.0).abs() < 1e-6, "{sum}");
    // Never beyond 0, and always a finite number.
    assert_eq!(log_prob(1.0 + 1e-12, 0.0, 3), 0.0);
    assert!(log_prob(0.0, 0.0, 3).is_finite());
}

#[test]
fn what_is_recorded_is_no_episode_of_a_score() {
    let plan = Plan::new(100, vec![1.0], 1, ReturnUnits::Raw);
    let played: Vec<u64> = (0..100).map(|episode| plan.episode_seed(episode)).collect();
    assert!((0..100).all(|number| !played.contains(&episode_seed(1, number))));
}
