//! Inputs of a policy, and errors that end a rollout.

use std::ops::ControlFlow;

use overtone_core::protocol::ReturnUnits;
use overtone_core::{Actions, Observations, Outcome, Policy, PolicyError, Turn};
use overtone_env::{ActionSpace, Corridor, EnvError, ObservationSpace, Step, VectorEnv};
use overtone_eval::{Plan, RolloutError, rollout};

use super::{Recorder, go, plan};

#[test]
fn an_agent_sees_its_own_environment_after_others_dropped_out() {
    let mut policy = Recorder::default();
    let mut env = Corridor::new(4, 9, 40, 0.3);
    rollout(&mut env, &mut policy, &plan(4, &[1.0]), &mut go).unwrap();
    // The second number of an observation is the step of the agent's episode.
    let mut taken = [0.0; 4];
    for (turns, rows) in policy.batches.iter().zip(&policy.observations) {
        for (turn, row) in turns.iter().zip(rows.chunks(2)) {
            assert_eq!(row[1], taken[turn.agent]);
            taken[turn.agent] += 1.0;
        }
    }
    assert!(policy.batches.last().unwrap().len() < 4, "some slot must have dropped out");
}

#[track_caller]
fn check_units(units: ReturnUnits, last_reward: f32) {
    // Two successive episodes on one slot, without random steps: a reward of 20 ends the first.
    let mut policy = Recorder::default();
    let mut env = Corridor::new(1, 5, 40, 0.0);
    let plan = Plan { return_units: units, ..plan(2, &[7.0]) };
    let played = rollout(&mut env, &mut policy, &plan, &mut go).unwrap();
    for episode in &played.episodes {
        assert_eq!(episode.raw_return, 20.0);
        assert_eq!(episode.clipped_return, 1.0);
        assert_eq!(episode.outcome, Outcome::Terminated);
    }
    let turns: Vec<Turn> = policy.batches.concat();
    let start = turns[0].start.unwrap();
    assert_eq!((start.target_return, turns[0].reward), (7.0, 0.0));
    assert!(turns.iter().all(|turn| turn.reward == 0.0), "the last reward ends an episode");

    // A reward inside an episode reaches the policy in the plan's units.
    let mut rewards = RecordedRewards(Vec::new());
    rollout(&mut Payday(0), &mut rewards, &plan, &mut go).unwrap();
    assert_eq!(rewards.0, [0.0, last_reward, 0.0, last_reward]);
}

struct RecordedRewards(Vec<f32>);

impl Policy for RecordedRewards {
    fn act(&mut self, turns: &[Turn], _: Observations<'_>) -> Result<Actions, PolicyError> {
        self.0.extend(turns.iter().map(|turn| turn.reward));
        Ok(Actions::Discrete(vec![0; turns.len()]))
    }
}

/// An environment of two steps with reward -20, truncated after the second.
struct Payday(u32);

impl VectorEnv for Payday {
    fn n_envs(&self) -> usize {
        1
    }
    fn observation_space(&self) -> &ObservationSpace {
        &ObservationSpace::Vectors { width: 1 }
    }
    fn action_space(&self) -> &ActionSpace {
        static NO_NUMBERS: ActionSpace =
            ActionSpace::Continuous { low: Vec::new(), high: Vec::new() };
        &NO_NUMBERS
    }
    fn reset(&mut self, _: &[usize], _: &[u64]) -> Result<(), EnvError> {
        self.0 = 0;
        Ok(())
    }
    fn step(&mut self, _: &[usize], _: &Actions) -> Result<Vec<Step>, EnvError> {
        self.0 += 1;
        let outcome = (self.0 == 2).then_some(Outcome::Truncated);
        Ok(vec![Step { reward: -20.0, outcome, success: None }])
    }
    fn observations(&self) -> Observations<'_> {
        Observations::Vectors(&[0.0])
    }
}

#[test]
fn rewards_reach_the_policy_in_the_protocols_units() {
    check_units(ReturnUnits::Clipped, -1.0);
    check_units(ReturnUnits::Raw, -20.0);
}

#[test]
fn empty_plans_invalid_targets_and_a_stop_are_errors() {
    let mut env = Corridor::new(2, 5, 40, 0.0);
    let mut policy = Recorder::default();
    let mut play = |plan: Plan, flow: ControlFlow<()>| {
        rollout(&mut env, &mut policy, &plan, &mut |_| flow).unwrap_err()
    };
    let run = ControlFlow::Continue(());
    assert!(matches!(play(plan(0, &[1.0]), run), RolloutError::Empty { .. }));
    assert!(matches!(play(plan(3, &[]), run), RolloutError::Empty { .. }));
    assert!(matches!(play(plan(3, &[f32::NAN]), run), RolloutError::Target(_)));
    let stopped = play(plan(30, &[1.0]), ControlFlow::Break(()));
    assert!(matches!(stopped, RolloutError::Stopped { episodes: 30, .. }));
    let mut failing = Failing;
    let error = rollout(&mut env, &mut failing, &plan(1, &[1.0]), &mut go).unwrap_err();
    assert!(matches!(error, RolloutError::Policy(_)));
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "out of ideas");
}

struct Failing;

impl Policy for Failing {
    fn act(&mut self, _: &[Turn], _: Observations<'_>) -> Result<Actions, PolicyError> {
        Err("out of ideas".into())
    }
}
