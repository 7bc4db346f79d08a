//! Rollouts of hand-written policies in hand-written environments.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod distributions;
mod failures;
mod groups;
mod order;
mod policy;

use std::ops::ControlFlow;

use overtone_core::protocol::ReturnUnits;
use overtone_core::{Actions, BinOrder, Observations, Played, Policy, PolicyError, Turn};
use overtone_env::{Corridor, VectorEnv};
use overtone_eval::{Plan, Progress, RandomPolicy, Rollout, rollout};

fn plan(episodes: usize, targets: &[f32]) -> Plan {
    Plan::new(episodes, targets.to_vec(), 5, ReturnUnits::Clipped)
}

fn go(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn random_play(n_envs: usize, plan: &Plan) -> Rollout {
    let mut env = Corridor::new(n_envs, 6, 40, 0.2);
    let mut policy = RandomPolicy::new(env.action_space().clone(), n_envs);
    rollout(&mut env, &mut policy, plan, &mut go).unwrap()
}

/// A policy that goes right and records its turns and observations.
#[derive(Default)]
struct Recorder {
    batches: Vec<Vec<Turn>>,
    observations: Vec<Vec<f32>>,
}

impl Policy for Recorder {
    fn act(&mut self, turns: &[Turn], seen: Observations<'_>) -> Result<Actions, PolicyError> {
        let Observations::Vectors(rows) = seen else { return Err("vectors expected".into()) };
        assert_eq!(rows.len(), turns.len() * 2, "one row for each turn");
        self.batches.push(turns.to_vec());
        self.observations.push(rows.to_vec());
        Ok(Actions::Discrete(vec![1; turns.len()]))
    }
}

/// A policy that goes right and reports a distribution that depends on the step of the episode.
struct Reporting {
    probs: Vec<f64>,
}

impl Reporting {
    /// The action of each bin: right, left, right, left.
    const ACTIONS: [usize; 4] = [1, 0, 1, 0];

    /// Uniform in the first two steps, then `[0.75, 0.25, 0, …]`, rotated by one bin in each step.
    fn pmf(n_bins: usize, step: usize) -> Vec<f64> {
        let mut pmf = vec![1.0 / n_bins as f64; n_bins];
        if step >= 2 {
            pmf.fill(0.0);
            (pmf[0], pmf[1]) = (0.75, 0.25);
            pmf.rotate_right(step % n_bins);
        }
        pmf
    }
}

impl Policy for Reporting {
    fn act(&mut self, turns: &[Turn], seen: Observations<'_>) -> Result<Actions, PolicyError> {
        let Observations::Vectors(rows) = seen else { return Err("vectors expected".into()) };
        // The second number of an observation is the step of the agent's episode.
        let pmfs = rows.chunks(2).map(|row| Self::pmf(4, row[1] as usize));
        self.probs = pmfs.flatten().collect();
        Ok(Actions::Discrete(vec![1; turns.len()]))
    }

    fn played(&self) -> Option<Played<'_>> {
        Some(Played { probs: &self.probs, actions: &Self::ACTIONS, order: BinOrder::Head })
    }
}
