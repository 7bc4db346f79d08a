//! [`Batched`]: a batch of environments, each written as a single environment.

use overtone_core::{Actions, Observations};

use crate::{
    ActionSpace, ObservationSpace, error::EnvError, slots::Slots, step::Step, vector_env::VectorEnv,
};

/// A single environment with vector observations that cannot fail. Implement [`VectorEnv`] instead
/// for a simulator that can fail, or one with image observations.
pub trait Env: Send {
    /// Numbers per observation.
    fn observation_width(&self) -> usize;

    /// The action space.
    fn action_space(&self) -> ActionSpace;

    /// Starts an episode. `seed` determines all random numbers.
    fn reset(&mut self, seed: u64);

    /// Takes an action. The action is always in the space.
    fn step(&mut self, action: Action<'_>) -> Step;

    /// Writes the current observation.
    fn observe(&self, observation: &mut [f32]);
}

/// One action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action<'a> {
    /// An index into the action set.
    Discrete(usize),
    /// A number for each dimension.
    Continuous(&'a [f32]),
}

/// A batch of environments of one kind.
#[derive(Debug)]
pub struct Batched<E> {
    envs: Vec<E>,
    slots: Slots,
    observation_space: ObservationSpace,
    action_space: ActionSpace,
    /// `[n_envs, width]`
    observations: Vec<f32>,
}

impl<E: Env> Batched<E> {
    /// A batch of these environments, none with an active episode.
    ///
    /// # Panics
    /// When `envs` is empty: a caller's bug.
    pub fn of(envs: Vec<E>) -> Self {
        let first = envs.first().expect("a batch has an environment");
        let (width, action_space) = (first.observation_width(), first.action_space());
        Self {
            slots: Slots::new(envs.len()),
            observations: vec![0.0; envs.len() * width],
            observation_space: ObservationSpace::Vectors { width },
            action_space,
            envs,
        }
    }

    fn show(&mut self, env: usize) {
        let width = self.observations.len() / self.envs.len();
        self.envs[env].observe(&mut self.observations[env * width..(env + 1) * width]);
    }
}

impl<E: Env> VectorEnv for Batched<E> {
    fn n_envs(&self) -> usize {
        self.envs.len()
    }

    fn observation_space(&self) -> &ObservationSpace {
        &self.observation_space
    }

    fn action_space(&self) -> &ActionSpace {
        &self.action_space
    }

    fn reset(&mut self, envs: &[usize], seeds: &[u64]) -> Result<(), EnvError> {
        self.slots.check_reset(envs, seeds)?;
        for (&env, &seed) in envs.iter().zip(seeds) {
            self.envs[env].reset(seed);
            self.slots.begin(env);
            self.show(env);
        }
        Ok(())
    }

    fn step(&mut self, envs: &[usize], actions: &Actions) -> Result<Vec<Step>, EnvError> {
        self.slots.check_step(envs, actions, &self.action_space)?;
        let mut steps = Vec::with_capacity(envs.len());
        for (row, &env) in envs.iter().enumerate() {
            let action = match actions {
                Actions::Discrete(indices) => Action::Discrete(indices[row]),
                Actions::Continuous { width, values } => {
                    Action::Continuous(&values[row * width..(row + 1) * width])
                }
            };
            let step = self.envs[env].step(action);
            if step.outcome.is_some() {
                self.slots.end(env);
            }
            self.show(env);
            steps.push(step);
        }
        Ok(steps)
    }

    fn observations(&self) -> Observations<'_> {
        Observations::Vectors(&self.observations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use overtone_core::Outcome;

    /// Shows the sum of all actions, and ends when the sum is above 1.
    struct Sum(f32);

    impl Env for Sum {
        fn observation_width(&self) -> usize {
            1
        }
        fn action_space(&self) -> ActionSpace {
            ActionSpace::Continuous { low: vec![-1.0; 2], high: vec![1.0; 2] }
        }
        fn reset(&mut self, seed: u64) {
            self.0 = seed as f32 / 10.0;
        }
        fn step(&mut self, action: Action<'_>) -> Step {
            let Action::Continuous(numbers) = action else { unreachable!("of another space") };
            self.0 += numbers.iter().sum::<f32>();
            let outcome = (self.0 > 1.0).then_some(Outcome::Terminated);
            Step { reward: numbers[0], outcome, success: None }
        }
        fn observe(&self, observation: &mut [f32]) {
            observation[0] = self.0;
        }
    }

    #[test]
    fn each_environment_takes_its_own_row() {
        let mut env = Batched::of(vec![Sum(0.0), Sum(0.0), Sum(0.0)]);
        env.reset(&[2, 0], &[5, 1]).unwrap();
        let Observations::Vectors(rows) = env.observations() else { unreachable!() };
        assert_eq!(rows, [0.1, 0.0, 0.5]);
        let actions = Actions::Continuous { width: 2, values: vec![0.5, 0.25, 0.125, 0.125] };
        let steps = env.step(&[2, 0], &actions).unwrap();
        assert_eq!(
            steps[0],
            Step { reward: 0.5, outcome: Some(Outcome::Terminated), success: None }
        );
        assert_eq!(steps[1], Step { reward: 0.125, outcome: None, success: None });
        let Observations::Vectors(rows) = env.observations() else { unreachable!() };
        assert_eq!(rows, [0.35, 0.0, 1.25]);
        // The episode in 2 has ended, none has started in 1, and actions have two numbers.
        assert!(matches!(env.step(&[2, 0], &actions), Err(EnvError::NoEpisode { env: 2 })));
        assert!(matches!(env.step(&[1, 0], &actions), Err(EnvError::NoEpisode { env: 1 })));
        assert!(env.step(&[0], &Actions::Discrete(vec![0])).is_err());
    }
}
