//! Rollouts of several groups of environments and several policies together.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use overtone_core::{Actions, Observations, Policy, PolicyError, Turn};
use overtone_env::{ActionSpace, Corridor, EnvError, ObservationSpace, Step, VectorEnv};
use overtone_eval::{Plan, Player, RandomPolicy, Rollout, RolloutError, rollout_together};

use super::{Recorder, go, plan, random_play};

/// Plays these plans together, each with its own policy, in groups of these sizes.
fn together(groups: &[usize], plans: &[Plan]) -> Vec<Rollout> {
    let mut envs: Vec<Corridor> = groups.iter().map(|&n| Corridor::new(n, 6, 40, 0.2)).collect();
    let space = envs[0].action_space().clone();
    let n_agents = groups.iter().sum();
    let mut policies: Vec<RandomPolicy> =
        plans.iter().map(|_| RandomPolicy::new(space.clone(), n_agents)).collect();
    let mut players: Vec<Player<'_>> = policies
        .iter_mut()
        .zip(plans)
        .map(|(policy, plan)| Player { policy: policy as &mut dyn Policy, plan })
        .collect();
    let mut groups: Vec<&mut dyn VectorEnv> =
        envs.iter_mut().map(|env| env as &mut dyn VectorEnv).collect();
    rollout_together(&mut groups, &mut players, &mut go).unwrap()
}

#[test]
fn players_in_any_groups_get_the_same_episodes_as_alone() {
    let plans = [plan(7, &[1.0, 3.0]), Plan { seed: 9, ..plan(5, &[2.0]) }, plan(3, &[1.0])];
    let alone: Vec<Rollout> = plans.iter().map(|plan| random_play(1, plan)).collect();
    for groups in [&[1][..], &[4], &[2, 2], &[1, 3], &[5, 4, 3], &[20, 20]] {
        let together = together(groups, &plans);
        assert_eq!(together.len(), 3);
        for (together, alone) in together.iter().zip(&alone) {
            assert_eq!(together.episodes, alone.episodes, "{groups:?}");
            assert_eq!(together.steps, alone.steps);
        }
    }
    assert_ne!(alone[0].episodes[..5], alone[1].episodes, "the players differ");
}

/// Number of calls of a policy.
#[derive(Default)]
struct Acts {
    n: Mutex<usize>,
    changed: Condvar,
}

/// An environment that steps only after the policy has acted again, for another group.
struct Waits {
    corridor: Corridor,
    acts: Arc<Acts>,
    /// Number of calls in the whole rollout.
    last: usize,
}

impl VectorEnv for Waits {
    fn n_envs(&self) -> usize {
        self.corridor.n_envs()
    }
    fn observation_space(&self) -> &ObservationSpace {
        self.corridor.observation_space()
    }
    fn action_space(&self) -> &ActionSpace {
        self.corridor.action_space()
    }
    fn reset(&mut self, envs: &[usize], seeds: &[u64]) -> Result<(), EnvError> {
        self.corridor.reset(envs, seeds)
    }
    fn step(&mut self, envs: &[usize], actions: &Actions) -> Result<Vec<Step>, EnvError> {
        // The action is the number of calls so far.
        let Actions::Continuous { values, .. } = actions else { unreachable!() };
        let due = (values[0] as usize + 1).min(self.last);
        let acts = self.acts.n.lock().unwrap();
        let patience = Duration::from_secs(20);
        let waited = self.acts.changed.wait_timeout_while(acts, patience, |n| *n < due).unwrap();
        assert!(!waited.1.timed_out(), "no policy acts during this step");
        drop(waited);
        self.corridor.step(envs, &Actions::Discrete(vec![1; envs.len()]))
    }
    fn observations(&self) -> Observations<'_> {
        self.corridor.observations()
    }
}

/// A policy whose action is the number of its calls.
struct Counts(Arc<Acts>);

impl Policy for Counts {
    fn act(&mut self, turns: &[Turn], _: Observations<'_>) -> Result<Actions, PolicyError> {
        let mut n = self.0.n.lock().unwrap();
        *n += 1;
        self.0.changed.notify_all();
        Ok(Actions::Continuous { width: 1, values: vec![*n as f32; turns.len()] })
    }
}

#[test]
fn one_group_steps_while_the_policy_acts_for_another() {
    // Three steps in each of two groups need six calls.
    let acts = Arc::new(Acts::default());
    let mut envs: Vec<Waits> = (0..2)
        .map(|_| Waits { corridor: Corridor::new(1, 40, 3, 0.0), acts: acts.clone(), last: 6 })
        .collect();
    let mut groups: Vec<&mut dyn VectorEnv> =
        envs.iter_mut().map(|env| env as &mut dyn VectorEnv).collect();
    let (mut policy, plan) = (Counts(acts), plan(2, &[1.0]));
    let mut players = [Player { policy: &mut policy, plan: &plan }];
    let played = rollout_together(&mut groups, &mut players, &mut go).unwrap();
    assert_eq!(played[0].episodes.iter().map(|e| e.length).collect::<Vec<_>>(), [3, 3]);
}

#[test]
fn a_failing_group_ends_the_rollout() {
    struct Broken(Corridor);
    impl VectorEnv for Broken {
        fn n_envs(&self) -> usize {
            1
        }
        fn observation_space(&self) -> &ObservationSpace {
            self.0.observation_space()
        }
        fn action_space(&self) -> &ActionSpace {
            self.0.action_space()
        }
        fn reset(&mut self, envs: &[usize], seeds: &[u64]) -> Result<(), EnvError> {
            self.0.reset(envs, seeds)
        }
        fn step(&mut self, _: &[usize], _: &Actions) -> Result<Vec<Step>, EnvError> {
            Err(EnvError::NoEpisode { env: 0 })
        }
        fn observations(&self) -> Observations<'_> {
            self.0.observations()
        }
    }
    let (mut broken, mut sound) =
        (Broken(Corridor::new(1, 5, 40, 0.0)), Corridor::new(2, 5, 40, 0.0));
    let mut policy = Recorder::default();
    let plan = plan(9, &[1.0]);
    let mut players = [Player { policy: &mut policy, plan: &plan }];
    let error = rollout_together(&mut [&mut sound, &mut broken], &mut players, &mut go);
    assert!(matches!(error, Err(RolloutError::Env(EnvError::NoEpisode { env: 0 }))));
    let none = rollout_together(&mut [], &mut players, &mut go);
    assert!(matches!(none, Err(RolloutError::NoEnvironment)));
}
