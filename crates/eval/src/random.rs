//! Uniform random actions: the random baseline.

use overtone_core::seed::Generator;
use overtone_core::{Actions, Observations, Policy, PolicyError, Turn};
use overtone_env::ActionSpace;
use rand::{RngExt, SeedableRng};

/// Agents that sample each action uniformly, with their episode's seed.
#[derive(Debug)]
pub struct RandomPolicy {
    space: ActionSpace,
    generators: Vec<Option<Generator>>,
    /// The allowed actions of the next turns.
    allowed: Option<Vec<bool>>,
}

impl RandomPolicy {
    /// `n_agents` agents acting in `space`.
    pub fn new(space: ActionSpace, n_agents: usize) -> Self {
        Self { space, generators: (0..n_agents).map(|_| None).collect(), allowed: None }
    }
}

impl Policy for RandomPolicy {
    fn allow(&mut self, allowed: Vec<bool>) -> Result<(), PolicyError> {
        self.allowed = Some(allowed);
        Ok(())
    }

    fn act(&mut self, turns: &[Turn], _: Observations<'_>) -> Result<Actions, PolicyError> {
        let allowed = self.allowed.take();
        for turn in turns {
            let n_agents = self.generators.len();
            let generator = self.generators.get_mut(turn.agent).ok_or_else(|| {
                format!("unknown agent {}: there are {n_agents} agents", turn.agent)
            })?;
            if let Some(start) = turn.start {
                *generator = Some(Generator::seed_from_u64(start.seed));
            }
        }
        match &self.space {
            ActionSpace::Discrete { names } => {
                let mut actions = Vec::with_capacity(turns.len());
                for (row, turn) in turns.iter().enumerate() {
                    let generator = begun(&mut self.generators, turn.agent)?;
                    let choices = allowed_actions(allowed.as_deref(), row, names.len());
                    if choices.is_empty() {
                        return Err(format!("agent {} has no allowed action", turn.agent).into());
                    }
                    actions.push(choices[generator.random_range(0..choices.len())]);
                }
                Ok(Actions::Discrete(actions))
            }
            ActionSpace::Continuous { low, .. } => {
                let (width, bounds) = (low.len(), self.space.drawn_between());
                let mut values = Vec::with_capacity(turns.len() * width);
                for turn in turns {
                    let generator = begun(&mut self.generators, turn.agent)?;
                    let draw = |&[low, high]: &[f32; 2]| generator.random_range(low..=high);
                    values.extend(bounds.iter().map(draw));
                }
                Ok(Actions::Continuous { width, values })
            }
        }
    }
}

/// The allowed actions in a row of a mask `[rows, n_actions]`; `None`: all.
pub fn allowed_actions(allowed: Option<&[bool]>, row: usize, n_actions: usize) -> Vec<usize> {
    let is_allowed =
        |&action: &usize| allowed.is_none_or(|allowed| allowed[row * n_actions + action]);
    (0..n_actions).filter(is_allowed).collect()
}

fn begun(
    generators: &mut [Option<Generator>],
    agent: usize,
) -> Result<&mut Generator, PolicyError> {
    generators[agent]
        .as_mut()
        .ok_or_else(|| format!("agent {agent} acts before its episode began").into())
}
